import type { Readable } from 'node:stream';

const LINES = 200;
const LONGEST = 2000;
/** So much is read of it at once, and then nothing for the rest of the turn: a megabyte a second. */
const MOST_IN_A_TURN = 256 * 1024;
const TURN_MS = 250;
/** There is no D-Bus in the sandbox, and no flag that keeps Chromium from saying so a dozen times at every start. */
const NOISE = /:ERROR:dbus\/|dconf-CRITICAL/;

/** The last lines a process wrote, and those to come. */
export interface LogTail {
  (): string[];
  /** A line of the service's own among them. */
  say(line: string): void;
  /** Answers with what stops it. */
  follow(listener: (line: string) => void): () => void;
}

/** Keeps the last lines a process wrote: what an error message quotes. */
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
    // A process that writes without end waits for its turn, instead of taking the service's.
    if (read === 0 && stream) setTimeout(() => ((read = 0), stream.resume()), TURN_MS).unref();
    read += text.length;
    if (read > MOST_IN_A_TURN) stream?.pause();
    const parts = (partial + text).split('\n');
    // A process that never ends its line must not grow the service.
    partial = parts.pop()!.slice(0, LONGEST);
    for (const part of parts) {
      if (part.trim() === '' || NOISE.test(part)) continue;
      add(part.slice(0, LONGEST));
    }
  });
  stream?.on('error', () => {}); // the process is gone; `exited` says so

  const tail = () => (partial.trim() === '' ? [...lines] : [...lines, partial].slice(-LINES));
  return Object.assign(tail, {
    say: add,
    follow(listener: (line: string) => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  });
}
