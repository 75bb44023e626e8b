import { expect, test } from 'vitest';
import { atMostEvery } from './at-most-every.ts';

test('callers during the work and shortly after it share its result, and a failure is not kept', async () => {
  let calls = 0;
  const measured = atMostEvery(60_000, async () => {
    calls += 1;
    await Promise.resolve();
    if (calls === 1) throw new Error('no');
    return calls;
  });
  await expect(Promise.all([measured(), measured()])).rejects.toThrow('no');
  expect(await Promise.all([measured(), measured()])).toEqual([2, 2]);
  expect(await measured()).toBe(2);
});

test('the work is done again after the interval', async () => {
  let calls = 0;
  const measured = atMostEvery(0, async () => (calls += 1));
  expect([await measured(), await measured()]).toEqual([1, 2]);
});
