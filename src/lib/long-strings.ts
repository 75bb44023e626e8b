import { turns } from './turns.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * JSON in pieces, with every string of more than `longest` bytes replaced by an empty one. Yields to the event loop between pieces. The
 * rest stays in as few parts as possible: a page chooses how many short strings there are.
 */
export async function withoutLongStrings(pieces: readonly Buffer[], longest: number): Promise<Buffer> {
  const turn = turns();
  const kept: Buffer[] = [];
  /** The content so far of a string that began in an earlier piece; undefined outside of strings. */
  let content: Buffer[] | undefined;
  let length = 0;
  let escaped = false;
  for (const piece of pieces) {
    /** The start of the piece's part that is to be kept and not in `kept` yet. */
    let from = 0;
    for (let at = 0; at < piece.length;) {
      const begin = at;
      if (!content) {
        at = piece.indexOf(QUOTE, at) + 1 || piece.length;
        if (piece[at - 1] !== QUOTE) break;
        [content, length] = [[], 0];
        continue;
      }
      if (escaped) at += 1;
      while (at < piece.length && piece[at] !== QUOTE) at += piece[at] === BACKSLASH ? 2 : 1;
      escaped = at > piece.length; // the character after a backslash is in the next piece
      at = Math.min(at, piece.length);
      length += at - begin;
      const closes = at < piece.length;
      if (length > longest || !closes || content.length > 0) {
        kept.push(piece.subarray(from, begin));
        if (length > longest) content = [];
        else content.push(piece.subarray(begin, at));
        from = at;
      }
      if (!closes) break;
      kept.push(...content);
      content = undefined;
      at += 1;
    }
    kept.push(piece.subarray(from));
    await turn();
  }
  return Buffer.concat(kept);
}
