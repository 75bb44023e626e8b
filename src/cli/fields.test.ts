import { expect, test } from 'vitest';
import type { Field } from '../lib/operation.ts';
import { place, valueOf } from './fields.ts';

const field = (more: Partial<Field>): Field => ({ name: 'some_field', type: 'string', about: '', ...more });

test.each<[Partial<Field>, unknown, unknown]>([
  [{ type: 'number' }, '12', 12],
  [{ type: 'number' }, '-3.5', -3.5],
  [{ type: 'boolean' }, false, false],
  [{ values: ['a', 'b'] }, 'b', 'b'],
  [{ many: true }, ['x', 'y'], ['x', 'y']],
  [{ type: 'json' }, ['{"a":[1]}'], { a: [1] }],
  [{ type: 'json' }, ['a=1', 'b=x=y'], { a: '1', b: 'x=y' }],
  [{ type: 'json' }, ['["https://example.com/?a=b"]'], ['https://example.com/?a=b']],
])('%j takes %j as %j', (kind, given, value) => {
  expect(valueOf(field(kind), given)).toEqual(value);
});

test.each<[Partial<Field>, unknown, RegExp]>([
  [{ type: 'number' }, 'many', /^--some-field takes a number, not 'many'/],
  [{ type: 'number' }, '', /takes a number/],
  [{ values: ['a', 'b', 'c'] }, 'd', /takes a, b or c, not 'd'/],
  [{ type: 'json' }, ['{'], /takes JSON/],
  [{ type: 'json' }, ['a=1', '{}'], /not both/],
  [{ type: 'json' }, ['@/nowhere'], /nowhere cannot be read/],
])('%j refuses %j', (kind, given, sentence) => {
  expect(() => valueOf(field(kind), given)).toThrow(sentence);
});

test('a dotted name adds to the object', () => {
  const body: Record<string, unknown> = { viewport: { width: 1 } };
  place(body, 'viewport.height', 2);
  place(body, 'profile.name', 'shop');
  expect(body).toEqual({ viewport: { width: 1, height: 2 }, profile: { name: 'shop' } });
});
