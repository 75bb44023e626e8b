import { Pieces } from '../../lib/pieces.ts';

/** The longest line that is sent; the rest of a longer one is left out. */
export const longestLine = 64 * 1024;

/** Assembles lines from pieces of any size, and cuts those that are too long. Works on bytes, since a piece may end within a character. */
export function lineReader(onLine: (line: string) => void) {
  const kept = new Pieces();
  let length = 0;

  function add(part: Buffer) {
    if (length < longestLine) kept.add(part.subarray(0, longestLine - length));
    length += part.length;
  }

  function end() {
    const text = kept.take().toString();
    onLine(length > longestLine ? text.replace(/\uFFFD$/, '') : text.replace(/\r$/, ''));
    length = 0;
  }

  return {
    read(data: Buffer) {
      let from = 0;
      for (let at = data.indexOf(10); at !== -1; at = data.indexOf(10, from)) {
        add(data.subarray(from, at));
        end();
        from = at + 1;
      }
      if (from < data.length) add(data.subarray(from));
    },
    /** The last line may lack a line break. */
    end: () => void (length > 0 && end()),
  };
}
