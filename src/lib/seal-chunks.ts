import { createCipheriv, createDecipheriv } from 'node:crypto';
import { CannotOpen } from './seal.ts';

/**
 * Seals data that is too large for memory: AES-256-GCM over one chunk after the other, each bound to its index and the
 * last one marked as such. Chunks that were changed, swapped, left out or cut off at the end do not open. The key is for
 * one stream only, so a counter is a sufficient nonce.
 */
const plainBytes = 256 * 1024;
const tagBytes = 16;

export async function* sealChunks(key: Buffer, pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let index = 0;
  let waiting: Buffer[] = [];
  let length = 0;
  for await (const piece of pieces) {
    waiting.push(piece);
    length += piece.length;
    if (length <= plainBytes) continue; // the last chunk is known only when the input ends
    let rest = Buffer.concat(waiting);
    for (; rest.length > plainBytes; rest = rest.subarray(plainBytes))
      yield seal(key, index++, false, rest.subarray(0, plainBytes));
    waiting = [rest];
    length = rest.length;
  }
  yield seal(key, index, true, Buffer.concat(waiting));
}

/** Throws CannotOpen before the first chunk that was changed, and at the end if chunks are missing there. */
export async function* openChunks(key: Buffer, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let index = 0;
  let held: Buffer | undefined;
  for await (const chunk of chunks) {
    if (held) yield open(key, index++, false, held);
    held = chunk;
  }
  if (!held) throw new CannotOpen('There is nothing of it.');
  yield open(key, index, true, held);
}

function seal(key: Buffer, index: number, last: boolean, plain: Buffer): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce(index, last));
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

function open(key: Buffer, index: number, last: boolean, sealed: Buffer): Buffer {
  try {
    if (sealed.length < tagBytes) throw new Error('too short');
    const decipher = createDecipheriv('aes-256-gcm', key, nonce(index, last), { authTagLength: tagBytes });
    decipher.setAuthTag(sealed.subarray(-tagBytes));
    return Buffer.concat([decipher.update(sealed.subarray(0, -tagBytes)), decipher.final()]);
  } catch {
    throw new CannotOpen(`It was changed or cut short at chunk ${index}.`);
  }
}

function nonce(index: number, last: boolean): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt32BE(index, 4);
  bytes.writeUInt8(last ? 1 : 0, 11);
  return bytes;
}
