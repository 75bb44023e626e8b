import { StringDecoder } from 'node:string_decoder';
import { turns } from './turns.ts';

/** A multiple of three, so that the Base64 of a piece has no padding. */
const PIECE = 192 * 1024;

/** The JSON string of bytes, in parts. Each is made in a turn of its own: 32 MiB at once took 0.3 s. */
export async function* jsonStringParts(bytes: Buffer, encoding: 'utf8' | 'base64'): AsyncGenerator<Buffer> {
  const turn = turns();
  const decoder = new StringDecoder('utf8');
  yield Buffer.from('"');
  for (let at = 0; at < bytes.length; at += PIECE) {
    const piece = bytes.subarray(at, at + PIECE);
    const text = encoding === 'base64' ? piece.toString('base64') : decoder.write(piece);
    yield Buffer.from(JSON.stringify(text).slice(1, -1));
    await turn();
  }
  yield Buffer.from(`${JSON.stringify(decoder.end()).slice(1, -1)}"`);
}

/** The JSON of an object with one list, in parts of about `PIECE` characters. Each is made in a turn of its own. */
export async function jsonListParts(name: string, items: Iterable<unknown>): Promise<Buffer[]> {
  const turn = turns();
  const parts: Buffer[] = [];
  let text = `{${JSON.stringify(name)}:[`;
  let separator = '';
  for (const item of items) {
    text += separator + JSON.stringify(item);
    separator = ',';
    if (text.length < PIECE) continue;
    parts.push(Buffer.from(text));
    text = '';
    await turn();
  }
  return [...parts, Buffer.from(`${text}]}`)];
}
