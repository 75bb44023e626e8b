import { promisify } from 'node:util';
import { crc32, deflate } from 'node:zlib';
import type { Picture } from './display-client.ts';

const compress = promisify(deflate);

/**
 * Encodes a picture of a display as PNG. Each row is stored as its difference from the row above, which on pages is mostly zero. The
 * fastest compression is chosen for speed; the gain of slower ones was not measured.
 */
export async function encodePng({ width, height, pixels }: Picture): Promise<Buffer> {
  const rows = Buffer.allocUnsafe(height * (1 + width * 3));
  const stride = width * 4;
  let out = 0;
  for (let y = 0; y < height; y++) {
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
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8); // eight bits, red green blue
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('IDAT', await compress(rows, { level: 1 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

function chunk(type: string, data: Buffer): Buffer {
  const whole = Buffer.alloc(12 + data.length);
  whole.writeUInt32BE(data.length, 0);
  whole.write(type, 4, 'latin1');
  data.copy(whole, 8);
  whole.writeUInt32BE(crc32(whole.subarray(4, 8 + data.length)), 8 + data.length);
  return whole;
}
