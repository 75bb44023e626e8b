import type { Readable } from 'node:stream';

const LINES = 200;
const LONGEST = 2000;
/** Bytes read within one turn. More waits for the next turn: a megabyte per second. */
const MOST_IN_A_TURN = 256 * 1024;
/** What a piece counts beside its bytes: a process may write byte by byte. */
const PRICE_OF_PIECE = 100;
const TURN_MS = 250;
/** There is no D-Bus in the sandbox, and no flag keeps Chromium from logging that a dozen times at every start. */
const NOISE = /:ERROR:dbus\/|dconf-CRITICAL/;

/** The last lines a process wrote, and new ones as they come. */
export interface LogTail {
  (): string[];
  /** Adds a line of the service. */
  say(line: string): void;
  /** Returns a function that stops following. */
  follow(listener: (line: string) => void): () => void;
}

/** Keeps the last lines a process wrote. Error messages quote them. */
export function logTail(stream: Readable | null): LogTail {
  const listeners = new Set<(line: string) => void>();
  const lines: string[] = [];
  let partial = '';
  let read = 0;

  function add(line: string) {
    lines.push(line);
    for (const listener of listeners) listener(line);
    if (lines.length > LINES) lines.splice(0, lines.length - LINES);
  }

  stream?.setEncoding('utf8');
  stream?.on('data', (text: string) => {
    // A process that writes without pause is throttled, so that it does not take the service's time.
    if (read === 0 && stream) setTimeout(() => ((read = 0), stream.resume()), TURN_MS).unref();
    read += text.length + PRICE_OF_PIECE;
    if (read > MOST_IN_A_TURN) stream?.pause();
    const parts = (partial + text).split('\n');
    // A process that never ends its line must not grow the service's memory.
    partial = parts.pop()!.slice(0, LONGEST);
    for (const part of parts) {
      if (part.trim() === '' || NOISE.test(part)) continue;
      add(part.slice(0, LONGEST));
    }
  });
  stream?.on('error', () => {}); // the process has exited; `exited` reports it

  const tail = () => (partial.trim() === '' ? [...lines] : [...lines, partial].slice(-LINES));
  return Object.assign(tail, {
    say: add,
    follow(listener: (line: string) => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  });
}
