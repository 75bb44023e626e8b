import { describe, expect, it } from 'vitest';
import { destinations, parseAllowList, type ServiceAddress } from './destinations.ts';
import { EgressError, refusalPage } from './refusals.ts';
import type { Resolve } from './resolver.ts';

// Nothing here opens a connection or asks a DNS server: addresses go in, verdicts come out.

function setUp({
  allow = '',
  names = {},
  service = [],
  own = [],
}: { allow?: string; names?: Record<string, string[]>; service?: ServiceAddress[]; own?: string[] } = {}) {
  const asked: string[] = [];
  const resolve: Resolve = async (name) => {
    asked.push(name);
    return names[name] ?? [];
  };
  const rules = destinations({ allow: parseAllowList(allow), service, resolve, ownAddresses: () => own });
  /** The addresses, or the code of the refusal. */
  const verdict = (host: string, port = 80) =>
    rules.check(host, port).then(
      ({ addresses }) => addresses.join(' '),
      (error: unknown) => (error instanceof EgressError ? error.code : Promise.reject(error)),
    );
  return { rules, verdict, asked };
}

describe('addresses', () => {
  it.each([
    ['this network', '0.0.0.0', '0.1.2.3'],
    ['loopback', '127.0.0.1', '127.255.255.254', '[::1]'],
    ['private', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '[fc00::1]', '[fd12:3456::1]', '[fec0::1]'],
    ['carrier-grade NAT', '100.64.0.1', '100.127.255.255'],
    ['link-local, and cloud metadata with it', '169.254.169.254', '[fe80::1]', '[febf::1]', '[fd00:ec2::254]'],
    ['cloud metadata on a public address', '168.63.129.16'],
    ['multicast and broadcast', '224.0.0.1', '239.1.2.3', '255.255.255.255', '[ff02::1]'],
    ['protocol assignments', '192.0.0.1', '192.0.0.192', '192.88.99.1', '192.31.196.1', '192.52.193.1', '192.175.48.1'],
    ['documentation', '192.0.2.1', '198.51.100.1', '203.0.113.1', '[2001:db8::1]', '[3fff::1]'],
    ['benchmarks', '198.18.0.1', '198.19.255.255', '[2001:2::1]'],
    ['reserved', '240.0.0.1', '[::]', '[100::1]', '[4000::1]', '[1::1]', '[5f00::1]', '[2001:10::1]', '[2001:20::1]'],
    ['IPv4-mapped', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::ffff:10.0.0.1]', '[0:0:0:0:0:ffff:a9fe:a9fe]'],
    ['IPv4-compatible', '[::127.0.0.1]', '[::7f00:1]', '[::a00:1]'],
    ['IPv4-translated', '[::ffff:0:127.0.0.1]'],
    ['NAT64', '[64:ff9b::127.0.0.1]', '[64:ff9b::a00:1]', '[64:ff9b:1::1]', '[64:ff9b:1::5db8:d822]'],
    ['6to4', '[2002:7f00:1::]', '[2002:a00:1::1]', '[2002:a9fe:a9fe::]'],
    ['Teredo', '[2001:0:7f00:1::]', '[2001::1]'],
  ])('refuses %s', async (_, ...hosts) => {
    const { verdict, asked } = setUp();
    for (const host of hosts) expect([host, await verdict(host)]).toEqual([host, 'destination_refused']);
    expect(asked).toEqual([]);
  });

  it.each([
    ['1.1.1.1', '1.1.1.1'],
    ['100.63.255.255', '100.63.255.255'],
    ['172.32.0.1', '172.32.0.1'],
    ['[2606:4700::1111]', '2606:4700::1111'],
    ['[2A00:1450:4001::200e]', '2a00:1450:4001::200e'],
    ['[::ffff:1.1.1.1]', '1.1.1.1'],
    ['[64:ff9b::1.1.1.1]', '64:ff9b::101:101'],
  ])('lets %s through as %s', async (host, address) => {
    expect(await setUp().verdict(host)).toBe(address);
  });

  it.each([
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '127.1',
    '0177.0.0.1',
    '017700000001',
    '127.0.0.1.',
    '0',
    '0x7F.0x0.0.0x1',
  ])('recognises %s', async (host) => {
    const { verdict, asked } = setUp();
    expect(await verdict(host)).toBe('destination_refused');
    expect(asked).toEqual([]);
  });

  it.each([
    '',
    '.',
    'a..b',
    '.a',
    'a b',
    'a\0.example',
    'a\r\nb',
    'exa%6dple.com',
    '127.0.0.1%00.example',
    'user@example.com',
    'example.com/x',
    'example.com#',
    '::1',
    '[::1',
    '[fe80::1%eth0]',
    '[::1]x',
    '1.2.3.4.5',
    '256.256.256.256',
    '0x100000000',
    'ⓛocalhost',
    '127。0。0。1',
    '*',
    `${'a'.repeat(64)}.example`,
    'a.'.repeat(130),
  ])('does not take %j for a host', async (host) => {
    const { verdict, asked } = setUp();
    expect(await verdict(host)).toBe('bad_request');
    expect(asked).toEqual([]);
  });

  it.each([0, -1, 65_536, 1.5, Number.NaN])('does not take %d for a port', async (port) => {
    expect(await setUp().verdict('1.1.1.1', port)).toBe('bad_request');
  });
});

