import type { Log } from '../lib/log.ts';
import { bytesOf, type LogStore } from './log-store.ts';

const everyMs = 200;
/** What one build or invocation may have; the rest is left out, and a last line says so. */
const mostLines = 50_000;
const mostCharacters = 16 * 2 ** 20;
/** Lines that wait for the database. A store that does not answer must not take the service's memory. */
const mostWaiting = 5000;
const lastLines = 20;
/** One statement has so many lines and about so many characters at most. */
const atOnce = { lines: 1000, characters: 2 ** 20 };

/** Takes the lines of one build or invocation. */
export interface LineWriter {
  add(line: string): void;
  /** A text of the app without what may not be shown or stored. */
  hide(text: string): string;
  /** The last lines, for a reason. */
  tail(count?: number): string[];
  /** Resolves when all lines are stored, or cannot be. */
  flush(): Promise<void>;
  /** Stores the rest and stops. */
  close(): Promise<void>;
}

/** Writes lines in batches, in their order. */
export function lineWriter(
  {
    store,
    log,
    short,
  }: {
    store: Pick<LogStore, 'add' | 'count'>;
    log: Log;
    /** The disk has its reserve left, which is not for logs. */ short?: () => boolean;
  },
  owner: string,
  redact: (line: string) => string,
): LineWriter {
  let waiting: { at: Date; message: string }[] = [];
  let [lines, characters] = [0, 0];
  let full = false;
  let stored = 0;
  const tail: string[] = [];
  let writing = Promise.resolve();

  function push(message: string) {
    waiting.push({ at: new Date(), message });
    tail.push(message.slice(0, 1000));
    if (tail.length > lastLines) tail.shift();
  }

  const notWritten = (error: Error) => log.warn({ owner, error: error.message }, 'logs.not_written');

  function write(): Promise<void> {
    writing = writing.then(async () => {
      const batch = waiting.splice(0, fitting(waiting));
      if (batch.length === 0 || short?.()) return;
      stored += bytesOf(batch);
      await store.add(owner, batch).catch(notWritten);
    });
    return writing;
  }

  const timer = setInterval(() => waiting.length > 0 && void write(), everyMs);

  async function flush() {
    do await write();
    while (waiting.length > 0);
  }

  const hide = (text: string) => redact(text).replaceAll('\0', '\ufffd'); // PostgreSQL stores no NUL

  return {
    hide,
    add(line) {
      if (full) return;
      const message = hide(line).replaceAll('\n', ' ');
      lines++;
      characters += message.length;
      full = lines > mostLines || characters > mostCharacters || waiting.length > mostWaiting;
      push(full ? 'Further lines are not kept: it has printed more than the log takes.' : message);
    },
    tail: (count = 5) => tail.slice(-count),
    flush,
    async close() {
      clearInterval(timer);
      await flush();
      if (stored > 0) await store.count(owner, stored).catch(notWritten);
    },
  };
}

/** How many of the lines one statement takes. */
function fitting(lines: readonly { message: string }[]): number {
  let [count, characters] = [0, 0];
  while (count < Math.min(lines.length, atOnce.lines) && characters < atOnce.characters)
    characters += lines[count++]!.message.length;
  return count;
}
