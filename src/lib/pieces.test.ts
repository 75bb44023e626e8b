import { expect, test } from 'vitest';
import { Pieces } from './pieces.ts';

test('bytes that come one by one are held in few buffers, and come out as they came in', () => {
  const pieces = new Pieces();
  for (let at = 0; at < 100_000; at++) pieces.add(Buffer.from([at & 0xff]));
  expect(pieces.length).toBe(100_000);
  expect(pieces.held).toBeLessThan(20);
  const all = pieces.take();
  expect(all).toHaveLength(100_000);
  expect(all.every((byte, at) => byte === (at & 0xff))).toBe(true);
  expect([pieces.length, pieces.held]).toEqual([0, 0]);
});

test('pieces of all sizes keep their order', () => {
  const pieces = new Pieces();
  const sizes = [1, 5000, 0, 3, 4096, 4096, 1, 70_000, 2];
  const sent = sizes.map((size, at) => Buffer.alloc(size, at + 1));
  for (const piece of sent) pieces.add(piece);
  expect(pieces.take().equals(Buffer.concat(sent))).toBe(true);
});
