import { expect, test } from 'vitest';
import { withShortStrings } from './json-strings.ts';

const cut = (value: unknown, most: number) =>
  JSON.parse(withShortStrings(Buffer.from(JSON.stringify(value)), most)!.toString());

test('long strings are cut and say so, and the rest stays as it is', () => {
  const value = { a: 'x'.repeat(1000), b: ['short', 1, null, { 'c"\\': 'y'.repeat(50) }], d: '\\'.repeat(20) };
  expect(cut(value, 100)).toEqual({ ...value, a: `${'x'.repeat(100)}… (900 bytes more)` });
  const short = Buffer.from('{"a":"b"}');
  expect(withShortStrings(short, 100)).toBe(short);
});

test('no escape and no character is cut in two', () => {
  const units = ['"', '\\', '\\"', '\n', '\u0001', 'é', '中', '😀', 'a\\', '\u2028x'];
  for (const unit of units) {
    const text = unit.repeat(200);
    for (let most = 1; most < 40; most++) {
      const [kept] = cut([text], most)[0].split('…');
      expect(text.startsWith(kept), `${unit} at ${most}`).toBe(true);
      expect(Buffer.byteLength(JSON.stringify(kept))).toBeLessThanOrEqual(most + 2);
    }
  }
});

test('a hundred thousand strings are searched, and no more than twice as many', () => {
  const strings = (count: number) => Buffer.from(`[${Array(count).fill('""').join(',')}]`);
  expect(withShortStrings(strings(100_000), 10)).toBeInstanceOf(Buffer);
  expect(withShortStrings(strings(200_000), 10)).toBeUndefined();
});

test('bytes that are not JSON are no fault', () => {
  for (const bytes of ['"', '"\\', '"'.repeat(9), `"${'x'.repeat(99)}`, `"${'\\'.repeat(99)}`])
    expect(withShortStrings(Buffer.from(bytes), 10)).toBeInstanceOf(Buffer);
});

test.each([
  ['quotes in a string', JSON.stringify('"'.repeat(1_000_000))],
  ['empty strings', '""'.repeat(600_000)],
  ['empty strings far from each other', `""${' '.repeat(50)}`.repeat(600_000)],
  ['backslashes', `"${'\\'.repeat(21_000_000)}"`],
])('the search ends after too many %s', (_, text) => {
  expect(withShortStrings(Buffer.from(text), 10)).toBeUndefined();
});
