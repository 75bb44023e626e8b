import { expect, test } from 'vitest';
import { isJson, NotChecked } from './json-aside.ts';

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
  const noThread = () => {
    throw new Error('ERR_WORKER_INIT_FAILED');
  };
  await expect(isJson(heavy, 'one', noThread)).rejects.toThrow(NotChecked);
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
