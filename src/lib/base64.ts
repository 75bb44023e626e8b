import { turns } from './turns.ts';

/** A multiple of four characters, and of three bytes: no piece has padding, except for the last one. */
const PIECE = 192 * 1024;

/** The bytes of Base64. They are decoded in several turns of the event loop. */
export async function fromBase64(text: string): Promise<Buffer> {
  const turn = turns();
  const bytes = Buffer.allocUnsafeSlow(Math.ceil(text.length / 4) * 3);
  let size = 0;
  for (let at = 0; at < text.length; at += PIECE) {
    size += bytes.write(text.slice(at, at + PIECE), size, 'base64');
    await turn();
  }
  return bytes.subarray(0, size);
}

/** Bytes as Base64, in parts. Each is made in a turn of its own. */
export async function* base64Parts(bytes: Buffer): AsyncGenerator<Buffer> {
  const turn = turns();
  for (let at = 0; at < bytes.length; at += PIECE) {
    yield Buffer.from(bytes.subarray(at, at + PIECE).toString('base64'), 'latin1');
    await turn();
  }
}
