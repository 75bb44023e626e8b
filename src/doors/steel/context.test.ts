import { expect, test } from 'vitest';
import type { Mux } from '../../chromium/cdp/mux.ts';
import { readContext, storedJson } from './context.ts';

/** A browser with so many pages of one site, each of which has stored a value of this size. */
function browserWith(pages: number, size: number, origin = 'https://a.test') {
  const state = { read: 0, atOnce: 0, most: 0 };
  const targetInfos = Array.from({ length: pages }, (_, at) => ({
    targetId: String(at),
    type: 'page',
    url: 'https://a.test/',
    title: '',
    attached: false,
  }));
  const answers: Record<string, (params: { targetId?: string }) => unknown> = {
    'Storage.getCookies': () => ({ cookies: [] }),
    'Target.getTargets': () => ({ targetInfos }),
    'Target.attachToTarget': ({ targetId }) => ({ sessionId: targetId }),
  };
  const ask = async (_is: unknown, method: string, params: { targetId?: string } = {}, page?: string) => {
    const answer = answers[method];
    if (answer) return answer(params);
    state.most = Math.max(state.most, (state.atOnce += 1));
    await new Promise((resolve) => setImmediate(resolve));
    state.atOnce -= 1;
    state.read += 1;
    const value = { origin, local: { same: 'x' }, session: { [`k${page}`]: 'x'.repeat(size) } };
    return { result: { type: 'object', value } };
  };
  return { mux: { attachLocal: () => ({ ask, close() {} }) } as unknown as Mux, state };
}

test('the storage of several pages of a site is joined', async () => {
  const { mux } = browserWith(2, 3);
  expect(await readContext(mux)).toEqual({
    cookies: [],
    localStorage: { 'a.test': { same: 'x' } },
    sessionStorage: { 'a.test': { k0: 'xxx', k1: 'xxx' } },
  });
});

test.each(['__proto__', 'constructor', 'https://__proto__/x'])(
  'a page with the origin %s is left out',
  async (origin) => {
    const { mux } = browserWith(1, 3, origin);
    expect(await readContext(mux)).toEqual({ cookies: [], localStorage: {}, sessionStorage: {} });
    expect(['same', 'k0'].filter((name) => name in {} || name in Object)).toEqual([]);
  },
);

test('pages are read one after the other, and no more of them than a new session takes', async () => {
  const { mux, state } = browserWith(100, 1024 * 1024);
  await expect(readContext(mux)).rejects.toThrow('more than a new session takes');
  expect(state).toMatchObject({ read: 8, most: 1 });
});

test('the storage of a site is written as JSON in small pieces, also halves of surrogate pairs', () => {
  const stored = {
    local: { half: '\ud800'.repeat(300_000), ['k'.repeat(100_000)]: '"\\😀'.repeat(30_000), __proto__: 'x', empty: '' },
    session: Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`k${at}`, `v${at}`])),
  };
  const pieces = [...storedJson(stored)];
  expect(JSON.parse(pieces.join(''))).toEqual(stored);
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(300_000);
  expect([...storedJson({ local: {}, session: {} })].join('')).toBe('{"local":{},"session":{}}');
});
