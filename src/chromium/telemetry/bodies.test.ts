import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { slowClock } from '../../../test/support/slow-clock.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { bodies } from './bodies.ts';
import type { Target } from './target.ts';

const page = { sessionId: 'page', parent: undefined } as Target;
const frame = { sessionId: 'frame', parent: page, root: page } as Target;
const other = { sessionId: 'other', parent: undefined } as Target;

let patience: number;
let asked: string[];
let reported: string[];
let answer: (body: string) => void;

const client = {
  ask: (_is: unknown, _method: string, { requestId }: { requestId: string }) => {
    asked.push(requestId);
    return new Promise((resolve) => (answer = (body) => resolve({ body, base64Encoded: false })));
  },
} as unknown as LocalClient;

let read: ReturnType<typeof bodies>;
const want = (requestId: string, target = page, weight = 1000) =>
  read({ target, requestId, bytes: 1, limit: 100, weight }, (body) => void reported.push(`${requestId}: ${body}`));

beforeEach(() => {
  vi.useFakeTimers();
  [patience, asked, reported] = [0, [], []];
  read = bodies(client, () => patience);
});
afterEach(() => void vi.useRealTimers());

test('a body is read at once when its page has nothing else to do', async () => {
  want('a');
  expect(asked).toEqual(['a']);
  answer('text');
  await expect.poll(() => reported).toEqual(['a: text']);
});

test('bodies of a page that loads wait for it, and no longer than its patience', () => {
  patience = 3000;
  want('a');
  vi.advanceTimersByTime(1000);
  want('b');
  expect(asked).toEqual([]);
  vi.advanceTimersByTime(2000);
  expect(asked).toEqual(['a', 'b']);
});

test('bodies are read when the page has loaded, or leaves, with those of its frames and of no other page', () => {
  patience = 3000;
  want('a');
  want('b', frame);
  want('c', other);
  read.now(page);
  expect(asked).toEqual(['a', 'b']);
  want('d');
  vi.advanceTimersByTime(3000);
  expect(asked).toEqual(['a', 'b', 'c', 'd']);
});

test('a response that waits when the capture ends is captured without a body, and an answer that comes later is not used', async () => {
  want('a');
  patience = 3000;
  want('b', other);
  read.close();
  expect(reported).toEqual(['a: undefined', 'b: undefined']);
  answer('late');
  vi.advanceTimersByTime(3000);
  await Promise.resolve();
  expect(reported).toHaveLength(2);
  expect(asked).toEqual(['a']);
});

test('a response of a page that closes is captured without a body', () => {
  patience = 3000;
  want('a');
  read.gone(page);
  expect(reported).toEqual(['a: undefined']);
  vi.advanceTimersByTime(3000);
  expect(asked).toEqual([]);
});

test('a thousand responses of all pages wait for their body, or 4 MiB of them; more are captured without', () => {
  patience = 3000;
  for (let at = 0; at < 1010; at++) want(`${at}`, at % 2 === 0 ? page : other);
  expect(reported).toHaveLength(10);
  read.close();
  expect(reported).toHaveLength(1010);
  for (let at = 0; at < 50; at++) want(`heavy ${at}`, page, 128 * 1024);
  expect(reported).toHaveLength(1010 + 50 - 32);
  read.gone(page);
  want('next');
  expect(reported).toHaveLength(1010 + 50);
});

test('responses of pages that close leave the event loop to others while they are captured', async () => {
  patience = 3000;
  const frames = Array.from({ length: 100 }, (_, at) => ({ sessionId: `${at}`, parent: page, root: page }) as Target);
  for (const [at, target] of frames.entries()) want(`${at}`, target);
  slowClock();
  for (const target of frames) read.gone(target);
  expect(reported.length).toBeLessThan(20);
  await vi.runAllTimersAsync();
  expect(reported).toHaveLength(100);
  expect(asked).toEqual([]);
});
