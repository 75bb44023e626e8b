import ipaddr from 'ipaddr.js';
import { describe, expect, it, test, vi } from 'vitest';
import { basicLogin, bypassRules, namedProxy } from './named-proxy.ts';

describe('a proxy as clients name it', () => {
  it.each([
    ['proxy.test:3128', { protocol: 'http', host: 'proxy.test', port: 3128 }],
    ['http://Proxy.test', { protocol: 'http', host: 'proxy.test', port: 80 }],
    ['https://proxy.test/', { protocol: 'https', host: 'proxy.test', port: 443 }],
    ['socks5://192.0.2.1', { protocol: 'socks5', host: '192.0.2.1', port: 1080 }],
    ['socks://[2001:db8::1]:9', { protocol: 'socks5', host: '2001:db8::1', port: 9 }],
    [
      'http://ann:w%40rd:x@proxy.test:1',
      { protocol: 'http', host: 'proxy.test', port: 1, login: { username: 'ann', password: 'w@rd:x' } },
    ],
    ['direct://', undefined],
  ])('%s', (text, proxy) => expect(namedProxy(text)).toEqual(proxy));

  it.each([
    'http=a.test:1;https=b.test:2',
    'a.test:1,b.test:2',
    'socks4://a.test:1',
    'quic://a.test:1',
    'http://a.test:99999',
    'http://a.test/path',
    'http://%zz@a.test',
    `http://${'x'.repeat(300)}@a.test`,
    `${' '.repeat(2048)}a.test`,
    'http://',
    'a b',
  ])('%s is refused', (text) => expect(() => namedProxy(text)).toThrow(/^proxyServer cannot be used: it/));
});

test('a login is read from the header that a client sends', () => {
  const encoded = Buffer.from('änn:wo:rd').toString('base64');
  expect(basicLogin(`Basic ${encoded}`)).toEqual({ username: 'änn', password: 'wo:rd' });
  for (const other of [undefined, '', 'Basic', 'Digest x', 'Basic a b']) expect(basicLogin(other)).toBeUndefined();
});

describe('hosts that bypass it', () => {
  const asked = (text: string) => {
    const { protocol, hostname, port } = new URL(text);
    const secure = protocol === 'https:';
    return { scheme: secure ? 'https' : 'http', host: hostname, port: Number(port) || (secure ? 443 : 80) } as const;
  };
  it.each([
    ['shop.test', ['http://shop.test', 'https://SHOP.test:8443'], ['http://a.shop.test', 'http://notshop.test']],
    ['.shop.test', ['http://a.shop.test', 'http://a.b.shop.test'], ['http://shop.test']],
    ['*.shop.test;x.test', ['http://a.shop.test', 'http://x.test'], ['http://shop.test', 'http://y.test']],
    ['*shop*.test', ['http://myshop.test', 'http://shop2.test'], ['http://shp.test', 'http://shop.tes']],
    ['*', ['http://a.test', 'https://192.0.2.1'], []],
    ['https://shop.test', ['https://shop.test'], ['http://shop.test']],
    ['shop.test:8080', ['http://shop.test:8080'], ['http://shop.test']],
    ['http://192.0.2.0/24:80', ['http://192.0.2.9'], ['http://192.0.2.9:81', 'https://192.0.2.9']],
    [
      '192.0.2.0/24, 2001:db8::/32',
      ['http://192.0.2.9', 'http://[2001:db8::7]'],
      ['http://192.0.3.1', 'http://a.test'],
    ],
    ['128.0.0.0/1, ::/0', ['http://192.0.2.9', 'http://[2001:db8::7]'], ['http://64.0.0.1']],
    ['2001:db8:0:0:8000::/65', ['http://[2001:db8::8001:0:0:1]'], ['http://[2001:db8::1]']],
    ['[2001:db8::1]', ['http://[2001:db8::1]'], ['http://[2001:db8::2]']],
    ['<local>', ['http://intranet'], ['http://intranet.test', 'http://192.0.2.1']],
    ['', ['http://localhost', 'http://a.localhost', 'http://127.0.0.2', 'http://[::1]'], ['http://a.test']],
    ['<-loopback>', [], ['http://localhost', 'http://127.0.0.1', 'http://[::1]']],
  ])('%s', (list, without, through) => {
    const bypasses = bypassRules(list);
    for (const url of without) expect([url, bypasses(asked(url))]).toEqual([url, true]);
    for (const url of through) expect([url, bypasses(asked(url))]).toEqual([url, false]);
  });

  it('are compared with a host that is read once', () => {
    const bypasses = bypassRules(Array.from({ length: 100 }, (_, at) => `10.0.${at}.0/24`).join(','));
    const parse = vi.spyOn(ipaddr, 'parse');
    const valid = vi.spyOn(ipaddr, 'isValidCIDR');
    expect(bypasses({ scheme: 'http', host: '192.0.2.1', port: 80 })).toBe(false);
    expect([parse.mock.calls.length, valid.mock.calls.length]).toEqual([1, 0]);
    vi.restoreAllMocks();
  });

  it.each([
    ['entries', '1'.repeat(101).split('').join(',')],
    ['letters in an entry', 'a'.repeat(301)],
    ['letters', ','.repeat(30_001)],
  ])('are refused with many %s', (_, list) => {
    expect(() => bypassRules(list)).toThrow(/^proxyBypassList has (more than|an entry of)/);
  });
});
