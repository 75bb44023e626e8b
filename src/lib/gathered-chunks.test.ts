import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { gatherChunks } from './gathered-chunks.ts';

test('small chunks of a turn become one, and the order of all chunks is kept', async () => {
  const body = new PassThrough();
  gatherChunks(body);
  const pieces: string[] = [];
  body.on('data', (piece: Buffer) => pieces.push(piece.toString()));
  const large = 'L'.repeat(5000);
  for (const chunk of ['a', 'b', large, 'c']) body.push(Buffer.from(chunk));
  expect(pieces).toEqual([]);
  await turn();
  body.push(Buffer.from(large));
  await turn();
  for (const chunk of ['d', 'e']) body.push(Buffer.from(chunk));
  body.push(null);
  await expect.poll(() => body.readableEnded).toBe(true);
  expect(pieces).toEqual([`ab${large}c`, large, 'de']);
});
