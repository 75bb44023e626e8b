import { expect, test } from 'vitest';
import { inflateSync } from 'node:zlib';
import { encodePng } from './png.ts';

/** Decodes what `encodePng` writes: the pixels of each row, red green blue. */
function decode(png: Buffer) {
  const chunks: { type: string; data: Buffer }[] = [];
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    chunks.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += 12 + length;
  }
  const header = chunks[0]!.data;
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const rows = inflateSync(Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data)));
  const stride = 1 + width * 3;
  for (let y = 1; y < height; y++)
    for (let x = 1; x < stride; x++) rows[y * stride + x]! += rows[(y - 1) * stride + x]!;
  return { types: chunks.map(({ type }) => type), width, height, rows, stride };
}

test.each([
  [1, 1],
  [3, 2],
  [700, 500], // several bands
])('a picture of %i by %i is the same after decoding', async (width, height) => {
  const pixels = Buffer.from(Array.from({ length: width * height * 4 }, (_, at) => (at * 7919) >> 3));
  const png = decode(await encodePng({ width, height, pixels }));
  expect([png.width, png.height, png.types[0], png.types.at(-1)]).toEqual([width, height, 'IHDR', 'IEND']);
  expect(png.rows).toHaveLength(height * png.stride);
  const expected = Buffer.concat(
    Array.from({ length: width * height }, (_, at) => Buffer.from(pixels.subarray(at * 4, at * 4 + 3)).reverse()),
  );
  const decoded = Buffer.concat(
    Array.from({ length: height }, (_, y) => png.rows.subarray(y * png.stride + 1, (y + 1) * png.stride)),
  );
  expect(decoded.equals(expected)).toBe(true);
});
