import { isUtf8 } from 'node:buffer';
import { expect, test } from 'vitest';
import { decode, wholeUtf8 } from './utf8.ts';

/** Every beginning of a character there is, and whether some continuation of it is UTF-8: found by trying them all. */
test('agrees with every continuation that could follow', () => {
  const edges = [0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0];
  const completes = (data: Buffer): boolean =>
    isUtf8(data) || (data.length < 4 && edges.some((byte) => byte > 0x7f && completes(Buffer.from([...data, byte]))));
  for (let first = 0; first < 256; first++) {
    for (const more of [[], ...edges.flatMap((a) => [[a], ...edges.map((b) => [a, b])])]) {
      const data = Buffer.from([first, ...more]);
      // Only one character at a time: what a second one would need to be finished is another row of this table.
      if (data.length > 1 && isUtf8(data.subarray(0, 1))) continue;
      if (data.length > 2 && isUtf8(data.subarray(0, 2))) continue;
      const good = wholeUtf8(data);
      expect([data.toString('hex'), good !== undefined]).toEqual([data.toString('hex'), completes(data)]);
      if (good !== undefined) expect(good).toBe(isUtf8(data) ? data.length : 0);
    }
  }
});

test('finds where the last character begins', () => {
  const text = Buffer.from('aé€😀');
  const begins = [0, 1, 3, 6, 10];
  for (let length = 0; length <= text.length; length++) {
    expect(wholeUtf8(text.subarray(0, length))).toBe(begins.findLast((at) => at <= length));
  }
});

test('decodes a long text as Node does, at each place where a piece may end', async () => {
  for (const before of ['', 'a', 'aa', 'aaa']) {
    const bytes = Buffer.concat([Buffer.from(before + '😀€é'.repeat(300_000)), Buffer.from([0xff, 0xf0, 0x9f])]);
    expect((await decode(bytes)) === bytes.toString()).toBe(true);
  }
});
