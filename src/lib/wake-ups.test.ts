import { expect, test } from 'vitest';
import { wakeUps } from './wake-ups.ts';

test('a wake-up reaches the waiters for its name, and no others', async () => {
  const ups = wakeUps();
  const seen: string[] = [];
  const wait = (name: string) => ups.wait(name, {}).then(() => seen.push(name));
  const both = [wait('a'), wait('a')];
  const other = wait('b');
  ups.wake('a');
  await Promise.all(both);
  expect(seen).toEqual(['a', 'a']);
  ups.wakeAll();
  await other;
  expect(ups.size()).toBe(0);
});

test.each([
  ['the time is over', () => ({ ms: 5 })],
  ['the signal aborts', () => ({ signal: AbortSignal.timeout(5) })],
  ['the signal has aborted', () => ({ signal: AbortSignal.abort(), ms: 60_000 })],
])('a wait ends when %s, and nothing is left of it', async (_, until) => {
  const ups = wakeUps();
  await ups.wait('a', until());
  expect(ups.size()).toBe(0);
});
