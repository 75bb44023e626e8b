import { expect, test } from 'vitest';
import { GrowingBytes } from './growing-bytes.ts';

test('bytes in pieces of any size become one buffer', () => {
  const growing = new GrowingBytes();
  expect(growing.all()).toHaveLength(0);
  const pieces = [1, 0, 70_000, 3, 500_000, 65_536].map((size, at) => Buffer.alloc(size, at + 1));
  for (const piece of pieces) growing.add(piece);
  expect(growing.size).toBe(635_540);
  expect(growing.all().equals(Buffer.concat(pieces))).toBe(true);
});
