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

test('bytes that are not JSON are no fault, and too many quotes are not counted', () => {
  for (const bytes of ['"', '"\\', '"'.repeat(9), `"${'x'.repeat(99)}`, `"${'\\'.repeat(99)}`])
    expect(withShortStrings(Buffer.from(bytes), 10)).toBeInstanceOf(Buffer);
  expect(withShortStrings(Buffer.from(JSON.stringify('"'.repeat(2_000_000))), 10)).toBeUndefined();
});
