import { afterEach, expect, test, vi } from 'vitest';
import { withoutLongStrings } from './long-strings.ts';

afterEach(() => vi.restoreAllMocks());

const cutInto = (text: string, size: number) => {
  const bytes = Buffer.from(text);
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
};

test.each([1, 2, 3, 7, 1000])('only long strings are emptied, in pieces of %i bytes', async (size) => {
  const value = {
    short: 'a"b\\c\n€"',
    long: 'x'.repeat(500),
    quotes: '"'.repeat(300),
    slashes: '\\'.repeat(299),
    list: ['', 'y'.repeat(101), { z: 1, end: '\\' }],
  };
  const result = await withoutLongStrings(cutInto(JSON.stringify(value), size), 100);
  expect(JSON.parse(result.toString())).toEqual({
    ...value,
    long: '',
    quotes: '',
    slashes: '',
    list: ['', '', { z: 1, end: '\\' }],
  });
});

test('many short strings are kept in a few parts', async () => {
  const value = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`h${i}`, 'v']));
  const pieces = cutInto(JSON.stringify({ ...value, long: 'x'.repeat(200) }), 1000);
  const concat = vi.spyOn(Buffer, 'concat');
  const result = await withoutLongStrings(pieces, 100);
  expect(concat.mock.calls.flatMap(([parts]) => [...parts]).length).toBeLessThan(5 * pieces.length);
  expect(JSON.parse(result.toString())).toEqual({ ...value, long: '' });
});
