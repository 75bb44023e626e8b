import { BrowsingContextImpl } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/context/BrowsingContextImpl.js';
import { NavigationTracker } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/context/NavigationTracker.js';
import { expect, test, vi } from 'vitest';
import { parseNoLongHosts } from './long-hosts.ts';

const create = vi.spyOn(BrowsingContextImpl, 'create').mockReturnValue({} as never);
parseNoLongHosts();

const long = `http://xn--${'b'.repeat(2000)}-4gq/`;

test.each([
  ['about:blank', 'about:blank', true],
  ['one in capitals', 'ABOUT:blank', true],
  ['no address', '', true],
  ['another address', 'http://a.example/', false],
  ['one with a long host', long, false],
])('a frame that goes to %s is at its first about:blank or not', (_, url, expected) => {
  const parsed: string[] = [];
  class NotedURL extends URL {
    constructor(text: string) {
      parsed.push(text);
      super(text);
    }
  }
  vi.stubGlobal('URL', NotedURL);
  const tracker = new NavigationTracker('', 'C', {} as never);
  expect(tracker.createPendingNavigation(url, true).url).toBe(url);
  expect(tracker.isInitialNavigation).toBe(expected);
  vi.unstubAllGlobals();
  expect(parsed).not.toContain(long);
});

test.each([
  ['an address', 'http://a.example/', 'http://a.example/'],
  ['one with a long host, which is cut', long, long.slice(0, 1000)],
])('a context is made with %s', (_, url, made) => {
  const none = {} as never;
  BrowsingContextImpl.create('C', null, 'default', none, none, none, none, none, url);
  expect(create.mock.lastCall?.[8]).toBe(made);
});
