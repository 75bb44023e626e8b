import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ActivePage } from '../pages/active-page.ts';
import { pageHands } from './page-hands.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A page that answers the requests for pictures with these, in turn. */
function hands(...answers: Promise<unknown>[]) {
  const ask = vi.fn<() => Promise<unknown>>(() => answers.shift() ?? new Promise(() => {}));
  const active = { client: { ask }, find: async () => ({ sessionId: 'page' }) };
  return { ask, ...pageHands(active as unknown as ActivePage) };
}
const picture = Promise.resolve({ data: Buffer.from('picture').toString('base64') });
const silence = new Promise(() => {});

test('an unanswered screenshot request is repeated', async () => {
  const { ask, screenshot } = hands(silence, picture);
  const taken = screenshot(undefined);
  await vi.advanceTimersByTimeAsync(2000);
  expect(String(await taken)).toBe('picture');
  await vi.advanceTimersByTimeAsync(20_000);
  expect(ask).toHaveBeenCalledTimes(2);
});

test('a page that never answers is an error', async () => {
  const { screenshot } = hands();
  const refused = screenshot(undefined).catch((error: Error) => error.message);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await refused).toMatch('The page does not answer');
});

test('a refused request is not repeated', async () => {
  const { ask, screenshot } = hands(Promise.reject(new Error('no picture')));
  await expect(screenshot(undefined)).rejects.toThrow('no picture');
  await vi.advanceTimersByTimeAsync(20_000);
  expect(ask).toHaveBeenCalledOnce();
});

test('a long text without keys is put in at once, and other work has turns before that', async () => {
  vi.useRealTimers();
  const { ask, write } = hands(Promise.resolve({}));
  let turns = 0;
  const count = () => {
    turns++;
    if (ask.mock.calls.length === 0) setImmediate(count);
  };
  setImmediate(count);
  await write('ж'.repeat(400_000));
  expect(ask).toHaveBeenCalledOnce();
  expect(turns).toBeGreaterThan(1);
});
