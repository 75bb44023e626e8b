import type { Readable } from 'node:stream';

/** The most of a line that is kept, in characters. */
export const LONGEST_LINE = 64 * 1024;

/**
 * The limit for output in one window of time: characters, and a price for each line and each piece. It bounds the work for an endless
 * output: an app that prints byte by byte caused the work of a piece for each byte.
 */
const WINDOW_MS = 100;
const MOST_IN_WINDOW = 2 ** 18;
const PRICE_OF_LINE = 50;
const PRICE_OF_PIECE = 100;

/** Calls `onLine` for every line of a text stream; longer lines are cut. The rest of the stream is the last line. */
export function cutLines(stream: Readable | null, onLine: (line: string) => void): void {
  let line = '';
  const say = () => {
    const said = line.replace(/\r$/, '');
    line = '';
    if (said !== '') onLine(said);
  };
  let taken = 0;
  let window: NodeJS.Timeout | undefined;
  const next = () => {
    [taken, window] = [0, undefined];
    stream?.resume();
  };
  stream?.setEncoding('utf8');
  stream?.on('data', (text: string) => {
    let from = 0;
    taken += text.length + PRICE_OF_PIECE;
    window ??= setTimeout(next, WINDOW_MS);
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', from)) {
      line += text.slice(from, Math.min(at, from + LONGEST_LINE - line.length));
      say();
      taken += PRICE_OF_LINE;
      from = at + 1;
    }
    line += text.slice(from, from + LONGEST_LINE - line.length);
    if (taken > MOST_IN_WINDOW) stream?.pause();
  });
  stream?.once('close', () => {
    clearTimeout(window);
    say();
  });
}
