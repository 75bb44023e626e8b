import { expect, test } from 'vitest';
import { Overdue, within } from './deadline.ts';

test('work that is done in time has its result, and its failure', async () => {
  await expect(within(10_000, 'The browser', Promise.resolve(1))).resolves.toBe(1);
  await expect(within(10_000, 'The browser', Promise.reject(new Error('no')))).rejects.toThrow('no');
});

test('work that takes longer is given up with a sentence', async () => {
  const never = within(10, 'The browser', new Promise(() => {}));
  await expect(never).rejects.toThrow(Overdue);
  await expect(never).rejects.toThrow('The browser did not answer within 0.01 s.');
});
