import { expect, test } from 'vitest';
import { latest } from './latest.ts';

test('values are written one after the other, and of those that wait only the newest', async () => {
  const written: number[] = [];
  const failed: string[] = [];
  const calls: (() => void)[] = [];
  const write = latest<number>(
    async (value) => {
      await new Promise<void>((resolve) => calls.push(resolve));
      if (value === 3) throw new Error('three');
      written.push(value);
    },
    (error) => failed.push(error.message),
  );
  const done = async () => {
    await expect.poll(() => calls.length).toBe(1);
    calls.shift()!();
  };
  for (const value of [1, 2, 3]) write(value);
  await done();
  await done();
  await expect.poll(() => failed).toEqual(['three']);
  write(4);
  await done();
  await expect.poll(() => written).toEqual([1, 4]);
});
