import { expect, test } from 'vitest';
import { parseBody } from './body.ts';
import { parseQuery } from './query.ts';

test.each([
  ['', {}],
  ['a=1&b=x%20y', { a: '1', b: 'x y' }],
  ['a=1&a=2&a=3', { a: ['1', '2', '3'] }],
  ['tags%5Bteam%5D=backend&tags[env]=prod', { tags: { team: 'backend', env: 'prod' } }],
  ['list[]=a&list[]=b', { list: ['a', 'b'] }],
  ['name=&limit=5', { limit: '5' }],
  ['a[b][c]=1', { 'a[b][c]': '1' }],
  ['tags=x&tags[k]=v', { tags: { k: 'v' } }],
])('the query %j', (text, expected) => {
  expect(JSON.parse(JSON.stringify(parseQuery(text)))).toEqual(expected);
});

test('a query cannot reach a prototype', () => {
  const query = parseQuery('__proto__[polluted]=1&constructor=2&tags[__proto__]=3');
  expect(Object.getPrototypeOf(query)).toBeNull();
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});

test('a body of half a million brackets is read like any other', () => {
  const deep = `${'['.repeat(500_000)}"\\u0041"${']'.repeat(500_000)}`;
  expect(() => parseBody(deep)).not.toThrow();
  expect(() => parseBody(deep.replace('0041', '0000'))).toThrow('NUL');
});
