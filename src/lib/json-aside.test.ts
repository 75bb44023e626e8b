import { expect, test } from 'vitest';
import { isJson } from './json-aside.ts';

test('a text is JSON or not, however many values it has', async () => {
  const many = `[${'{},'.repeat(200_000)}{}]`;
  expect(await Promise.all(['{"a":1}', '{a:1}', '', many, `${many}]`].map(isJson))).toEqual([
    true,
    false,
    false,
    true,
    false,
  ]);
});