it('the addresses of the machine are not read for each check', async () => {
  let read = 0;
  const rules = destinations({ resolve: async () => ['1.1.1.1'], ownAddresses: () => [`1.0.0.${++read}`] });
  for (let check = 0; check < 10; check++) rules.checkUnresolved('a.example', 80);
  expect(read).toBeLessThan(10);
  expect(() => rules.checkUnresolved('1.0.0.1', 80)).toThrow(/an address of the machine/);
});

describe('names', () => {
  it('are resolved once, and the checked addresses are the ones to connect to', async () => {
    const answers = [['1.1.1.1'], ['127.0.0.1']];
    const rules = destinations({ resolve: async () => answers.shift() ?? [], ownAddresses: () => [] });
    expect(await rules.check('Rebind.Example', 80)).toEqual({
      host: 'rebind.example',
      port: 80,
      addresses: ['1.1.1.1'],
    });
    await expect(rules.check('rebind.example', 80)).rejects.toMatchObject({ code: 'destination_refused' });
  });

  it('are refused whole when one of the answers is refused', async () => {
    const { verdict } = setUp({
      names: {
        'good.example': ['1.1.1.1', '2606:4700::1111'],
        'mixed.example': ['1.1.1.1', '10.0.0.1'],
        'mixed6.example': ['1.1.1.1', '::ffff:169.254.169.254'],
        'cname-to-loopback.example': ['127.0.0.1'],
        'scoped.example': ['fe80::1%eth0'],
      },
    });
    expect(await verdict('good.example')).toBe('1.1.1.1 2606:4700::1111');
    expect(await verdict('mixed.example')).toBe('destination_refused');
    expect(await verdict('mixed6.example')).toBe('destination_refused');
    expect(await verdict('cname-to-loopback.example')).toBe('destination_refused');
    expect(await verdict('scoped.example')).toBe('destination_refused');
  });

  it('without an address, or with something else for one, are a failure of DNS', async () => {
    const { verdict } = setUp({ names: { 'odd.example': ['not an address'] } });
    expect(await verdict('none.example')).toBe('dns_failed');
    expect(await verdict('odd.example')).toBe('dns_failed');
  });

  it('may end in a dot', async () => {
    const { verdict, asked } = setUp({ names: { 'good.example': ['1.1.1.1'], 'bad.example': ['10.0.0.1'] } });
    expect(await verdict('good.example.')).toBe('1.1.1.1');
    expect(await verdict('bad.example.')).toBe('destination_refused');
    expect(asked).toEqual(['good.example', 'bad.example']);
  });

  it('that mean loopback never leave the machine', async () => {
    const { verdict, asked } = setUp({ names: { localhost: ['1.1.1.1'], 'a.localhost': ['1.1.1.1'] } });
    for (const host of ['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'a.b.localhost.']) {
      expect(await verdict(host)).toBe('destination_refused');
    }
    expect(asked).toEqual([]);
  });

  it('name the kind of the address to the page, and the address only in the log', async () => {
    const { rules } = setUp({ names: { 'inner.example': ['10.3.2.1'] } });
    const error = await rules.check('inner.example', 8080).then(
      () => new EgressError('bad_request', 'it was let through'),
      (error: EgressError) => error,
    );
    expect(error.facts).toEqual({ address: '10.3.2.1' });
    const page = refusalPage(error).body.toString();
    expect(page).toContain('inner.example:8080, which is a private address');
    expect(page).toContain('CORRAL_ALLOW_PRIVATE_HOSTS=inner.example:8080');
    expect(page).not.toContain('10.3.2.1');
  });
});

describe('the allow list', () => {
  it.each([
    ['10.1.2.3', '10.1.2.3', 80, true],
    ['10.1.2.3', '10.1.2.4', 80, false],
    ['10.1.2.3', '[::ffff:10.1.2.3]', 80, true],
    ['10.1.2.3', '[64:ff9b::10.1.2.3]', 80, true],
    ['::ffff:10.0.0.0/104', '10.9.9.9', 80, true],
    ['10.1.2.3:8080', '10.1.2.3', 8080, true],
    ['10.1.2.3:8080', '10.1.2.3', 8081, false],
    ['10.0.0.0/8', '10.200.0.1', 1, true],
    ['10.0.0.0/8', '11.0.0.1', 1, true],
    ['10.0.0.0/8', '192.168.0.1', 1, false],
    ['10.0.0.0/8:443', '10.200.0.1', 443, true],
    ['10.0.0.0/8:443', '10.200.0.1', 80, false],
    ['fd00::/8', '[fd12::1]', 80, true],
    ['fd12::1', '[fd12::1]', 80, true],
    ['[fd12::1]', '[fd12::1]', 80, true],
    ['[fd12::1]:8080', '[fd12::1]', 8080, true],
    ['[fd12::1]:8080', '[fd12::1]', 80, false],
    ['[fd00::/8]:8080', '[fd12::1]', 8080, true],
    ['[fd00::/8]:8080', '[fd12::1]', 80, false],
    ['0.0.0.0/0, ::/0', '[::1]', 80, true],
    ['a, 127.0.0.1:9000\n  b', '127.0.0.1', 9000, true],
    ['127.0.0.1:9000', 'localhost', 9000, true],
    ['127.0.0.1:9000', 'localhost', 9001, false],
    ['localhost', 'localhost', 80, true],
    ['localhost', '127.0.0.1', 80, false],
    ['*.localhost', 'a.localhost', 80, true],
    ['nas', 'nas', 80, true],
    ['NAS.', 'nas', 80, true],
    ['nas:80', 'nas', 81, false],
    ['*.corp.example', 'wiki.corp.example', 80, true],
    ['*.corp.example', 'a.b.corp.example', 80, true],
    ['*.corp.example', 'corp.example', 80, false],
    ['*.corp.example', 'evilcorp.example', 80, false],
    ['*.corp.example:81', 'wiki.corp.example', 80, false],
    ['10.0.0.0/8', 'wiki.corp.example', 80, true],
    ['10.0.0.0/8', 'mixed.example', 80, false],
    ['mixed.example', 'mixed.example', 80, true],
  ])('%s and %s:%d', async (allow, host, port, allowed) => {
    const inner = ['nas', 'wiki.corp.example', 'a.b.corp.example', 'corp.example', 'evilcorp.example'];
    const names = Object.fromEntries(inner.map((name) => [name, ['10.0.0.7']]));
    const { verdict } = setUp({ allow, names: { ...names, 'mixed.example': ['10.0.0.7', '192.168.0.1'] } });
    const answer = await verdict(host, port);
    expect(answer).toMatch(allowed ? /^[\d.a-f: ]+$/ : /^destination_refused$/);
  });

  it('passes the allowed names of the operator to the resolver', async () => {
    const trusted: [string, boolean][] = [];
    const rules = destinations({
      allow: parseAllowList('nas'),
      resolve: async (name, options) => (trusted.push([name, options.trusted]), ['1.1.1.1']),
    });
    await rules.check('nas', 80);
    await rules.check('other', 80);
    expect(trusted).toEqual([
      ['nas', true],
      ['other', false],
    ]);
  });

  it.each([
    ['http://nas', 'Write the host alone'],
    ['*', '0.0.0.0/0,::/0'],
    ['*:80', '0.0.0.0/0,::/0'],
    ['nas:0', '1 to 65535'],
    ['nas:http', '1 to 65535'],
    ['nas:', '1 to 65535'],
    [':80', 'Write a name'],
    ['10.0.0.0/33', '10.0.0.0/8'],
    ['10.0.0.0/', '10.0.0.0/8'],
    ['nas/8', '10.0.0.0/8'],
    ['10.1', 'all four parts'],
    ['10.1/8', '10.0.0.0/8'],
    ['1.2.3.256', 'all four parts'],
    ['[nas]', 'all four parts'],
    ['fd00:::1', 'IPv6 with a port'],
    ['a*.example', '* is only allowed at the front'],
    ['büro.example', 'xn--'],
  ])('reports the fault of %s', (entry, remedy) => {
    expect(() => parseAllowList(`fine.example, ${entry}`)).toThrow(`'${entry}'`);
    expect(() => parseAllowList(entry)).toThrow(remedy);
  });
});

describe('the machine and the service', () => {
  it('refuses every address of this machine, a public one too, unless it is listed', async () => {
    const own = ['8.8.4.4', '2606:4700::5', 'fe80::1%eth0'];
    const names = { 'me.example': ['8.8.4.4'] };
    const { verdict } = setUp({ own, names });
    expect(await verdict('8.8.4.4')).toBe('destination_refused');
    expect(await verdict('[::ffff:8.8.4.4]')).toBe('destination_refused');
    expect(await verdict('[64:ff9b::8.8.4.4]')).toBe('destination_refused');
    expect(await verdict('[2606:4700:0::5]')).toBe('destination_refused');
    expect(await verdict('me.example')).toBe('destination_refused');
    expect(await setUp({ own, names, allow: '8.8.4.4' }).verdict('me.example')).toBe('8.8.4.4');
  });

  it('refuses the service by its port even where its address is allowed, unless the port is named', async () => {
    const service = [{ host: '127.0.0.1', port: 3000 }];
    const names = { 'me.example': ['127.0.0.1'] };
    const wide = setUp({ service, names, allow: '127.0.0.0/8, ::1, me.example, localhost, 0.0.0.0' });
    expect(await wide.verdict('127.0.0.1', 3001)).toBe('127.0.0.1');
    for (const host of [
      '127.0.0.1',
      '127.9.9.9',
      'localhost',
      'me.example',
      '[::1]',
      '0.0.0.0',
      '[::ffff:127.0.0.1]',
    ]) {
      expect([host, await wide.verdict(host, 3000)]).toEqual([host, 'destination_refused']);
    }
    expect(await setUp({ service, allow: '127.0.0.1:3000' }).verdict('127.0.0.1', 3000)).toBe('127.0.0.1');
  });

  it('refuses the host of the public URL, on its port', async () => {
    const service = [
      { host: 'corral.example', port: 443 },
      { host: '8.8.4.4', port: 443 },
    ];
    const names = { 'corral.example': ['1.1.1.1'], 'other.example': ['8.8.4.4'] };
    const { verdict } = setUp({ service, names });
    expect(await verdict('Corral.Example.', 443)).toBe('destination_refused');
    expect(await verdict('corral.example', 80)).toBe('1.1.1.1');
    expect(await verdict('8.8.4.4', 443)).toBe('destination_refused');
    expect(await verdict('other.example', 443)).toBe('destination_refused');
    expect(await verdict('8.8.4.4', 80)).toBe('8.8.4.4');
    expect(await setUp({ service, names, allow: 'corral.example:443' }).verdict('corral.example', 443)).toBe('1.1.1.1');
  });

  it('sees the interfaces of the machine it runs on', async () => {
    const rules = destinations({ resolve: async () => [] });
    await expect(rules.check('127.0.0.1', 80)).rejects.toMatchObject({ code: 'destination_refused' });
  });
});

it('looks at 32 addresses of each family of a name, in their order', async () => {
  const v6 = Array.from({ length: 3000 }, (_, at) => `2606:4700::${at.toString(16)}`);
  const v4 = Array.from({ length: 3000 }, (_, at) => `1.1.${at >> 8}.${at & 255}`);
  const { verdict } = setUp({ names: { 'many.test': [...v6, ...v4, '10.0.0.1'] } });
  expect(await verdict('many.test')).toBe([...v6.slice(0, 32), ...v4.slice(0, 32)].join(' ').replace('::0 ', ':: '));
});
