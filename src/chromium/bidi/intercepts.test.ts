import { NetworkStorage } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/network/NetworkStorage.js';
import { expect, test, vi } from 'vitest';
import { parseAddressesOnce } from './intercepts.ts';

parseAddressesOnce();

const storage = () => new NetworkStorage({} as never, {} as never, { on() {} } as never);
const request = (url: string) => ({ url, cdpTarget: { topLevelId: 'T' } }) as never;
const part = { protocol: undefined, hostname: undefined, port: undefined, pathname: undefined, search: undefined };

test('an intercept blocks what its patterns, contexts and phases fit', () => {
  const network = storage();
  const add = (...parts: object[]) =>
    network.addIntercept({
      phases: ['beforeRequestSent'] as never,
      urlPatterns: parts.map((each) => ({ ...part, ...each })),
    });
  const [any, host, path, port] = [
    add(),
    add({ hostname: 'b.example' }, { hostname: 'a.example', protocol: 'https' }),
    add({ pathname: '/x', search: '?y' }),
    add({ port: '81' }),
  ];
  network.addIntercept({ phases: ['beforeRequestSent'] as never, contexts: ['U'], urlPatterns: [] });
  const of = (url: string, phase = 'beforeRequestSent') => [
    ...network.getInterceptsForPhase(request(url), phase as never),
  ];
  expect(of('https://a.example/')).toEqual([any, host]);
  expect(of('http://a.example/x?y')).toEqual([any, path]);
  expect(of('http://b.example:81/x')).toEqual([any, host, port]);
  expect(of('http://c.example/', 'authRequired')).toEqual([]);
  expect(of(`http://${'a'.repeat(301)}/x?y`)).toEqual([any]); // no host, so the address is not parsed
  expect(of('UNKNOWN')).toEqual([]);
  network.removeIntercept(any);
  expect(of('http://c.example/')).toEqual([]);
  expect(() => network.removeIntercept(any)).toThrow('does not exist');
});

test('the address of a request is parsed once for all patterns', () => {
  const network = storage();
  const urlPatterns = Array.from({ length: 90 }, (_, at) => ({ ...part, hostname: `a${at}.example` }));
  network.addIntercept({ phases: ['beforeRequestSent'] as never, urlPatterns });
  const parsing = vi.spyOn(URL, 'canParse');
  const found = network.getInterceptsForPhase(request('http://a89.example/'), 'beforeRequestSent' as never);
  expect(parsing).toHaveBeenCalledTimes(1);
  expect(found.size).toBe(1);
});
