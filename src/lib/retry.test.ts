import { expect, test } from 'vitest';
import { retried } from './retry.ts';

const pauses = { firstMs: 1, longestMs: 2 };

test('work is repeated until it succeeds', async () => {
  const errors: string[] = [];
  let tries = 0;
  const work = () => (++tries < 4 ? Promise.reject(new Error(`no ${tries}`)) : Promise.resolve('done'));
  const failed = ({ message }: Error) => (errors.push(message), 'again' as const);
  await expect(retried(work, failed, pauses)).resolves.toBe('done');
  expect(errors).toEqual(['no 1', 'no 2', 'no 3']);
});

test('work is given up when the caller says so', async () => {
  let tries = 0;
  const work = () => Promise.reject(new Error(`no ${++tries}`));
  await expect(retried(work, () => (tries === 2 ? 'stop' : 'again'), pauses)).resolves.toBeUndefined();
  expect(tries).toBe(2);
});
