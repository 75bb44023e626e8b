import { expect, test } from 'vitest';
import { turns } from './turns.ts';

test('no more than two work at a time, in the order they came, whatever becomes of them', async () => {
  const inTurn = turns({ atOnce: 2, each: 2, waitMs: 60_000 });
  const began: number[] = [];
  const ends: ((ok: boolean) => void)[] = [];
  const works = Array.from({ length: 5 }, (_, i) =>
    inTurn('one', () => {
      began.push(i);
      return new Promise<void>((resolve, reject) => (ends[i] = (ok) => (ok ? resolve() : reject(new Error('failed')))));
    }).catch(() => {}),
  );
  expect(began).toEqual([0, 1]);
  for (const [i, ok] of [true, false, true, false, true].entries()) {
    ends[i]!(ok);
    await works[i];
    await Promise.resolve();
    expect(began.length).toBe(Math.min(5, i + 3));
  }
  expect(began).toEqual([0, 1, 2, 3, 4]);
  await expect(inTurn('one', async () => 'again')).resolves.toBe('again');
});

test('an operation that waits too long is refused, and takes no turn', async () => {
  const inTurn = turns({ atOnce: 1, each: 1, waitMs: 0 });
  let end = () => {};
  const first = inTurn('one', () => new Promise<void>((resolve) => (end = resolve)));
  await expect(inTurn('one', async () => {})).rejects.toMatchObject({ code: 'busy' });
  end();
  await first;
  await expect(inTurn('one', async () => 'free')).resolves.toBe('free');
});

test('a store that does not answer takes no turns of another', async () => {
  const inTurn = turns({ atOnce: 4, each: 2, waitMs: 60_000 });
  const ends: (() => void)[] = [];
  const slow = Array.from({ length: 6 }, () =>
    inTurn('slow', () => new Promise<void>((resolve) => void ends.push(resolve))),
  );
  await expect(inTurn('quick', async () => 'done')).resolves.toBe('done');
  expect(ends).toHaveLength(2);
  for (let at = 0; at < slow.length; at++) {
    await expect.poll(() => ends.length).toBeGreaterThan(at);
    ends[at]!();
  }
  await Promise.all(slow);
});
