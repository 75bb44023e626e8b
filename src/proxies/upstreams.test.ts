import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { bypassHosts, proxyHost } from './hosts.ts';
import { readUpstreams } from './upstreams.ts';

const dir = mkdtempSync(join(tmpdir(), 'corral-upstreams-'));
afterAll(() => rmSync(dir, { recursive: true }));

function read(content: unknown) {
  const path = join(dir, 'upstreams.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return readUpstreams(path);
}
const gate = { host: 'gate.example', port: 8000 };

describe('the file', () => {
  it.each<[string, unknown, RegExp]>([
    ['no JSON', '{"isp": {"password": "hush', /is not JSON\.$/],
    ['a list', [], /has to be an object/],
    ['an unknown type', { custom: gate }, /'custom'; there are datacenter, isp, residential, mobile/],
    ['an entry that is not an object', { isp: 5 }, /'isp' that is not an object/],
    ['an unknown field', { isp: { ...gate, user: 'x' } }, /a field 'user'/],
    ['an unknown protocol', { isp: { ...gate, protocol: 'ftp' } }, /protocol is not one of http, https, socks5/],
    ['no port', { isp: { host: 'x' } }, /port is not a whole number/],
    ['no host', { isp: { port: 1 } }, /without a host/],
    ['an odd host', { isp: { ...gate, host: 5 } }, /host is not a text/],
    [
      'an unknown placeholder',
      { isp: { ...gate, username: 'x-{town}' } },
      /username has \{town\}; there are \{country\}/,
    ],
    ['half a bracket', { isp: { ...gate, username: 'x[-{city}' } }, /bracket without its other half/],
    ['a password without a user', { isp: { ...gate, password: 'hush' } }, /a password and no username/],
    ['cities that are not text', { isp: { ...gate, cities: [1] } }, /cities is not a list/],
  ])('with %s is refused at the start', async (_, content, message) => {
    const error = await read(content).catch((error: Error) => error);
    expect(error).toBeInstanceOf(Error);
    expect((error as Error).message).toMatch(/^CORRAL_PROXY_UPSTREAMS names .*, which /);
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).not.toContain('hush');
  });

  it('that is not there is refused by name', async () => {
    await expect(readUpstreams('/nowhere/at-all')).rejects.toThrow('/nowhere/at-all, which cannot be read (ENOENT)');
  });

  it('is not needed', async () => {
    const none = await readUpstreams('');
    expect(none.has('isp')).toBe(false);
    expect(() => none.check('isp', {})).toThrow(/no upstream for isp proxies.*CORRAL_PROXY_UPSTREAMS/);
  });
});

describe('an upstream', () => {
  const residential = {
    protocol: 'socks5',
    host: '{country}.gate.example',
    port: 8000,
    username: 'me-cc-{COUNTRY}[-st-{state}][-city-{city}][-zip-{zip}][-asn-{asn}]-s-{session}',
    password: 'h[us]h{x}[_{city}]',
  };

  it('is filled with the requested values, and optional parts are left out with their values', async () => {
    const upstreams = await read({ residential });
    const made = (config: object) => upstreams.resolve('residential', upstreams.check('residential', config), 'abc');
    expect(made({ country: 'us', state: 'ca' })).toEqual({
      protocol: 'socks5',
      host: 'us.gate.example',
      port: 8000,
      login: { username: 'me-cc-US-st-ca-s-abc', password: 'h[us]h{x}' },
    });
    expect(made({ country: 'DE', city: 'Berlin' }).login).toEqual({
      username: 'me-cc-DE-city-berlin-s-abc',
      password: 'h[us]h{x}_berlin',
    });
    expect(made({ zip: '94107' })).toMatchObject({ login: { username: 'me-cc-US-zip-94107-s-abc' } });
    expect(made({ country: 'US', asn: 'AS7922' })).toMatchObject({ login: { username: 'me-cc-US-asn-7922-s-abc' } });
  });

  it.each<[object, RegExp]>([
    [{ city: 'berlin' }, /city needs config.country/],
    [{ country: 'US', zip: '94107', state: 'CA' }, /zip cannot be combined/],
    [{ country: 'US', asn: '7922', city: 'boston' }, /asn cannot be combined/],
    [{ country: 'DE', state: 'CA' }, /state is for the US only/],
    [{ country: 'DE', zip: '10115' }, /zip is for the US only/],
    [{ country: 'QX' }, /country: 'QX' is not known here. Near: [A-Z]{2}(, [A-Z]{2}){9}\./],
    [{ country: 'US', state: 'XA' }, /state: 'XA' is not known here. Near: CA, GA, IA, LA, MA, PA, VA, WA/],
    [{ os: 'windows' }, /os is not available/],
  ])('does not take %j', async (config, message) => {
    const upstreams = await read({ residential });
    expect(() => upstreams.check('residential', config)).toThrow(message);
  });

  it('names some of the names that are near, of a provider with many', async () => {
    const cities = Array.from({ length: 30_000 }, (_, at) => `${'abc'[at % 3]}town${at}`);
    const upstreams = await read({ residential: { ...residential, cities } });
    const wrong = (city: string) => () => upstreams.check('residential', { country: 'DE', city });
    expect(wrong('btown')).toThrow(/Near: btown1, btown4, btown7, btown10,/);
    expect(wrong('z'.repeat(100))).toThrow(/Near: atown0, /);
  });

  it('that cannot choose is not asked to, but serves the usual defaults', async () => {
    const upstreams = await read({ datacenter: gate });
    expect(upstreams.check('datacenter', {})).toEqual({ country: 'US' });
    expect(() => upstreams.check('datacenter', { country: 'DE' })).toThrow(/country cannot be chosen/);
  });
});

describe('hosts', () => {
  it('to bypass are names, whole or with all below them, each once', () => {
    expect(bypassHosts(['Shop.Example', '*.cdn.example', 'shop.example.', 'localhost'])).toEqual([
      'shop.example',
      '*.cdn.example',
      'localhost',
    ]);
    for (const [host, what] of [
      ['http://shop.example', 'a scheme'],
      ['shop.example/x', 'a path'],
      ['shop.example:80', 'a port'],
      ['10.0.0.1', 'an address'],
      ['[::1]', 'an address'],
      ['::1', 'an address'],
      ['*', 'not a host name'],
      ['a.*.example', 'not a host name'],
      ['*shop.example', 'not a host name'],
      ['shop..example', 'not a host name'],
      ['-x.example', 'not a host name'],
      ['127.1', 'not a host name'],
      ['a b', 'not a host name'],
    ] as const)
      expect(() => bypassHosts(['ok.example', host])).toThrow(new RegExp(`bypass_hosts\\[1\\].*${what}`));
  });

  it('of proxies are names or addresses, in one spelling', () => {
    expect(['Proxy.Example.', '[2001:DB8::1]', '0x7f.1', '10.0.0.1'].map(proxyHost)).toEqual([
      'proxy.example',
      '2001:db8::1',
      '127.0.0.1',
      '10.0.0.1',
    ]);
    for (const host of ['http://x', 'x:80', 'x/y', 'a b', '', 'x@y', 'x\r\ny'])
      expect(() => proxyHost(host)).toThrow(/config.host/);
  });
});
