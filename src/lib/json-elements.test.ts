import { expect, test } from 'vitest';
import { jsonElements, TooHeavy } from './json-elements.ts';

async function elements(text: string, path: string[] = [], most = { all: 1000, each: 1000 }): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const element of jsonElements(Buffer.from(text), path, most)) found.push(element);
  return found;
}

test.each([
  '[]',
  ' [ ] ',
  '[1]',
  '["a,b]", "\\"}", {"x":[1,{"y":","}]} , [], {}, null]',
  '[[[]],{"a":{}}]\n',
  '["é€😀"]',
])('the elements of %s are those that JSON.parse finds', async (text) => {
  expect(await elements(text)).toEqual(JSON.parse(text));
});

test.each([
  '{"items":[1,{"items":[2]}]}',
  '{"a":{"items":[0]},\n "items" : [3] , "b":"items"}',
  '{"items":[1],"items":[2]}',
])('the array of a member is found in %s', async (text) => {
  expect(await elements(text, ['items'])).toEqual(JSON.parse(text).items);
});

test.each([
  '',
  ' ',
  '{}',
  '5',
  '"[1]"',
  '[',
  '[1',
  '[1,]',
  '[,1]',
  '[1 2]',
  '[1]]',
  '[1][2]',
  '[{]}',
  '[1] x',
  '["a]',
  'x[1]',
])('%j is no array', async (text) => {
  await expect(elements(text)).rejects.toThrow(SyntaxError);
});

test.each(['[1]', '{}', '{"item":[1]}', '{"items":5}', '{"a":{"items":[1]}}', '{"items"}', '{"items":[1]'])(
  '%j has no array at the member',
  async (text) => {
    await expect(elements(text, ['items'])).rejects.toThrow(SyntaxError);
  },
);

test('an array, and each of its elements, has a bounded weight', async () => {
  const light = '[[1,2],[1,2],[1,2]]';
  expect(await elements(light, [], { all: 9, each: 2 })).toHaveLength(3);
  await expect(elements(light, [], { all: 8, each: 2 })).rejects.toThrow(TooHeavy);
  await expect(elements('[[1,2],[1,2,3],[1,2]]', [], { all: 100, each: 2 })).rejects.toThrow('more than 2 names');
  await expect(elements(`{"other":${light},"items":[1]}`, ['items'], { all: 8, each: 8 })).rejects.toThrow(TooHeavy);
});
