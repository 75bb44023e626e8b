import type { Writable } from 'node:stream';
import type { Share } from './byte-budget.ts';

/** How much is handed to the stream at once: the stream keeps it until all of it is sent. */
const WINDOW = 1024 * 1024;
const SLICE = 256 * 1024;
/** Up to this much is written directly. */
const DIRECT = 2 * WINDOW;
/** More than this is counted. */
const MUCH = 256 * 1024;

interface Entry {
  piece: Buffer | string;
  written: (() => void) | undefined;
}

/**
 * Writes large data to a stream a window at a time: sent data is freed early, and it is visible whether the far end
 * reads. Small data is written directly.
 */
export function pacedWriter(stream: Writable, share: Share) {
  let queue: Entry[] = [];
  let at = 0;
  let queued = 0;

  stream.on('drain', () => {
    if (share.bytes === 0) return;
    share.set(queued); // what the stream had is sent
    if (queued > 0) pump();
  });
  stream.on('close', drop);

  function count(): void {
    const waiting = queued + stream.writableLength;
    if (waiting > MUCH) share.set(waiting);
  }

  function pump(): void {
    stream.cork();
    while (at < queue.length && stream.writableLength < WINDOW) {
      const entry = queue[at]!;
      const { piece } = entry;
      if (typeof piece !== 'string' && piece.length > 2 * SLICE) {
        stream.write(piece.subarray(0, SLICE));
        entry.piece = piece.subarray(SLICE);
        queued -= SLICE;
        continue;
      }
      write(entry);
      queued -= piece.length;
      queue[at] = WRITTEN;
      at += 1;
    }
    stream.uncork();
    if (at === queue.length) {
      queue = [];
      at = queued = 0;
    }
  }

  function write({ piece, written }: Entry): void {
    if (written) stream.write(piece, (error) => error ?? written());
    else stream.write(piece);
  }

  function drop(): void {
    queue = [];
    at = queued = 0;
    share.close();
  }

  return {
    /** Bytes that were accepted and have not left this process. */
    get waiting(): number {
      return queued + stream.writableLength;
    },

    /** `written` is called when the last byte has left; never, if the stream ends first. */
    write(pieces: readonly (Buffer | string)[], bytes: number, written?: () => void): void {
      const last = pieces.length - 1;
      if (queued === 0 && bytes <= DIRECT && stream.writableLength <= WINDOW) {
        if (last > 0) stream.cork();
        for (let i = 0; i < last; i++) stream.write(pieces[i]!);
        if (written) write({ piece: pieces[last]!, written });
        else stream.write(pieces[last]!);
        if (last > 0) stream.uncork();
      } else {
        for (const [i, piece] of pieces.entries()) queue.push({ piece, written: i === last ? written : undefined });
        queued += bytes;
        if (stream.writableLength < WINDOW) pump();
      }
      count();
    },

    drop,
  };
}

const WRITTEN: Entry = { piece: '', written: undefined };
