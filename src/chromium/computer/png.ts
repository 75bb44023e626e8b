import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { crc32, createDeflate } from 'node:zlib';
import { turns } from '../../lib/turns.ts';
import type { Picture } from './display-client.ts';

/** Rows are encoded in bands of about this many bytes: a whole picture would hold the event loop for some hundred milliseconds. */
const BAND = 256 * 1024;

/** Encodes a picture of a display as PNG. The fastest compression is chosen for speed; the gain of slower ones was not measured. */
export async function encodePng(picture: Picture): Promise<Buffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(picture.width, 0);
  header.writeUInt32BE(picture.height, 4);
  header.set([8, 2, 0, 0, 0], 8); // eight bits, red green blue
  const parts = [SIGNATURE, ...chunk('IHDR', header)];
  await pipeline(
    Readable.from(bands(picture)),
    createDeflate({ level: 1, chunkSize: BAND }),
    async (compressed: AsyncIterable<Buffer>) => {
      for await (const data of compressed) parts.push(...chunk('IDAT', data));
    },
  );
  return Buffer.concat([...parts, ...chunk('IEND', Buffer.alloc(0))]);
}

async function* bands(picture: Picture): AsyncGenerator<Buffer> {
  const rows = Math.max(1, Math.floor(BAND / (1 + picture.width * 3)));
  const turn = turns();
  for (let y = 0; y < picture.height; y += rows) {
    yield band(picture, y, Math.min(y + rows, picture.height));
    await turn();
  }
}

/** Each row is stored as its difference from the row above, which on pages is mostly zero. */
function band({ width, pixels }: Picture, from: number, to: number): Buffer {
  const rows = Buffer.allocUnsafe((to - from) * (1 + width * 3));
  const stride = width * 4;
  let out = 0;
  for (let y = from; y < to; y++) {
    let at = y * stride;
    let above = at - stride;
    if (y === 0) {
      rows[out++] = 0; // no filter
      for (let x = 0; x < width; x++, at += 4) {
        rows[out++] = pixels[at + 2]!;
        rows[out++] = pixels[at + 1]!;
        rows[out++] = pixels[at]!;
      }
    } else {
      rows[out++] = 2; // difference from the row above; a buffer keeps the low byte
      for (let x = 0; x < width; x++, at += 4, above += 4) {
        rows[out++] = pixels[at + 2]! - pixels[above + 2]!;
        rows[out++] = pixels[at + 1]! - pixels[above + 1]!;
        rows[out++] = pixels[at]! - pixels[above]!;
      }
    }
  }
  return rows;
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

function chunk(type: string, data: Buffer): Buffer[] {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(data.length, 0);
  head.write(type, 4, 'latin1');
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(data, crc32(head.subarray(4))));
  return [head, data, sum];
}
