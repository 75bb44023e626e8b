import { expect, test } from 'vitest';
import { placeOf } from './copy.ts';

test.each([
  ['one:/tmp/a', { session: 'one', path: '/tmp/a' }],
  ['one:/tmp/a:b', { session: 'one', path: '/tmp/a:b' }],
  ['./one:/tmp/a', { path: './one:/tmp/a' }],
  ['/tmp/one:/x', { path: '/tmp/one:/x' }],
  ['a.txt', { path: 'a.txt' }],
  ['one:relative', { path: 'one:relative' }],
])('%s is %j', (text, place) => {
  expect(placeOf(text)).toEqual(place);
});
