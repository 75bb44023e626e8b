import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { openChunks, sealChunks } from './seal-chunks.ts';
import { CannotOpen } from './seal.ts';

const key = randomBytes(32);

async function* from(...pieces: Buffer[]) {
  yield* pieces;
}

async function all(pieces: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for await (const piece of pieces) found.push(piece);
  return found;
}

const sealed = async (...pieces: Buffer[]) => all(sealChunks(key, from(...pieces)));
const opened = async (chunks: Buffer[], by = key) => Buffer.concat(await all(openChunks(by, from(...chunks))));

describe('a sealed stream', () => {
  test.each([0, 1, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 1_000_000])(
    'of %i bytes opens as it was',
    async (size) => {
      const plain = randomBytes(size);
      const chunks = await sealed(plain.subarray(0, size >> 1), plain.subarray(size >> 1));
      expect((await opened(chunks)).equals(plain)).toBe(true);
      expect(chunks.every((chunk) => chunk.length <= 256 * 1024 + 16)).toBe(true);
    },
  );

  const plain = randomBytes(900_000);
  const without = (at: number) => (chunks: Buffer[]) => chunks.filter((_, index) => index !== at);
  test.each<[string, (chunks: Buffer[]) => Buffer[]]>([
    ['is cut off at the end', (chunks) => chunks.slice(0, -1)],
    ['is cut off in the middle of a chunk', (chunks) => [...chunks.slice(0, -1), chunks.at(-1)!.subarray(0, 40)]],
    ['is empty', () => []],
    ['lacks its first chunk', without(0)],
    ['lacks one in the middle', without(1)],
    ['has two swapped', ([a, b, ...rest]) => [b!, a!, ...rest]],
    ['has one twice', ([a, ...rest]) => [a!, a!, ...rest]],
    ['continues after its end', (chunks) => [...chunks, chunks.at(-1)!]],
    ['has a bit changed', ([a, ...rest]) => [Buffer.from(a!.map((byte, at) => (at === 9 ? byte ^ 1 : byte))), ...rest]],
  ])('that %s does not open', async (_, change) => {
    await expect(opened(change(await sealed(plain)))).rejects.toThrow(CannotOpen);
  });

  test('does not open with another key', async () => {
    await expect(opened(await sealed(plain), randomBytes(32))).rejects.toThrow(CannotOpen);
  });
});
