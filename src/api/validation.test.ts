import { Type } from 'typebox';
import { expect, test } from 'vitest';
import { validatorCompiler } from './validation.ts';

const Tags = Type.Unsafe({ type: 'object', additionalProperties: { type: 'string', maxLength: 3 } });
const Item = Type.Object(
  { size: Type.Integer(), 'a-name': Type.Optional(Type.Boolean()) },
  { additionalProperties: false },
);
const schema = Type.Object(
  { tags: Type.Optional(Tags), list: Type.Optional(Type.Array(Item)), item: Type.Optional(Item) },
  { additionalProperties: false },
);
const validate = validatorCompiler()({ schema, httpPart: 'body', method: 'POST', url: '/' });
const refusal = (body: unknown) => (validate(body) as { error?: Error }).error?.message;

test.each([
  [{ item: { size: 'x' } }, 'item.size must be an integer.'],
  [{ item: {} }, 'item.size is missing.'],
  [{ item: { size: 1, 'a-name': 'x' } }, 'item.a-name must be a boolean.'],
  [{ list: [{ size: 1 }, { size: 1, b: 2 }] }, 'list.1.b is not a field here.'],
  [{ list: [{ size: 1 }, { size: 'x' }] }, 'list.1.size must be an integer.'],
  [{ tags: { "it's": 5 } }, "tags.it's must be a string."],
  [{ tags: { 'a/b.c': 'long' } }, 'tags.a/b.c must have at most 3 characters.'],
  [{ other: 1 }, 'other is not a field here.'],
  [[], 'The body must be an object.'],
])('%j is refused by the name of the field', (body, message) => expect(refusal(body)).toBe(message));

test.each(['/', '\u0001', 'ж', "']['"])('a name of many %j is cut where it is repeated', (unit) => {
  const name = unit.repeat(100_000);
  expect(refusal({ [name]: 1 })).toHaveLength('… is not a field here.'.length + 200);
  expect(refusal({ item: { size: 1, [name]: 1 } })).toHaveLength('item.… is not a field here.'.length + 200);
  expect(refusal({ tags: { [name]: 1 } })!.length).toBeLessThan(300);
});
