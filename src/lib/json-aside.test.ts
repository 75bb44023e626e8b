import type * as threadsOfNode from 'node:worker_threads';
import { expect, test, vi } from 'vitest';
import { isJson, NotChecked } from './json-aside.ts';

let threads = true;
vi.mock('node:worker_threads', async (original) => {
  const { Worker, ...rest } = await original<typeof threadsOfNode>();
  class Sometimes extends Worker {
    constructor(...args: ConstructorParameters<typeof Worker>) {
      if (!threads) throw new Error('ERR_WORKER_INIT_FAILED');
      super(...args);
    }
  }
  return { ...rest, Worker: Sometimes };
});

test('a text is JSON or not, however many values it has', async () => {
  const many = `[${'{},'.repeat(200_000)}{}]`;
  expect(await Promise.all(['{"a":1}', '{a:1}', '', many, `${many}]`].map((text) => isJson(text, 'one')))).toEqual([
    true,
    false,
    false,
    true,
    false,
  ]);
});

test('a text for which no thread can be started is not judged, and later ones are', async () => {
  const heavy = `[${'{},'.repeat(100_000)}{}]`;
  threads = false;
  await expect(isJson(heavy, 'one')).rejects.toThrow(NotChecked);
  threads = true;
  expect(await isJson(heavy, 'one')).toBe(true);
});

test('an owner has so many texts in line, and another owner is served after the next of them', async () => {
  const heavy = `[${'{},'.repeat(50_000)}{}]`;
  const over: string[] = [];
  const check = (owner: string) => isJson(heavy, owner).then(() => over.push(owner));
  const many = Array.from({ length: 21 }, () => check('many'));
  await expect(check('many')).rejects.toThrow(NotChecked);
  await check('other');
  expect(over.filter((owner) => owner === 'many').length).toBeLessThan(3);
  await Promise.all(many);
});
