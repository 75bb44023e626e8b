import { expect, test } from 'vitest';
import { finishedWithin, Overdue, within } from './deadline.ts';

test('work that is done in time has its result, and its failure', async () => {
  await expect(within(10_000, 'The browser', Promise.resolve(1))).resolves.toBe(1);
  await expect(within(10_000, 'The browser', Promise.reject(new Error('no')))).rejects.toThrow('no');
});

test('work that takes longer is given up with a sentence', async () => {
  const never = within(10, 'The browser', new Promise(() => {}));
  await expect(never).rejects.toThrow(Overdue);
  await expect(never).rejects.toThrow('The browser did not answer within 0.01 s.');
});

test('the error of late work may be another', async () => {
  await expect(within(10, () => new Error('too late'), new Promise(() => {}))).rejects.toThrow('too late');
});

test('a bounded wait says whether the work finished, and passes its failure on', async () => {
  await expect(finishedWithin(10_000, Promise.resolve('done'))).resolves.toBe(true);
  await expect(finishedWithin(10, new Promise(() => {}))).resolves.toBe(false);
  await expect(finishedWithin(10_000, Promise.reject(new Error('no')))).rejects.toThrow('no');
});
