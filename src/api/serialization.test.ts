import { expect, test } from 'vitest';
import { withAnything } from './serialization.ts';

test('objects that may have any properties are written as they are, and others by their properties', () => {
  const free = { type: 'object', additionalProperties: true, description: 'Anything.' };
  const shape = { type: 'object', properties: { id: { type: 'string' }, policy: free }, required: ['id'] };
  const union = { anyOf: [free, { type: 'null' }] };
  expect(withAnything({ type: 'array', items: [shape, union] })).toEqual({
    type: 'array',
    items: [{ ...shape, properties: { id: { type: 'string' }, policy: {} } }, { anyOf: [{}, { type: 'null' }] }],
  });
  const some = { ...shape, additionalProperties: true };
  expect(withAnything(some)).toMatchObject({ additionalProperties: true, required: ['id'] });
});
