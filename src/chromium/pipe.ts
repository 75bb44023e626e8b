import type { Readable, Writable } from 'node:stream';

/** Chromium's DevTools pipe: one JSON message after another, each ended by a NUL, in both directions. */
export interface Pipe {
  /** Sends one message, given in pieces. What is sent within one turn of the event loop leaves in one write. */
  send(pieces: readonly Buffer[]): void;
  /** Bytes that Chromium has not taken yet. */
  readonly bufferedAmount: number;
  /** Who gets what Chromium sends. Set these before the first message can arrive. */
  onMessage: (message: Message) => void;
  /** Called when a pipe that `isFull` has room again. */
  onDrain: () => void;
  /** Called once, when either end is gone. */
  onClose: () => void;
  readonly isFull: boolean;
  readonly closed: boolean;
  close(): void;
}

/**
 * A message from Chromium in the pieces it arrived in. The first piece holds at least the first `EDGE` bytes and the
 * last piece the last `EDGE` (or all of them, when there is one piece), so both ends can be read in place.
 * The bytes are the receiver's: it may write into them.
 */
export type Message = [Buffer, ...Buffer[]];

/** How much of either end of a message its reader may count on finding in one piece. */
export const EDGE = 256;

/** Above this many waiting bytes whoever writes should stop reading from its own source until `onDrain`. */
const FULL = 1024 * 1024;

/** Pieces up to this size are joined before they are written: cheaper than one more entry in a writev. */
const JOIN_BELOW = 16 * 1024;

const NUL = Buffer.from([0]);

/** `toBrowser` is Chromium's fd 3, `fromBrowser` its fd 4, as `child.stdio[3]` and `[4]` give them. */
export function openPipe(toBrowser: Writable, fromBrowser: Readable): Pipe {
  /** The beginning of a message whose end has not come. */
  let held: Message | undefined;
  let outgoing: Buffer[] = [];
  let outgoingBytes = 0;
  let flushing = false;

  const pipe = {
    onMessage: (_message: Message) => {},
    onDrain: () => {},
    onClose: () => {},
    closed: false,

    send(pieces: readonly Buffer[]) {
      if (pipe.closed) return;
      for (const piece of pieces) {
        outgoing.push(piece);
        outgoingBytes += piece.length;
      }
      outgoing.push(NUL);
      outgoingBytes += 1;
      if (flushing) return;
      flushing = true;
      process.nextTick(flush);
    },

    get bufferedAmount() {
      return outgoingBytes + toBrowser.writableLength;
    },

    get isFull() {
      return outgoingBytes + toBrowser.writableLength > FULL;
    },

    close() {
      if (pipe.closed) return;
      pipe.closed = true;
      held = undefined;
      outgoing = [];
      outgoingBytes = 0;
      toBrowser.destroy();
      fromBrowser.destroy();
      pipe.onClose();
    },
  };

  function flush() {
    flushing = false;
    if (pipe.closed) return;
    const buffers = joinSmall(outgoing, outgoingBytes);
    outgoing = [];
    outgoingBytes = 0;
    if (buffers.length === 1) {
      toBrowser.write(buffers[0]);
      return;
    }
    toBrowser.cork();
    for (const buffer of buffers) toBrowser.write(buffer);
    toBrowser.uncork();
  }

  function take(chunk: Buffer) {
    let start = 0;
    let end = chunk.indexOf(0);
    while (end !== -1 && !pipe.closed) {
      const piece = chunk.subarray(start, end);
      if (held) {
        const pieces = held;
        held = undefined;
        pieces.push(piece);
        pipe.onMessage(withWholeEdges(pieces));
      } else if (piece.length > 0) pipe.onMessage([piece]);
      start = end + 1;
      end = chunk.indexOf(0, start);
    }
    if (start === chunk.length || pipe.closed) return;
    const rest = start === 0 ? chunk : chunk.subarray(start);
    if (held) held.push(rest);
    else held = [rest];
  }

  fromBrowser.on('data', take);
  toBrowser.on('drain', () => pipe.onDrain());
  for (const stream of [toBrowser, fromBrowser]) {
    stream.on('error', () => pipe.close()); // EPIPE or ECONNRESET: Chromium is gone
    stream.on('close', () => pipe.close());
  }
  fromBrowser.on('end', () => pipe.close());
  return pipe;
}

/** Pieces in order, runs of small ones joined into one. */
export function joinSmall(pieces: Buffer[], bytes: number): Buffer[] {
  if (pieces.length === 1) return pieces;
  if (bytes <= JOIN_BELOW) return [join(pieces, bytes)];
  const joined: Buffer[] = [];
  let run: Buffer[] = [];
  let runBytes = 0;
  for (const piece of pieces) {
    if (runBytes > 0 && runBytes + piece.length > JOIN_BELOW) {
      joined.push(run.length === 1 ? run[0]! : join(run, runBytes));
      run = [];
      runBytes = 0;
    }
    run.push(piece);
    runBytes += piece.length;
  }
  if (run.length > 0) joined.push(run.length === 1 ? run[0]! : join(run, runBytes));
  return joined;
}

/** `Buffer.concat` with a known length and without its checks, which are half of its cost at this size. */
function join(pieces: Buffer[], bytes: number): Buffer {
  const whole = Buffer.allocUnsafe(bytes);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
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
