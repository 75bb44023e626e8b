import { expect, test } from 'vitest';
import { oneByOne } from './one-at-a-time.ts';

/** Work that ends by hand. */
function job() {
  let end!: (error?: Error) => void;
  const over = new Promise<void>((resolve, reject) => (end = (error) => (error ? reject(error) : resolve())));
  return { end, work: () => over };
}

test('work runs in the order in which it came, also after work that failed', async () => {
  const inTurn = oneByOne();
  const ran: string[] = [];
  const first = job();
  const results = [
    inTurn(async () => {
      await first.work();
      ran.push('first');
      throw new Error('It failed.');
    }),
    inTurn(async () => void ran.push('second')),
    inTurn(async () => void ran.push('third')),
  ];
  first.end();
  expect((await Promise.allSettled(results)).map(({ status }) => status)).toEqual([
    'rejected',
    'fulfilled',
    'fulfilled',
  ]);
  expect(ran).toEqual(['first', 'second', 'third']);
  await expect(inTurn(async () => 'again')).resolves.toBe('again');
});

test('work is rejected at once if its signal aborts while it waits, and the work behind it runs', async () => {
  const inTurn = oneByOne();
  const first = job();
  const running = inTurn(first.work);
  const left = new AbortController();
  const why = new Error('The client left.');
  let ran = false;
  const waiting = inTurn(async () => void (ran = true), left.signal);
  const last = inTurn(async () => 'last');
  left.abort(why);
  await expect(waiting).rejects.toBe(why);
  await expect(inTurn(async () => {}, left.signal)).rejects.toBe(why);
  first.end();
  await expect(Promise.all([running, last])).resolves.toEqual([undefined, 'last']);
  expect(ran).toBe(false);
});
