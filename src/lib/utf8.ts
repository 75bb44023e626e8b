import { isUtf8 } from 'node:buffer';
import { StringDecoder } from 'node:string_decoder';
import { turns } from './turns.ts';

const PIECE = 2 ** 20;

/** The text of these bytes. Letters of two bytes take 8 ms for each MiB, so a long text is decoded in several turns of the event loop. */
export async function decode(bytes: Buffer): Promise<string> {
  const pause = turns();
  const decoder = new StringDecoder();
  let text = '';
  for (let at = 0; at < bytes.length; at += PIECE) {
    text += decoder.write(bytes.subarray(at, at + PIECE));
    await pause();
  }
  return text + decoder.end();
}

/**
 * How many bytes of `data` are complete UTF-8 characters, when more may follow: its length, or the start of an incomplete
 * last character. Undefined when no continuation can make it UTF-8.
 */
export function wholeUtf8(data: Buffer): number | undefined {
  const end = unfinishedAt(data);
  if (!isUtf8(end === data.length ? data : data.subarray(0, end))) return undefined;
  return end === data.length || isBeginning(data.subarray(end)) ? end : undefined;
}

/** Where the last character begins, if bytes of it are missing; otherwise the length. */
function unfinishedAt(data: Buffer): number {
  const { length } = data;
  for (let back = 1; back <= 3 && back <= length; back++) {
    const byte = data[length - back]!;
    if (byte < 0x80) return length;
    if (byte >= 0xc0) return lengthOf(byte) > back ? length - back : length;
  }
  return length;
}

function lengthOf(first: number): number {
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf8 ? 4 : 1;
}

/** The second byte shows overlong forms, surrogates and values above U+10FFFF; later bytes only have to be continuations. */
function isBeginning(tail: Buffer): boolean {
  const first = tail[0]!;
  if (tail.length === 1) return first >= 0xc2 && first <= 0xf4;
  const whole = Buffer.alloc(lengthOf(first), 0x80);
  tail.copy(whole);
  return isUtf8(whole);
}
