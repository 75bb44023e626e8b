import { expect, test } from 'vitest';
import { turns } from './turns.ts';

test('no more than two work at a time, in the order they came, whatever becomes of them', async () => {
  const inTurn = turns(2, 60_000);
  const began: number[] = [];
  const ends: ((ok: boolean) => void)[] = [];
  const works = Array.from({ length: 5 }, (_, i) =>
    inTurn(() => {
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
  await expect(inTurn(async () => 'again')).resolves.toBe('again');
});

test('one that waits too long is told so, and takes no turn', async () => {
  const inTurn = turns(1, 0);
  let end = () => {};
  const first = inTurn(() => new Promise<void>((resolve) => (end = resolve)));
  await expect(inTurn(async () => {})).rejects.toMatchObject({ code: 'busy' });
  end();
  await first;
  await expect(inTurn(async () => 'free')).resolves.toBe('free');
});
