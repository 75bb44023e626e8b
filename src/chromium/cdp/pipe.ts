import type { Readable, Writable } from 'node:stream';
import { memory, type Group } from '../../lib/byte-budget.ts';
import { pacedWriter } from '../../lib/paced-writer.ts';
import { loopPace, type Pace } from '../../lib/turns.ts';
import { pacedReader } from './paced-reader.ts';

/** Chromium's DevTools pipe: one JSON message after another, each ended by a NUL, in both directions. */
export interface Pipe {
  /** Takes one message, as text or in pieces, to send with the next `flush`. */
  send(message: string | readonly Buffer[]): void;
  /** Writes all messages taken since the last flush, at once. */
  flush(): void;
  /** Bytes that Chromium has not taken yet. */
  readonly bufferedAmount: number;
  /** Receives Chromium's messages. Set these before the first message can arrive. */
  onMessage: (message: Message) => void;
  /** Called when all messages that arrived together have been delivered: the time to flush. */
  onPause: () => void;
  /** Called when a pipe that `isFull` has room again. */
  onDrain: () => void;
  /** Called once, when either end is closed. */
  onClose: () => void;
  readonly isFull: boolean;
  /** What its bytes are counted to. */
  readonly group: Group;
  readonly closed: boolean;
  close(): void;
}

/**
 * A message from Chromium in the pieces it arrived in. The first piece holds at least the first `EDGE` bytes and the last piece the last
 * `EDGE` (or all of them, when there is one piece), so both ends can be read in place. The receiver owns the bytes and may write into
 * them.
 */
export type Message = [Buffer, ...Buffer[]];

/** How many bytes of either end of a message are guaranteed to be in one piece. */
const EDGE = 256;

const NUL = '\0';

/** Above this many waiting bytes, writers should stop reading from their own source until `onDrain`. */
const FULL = 1024 * 1024;

/** A longer message is not assembled: no part of the service could use it. */
const ENDLESS = 256 * 1024 * 1024;

/** A message in assembly counts towards the memory budget from this size on. */
const LARGE = 256 * 1024;

/** Pieces of a message in assembly are merged up to this size. */
const MERGED = 8 * 1024;

/** `toBrowser` is Chromium's fd 3, `fromBrowser` its fd 4, as `child.stdio[3]` and `[4]` give them. */
export function openPipe(
  toBrowser: Writable,
  fromBrowser: Readable,
  group: Group = memory.group(),
  pace: Pace = loopPace,
): Pipe {
  /** The beginning of an incomplete message, and the room behind its last piece. */
  let held: Message | undefined;
  let space: Buffer | undefined;
  let heldBytes = 0;
  /** Text that waits for the next flush, after the waiting pieces. */
  let text = '';
  let pieces: (string | Buffer)[] = [];
  let waitingBytes = 0;
  const assembly = memory.share(group, 'sender', () => pipe.close()); // the browser stopped in the middle of a message
  const writer = pacedWriter(
    toBrowser,
    memory.share(group, 'reader', () => pipe.close()),
  );

  const pipe = {
    onMessage: (_message: Message) => {},
    onPause: () => {},
    onDrain: () => {},
    onClose: () => {},
    closed: false,
    group,

    send(message: string | readonly Buffer[]) {
      if (pipe.closed) return;
      if (typeof message === 'string') {
        text += message + NUL;
        waitingBytes += message.length + 1;
      } else {
        if (text !== '') pieces.push(text);
        for (const piece of message) {
          pieces.push(piece);
          waitingBytes += piece.length;
        }
        text = NUL;
        waitingBytes += 1;
      }
    },

    flush() {
      if (pipe.closed || text === '') return;
      const first = pieces;
      const last = text;
      const bytes = waitingBytes;
      text = '';
      waitingBytes = 0;
      if (first.length === 0) return writer.write([last], bytes);
      pieces = [];
      first.push(last);
      writer.write(first, bytes);
    },

    get bufferedAmount() {
      return waitingBytes + writer.waiting;
    },

    get isFull() {
      return waitingBytes + writer.waiting > FULL;
    },

    close() {
      if (pipe.closed) return;
      pipe.closed = true;
      held = undefined;
      text = '';
      pieces = [];
      waitingBytes = 0;
      assembly.close();
      writer.drop();
      toBrowser.destroy();
      fromBrowser.destroy();
      pipe.onClose();
    },
  };

  /** Merges small pieces: a browser that writes single bytes would make each of them an object. */
  function keep(pieces: Message, piece: Buffer) {
    const last = pieces.at(-1)!;
    if (last.length + piece.length > MERGED) {
      pieces.push(piece);
      space = undefined;
      return;
    }
    if (!space) last.copy((space = Buffer.allocUnsafeSlow(MERGED)));
    piece.copy(space, last.length);
    pieces[pieces.length - 1] = space.subarray(0, last.length + piece.length);
  }

  function take(chunk: Buffer): Buffer | undefined {
    let start = 0;
    let end = chunk.indexOf(0);
    while (end !== -1 && !pipe.closed) {
      if (pace.isOver()) {
        pipe.onPause();
        return chunk.subarray(start);
      }
      const piece = chunk.subarray(start, end);
      if (held) {
        const pieces = held;
        held = undefined;
        pieces.push(piece);
        pipe.onMessage(withWholeEdges(pieces));
        if (assembly.bytes > 0) {
          assembly.close(); // the receiver counts it from now on
          reader.hold(false);
        }
      } else if (piece.length > 0) pipe.onMessage([piece]);
      start = end + 1;
      end = chunk.indexOf(0, start);
    }
    if (start > 0) pipe.onPause();
    if (start < chunk.length && !pipe.closed) begin(start === 0 ? chunk : chunk.subarray(start));
    return undefined;
  }

  function begin(rest: Buffer) {
    if (held) keep(held, rest);
    else {
      held = [rest];
      space = undefined;
    }
    heldBytes = held.length === 1 ? rest.length : heldBytes + rest.length;
    if (heldBytes > ENDLESS) return pipe.close(); // no working browser sends this
    if (heldBytes < LARGE) return;
    const more = assembly.bytes === 0 ? heldBytes : rest.length;
    if (!assembly.grow(more, () => reader.hold(false))) reader.hold(true);
  }

  const reader = pacedReader(fromBrowser, pace, { take, end: () => pipe.close() });
  toBrowser.on('drain', () => pipe.isFull || pipe.onDrain());
  for (const stream of [toBrowser, fromBrowser]) stream.on('error', () => pipe.close()); // EPIPE or ECONNRESET: Chromium has exited
  toBrowser.on('close', () => pipe.close());
  return pipe;
}

function withWholeEdges(pieces: Message): Message {
  while (pieces.length > 1 && pieces[0].length < EDGE) {
    pieces.splice(0, 2, Buffer.concat(pieces.slice(0, 2)));
  }
  while (pieces.length > 1 && pieces.at(-1)!.length < EDGE) {
    pieces.splice(-2, 2, Buffer.concat(pieces.slice(-2)));
  }
  return pieces;
}
