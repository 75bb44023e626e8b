import { turns } from './turns.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** JSON in pieces, with every string of more than `longest` bytes replaced by an empty one. Yields to the event loop between pieces. */
export async function withoutLongStrings(pieces: readonly Buffer[], longest: number): Promise<Buffer> {
  const turn = turns();
  const kept: Buffer[] = [];
  /** The content of the string that is being read; undefined outside of strings. */
  let content: Buffer[] | undefined;
  let length = 0;
  let escaped = false;
  for (const piece of pieces) {
    for (let at = 0; at < piece.length;) {
      const begin = at;
      if (!content) {
        at = piece.indexOf(QUOTE, at) + 1 || piece.length;
        kept.push(piece.subarray(begin, at));
        if (piece[at - 1] === QUOTE) content = [];
        length = 0;
        continue;
      }
      if (escaped) at += 1;
      while (at < piece.length && piece[at] !== QUOTE) at += piece[at] === BACKSLASH ? 2 : 1;
      escaped = at > piece.length; // the character after a backslash is in the next piece
      at = Math.min(at, piece.length);
      length += at - begin;
      if (length > longest) content = [];
      else content.push(piece.subarray(begin, at));
      if (at === piece.length) continue;
      kept.push(...content, piece.subarray(at, at + 1));
      content = undefined;
      at += 1;
    }
    await turn();
  }
  return Buffer.concat(kept);
}
