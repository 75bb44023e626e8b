import type { Duplex } from 'node:stream';

/**
 * Many streams over one socket, between the service and the guest inside a session. Both ends run this file. A stream carries
 * JSON and bytes, in order, both ways; each way has a window of its own, so one slow reader holds up only its own stream and
 * neither end ever keeps more of it than the window. Nothing the other end says is believed: what breaks the rules ends
 * the channel.
 *
 *     length u32 (of what follows) · kind u8 · stream u32 · payload
 */
const OPEN = 0; // JSON: the name of what is asked for, and what with
const JSON_ITEM = 1;
const BYTES = 2;
const END = 3; // the sender has said all
const FAIL = 4; // JSON: the sender gives up, and why
const CREDIT = 5; // u32: so many bytes were taken, and may follow
const RESET = 6; // the sender does not want to hear or say more

const HEAD = 9;
const WINDOW = 1024 * 1024;
const CHUNK = 64 * 1024;
/** JSON comes whole; this is more than any body the service takes. */
const MAX_JSON = 8 * 1024 * 1024;
/** What an item costs besides its bytes: about what it takes in memory, so that small ones are not free. */
const ITEM_COST = 128;
/** Smaller pieces of bytes that nobody has taken yet are put together. */
const SMALL = 8 * 1024;
/** Of ours that the other end has not read. Each stream has its window; whoever lets this much pile up reads none of them. */
const MOST_UNREAD = 64 * 1024 * 1024;
/** For a stream that ended in order: the other end may still tell what it took. */
const FEW_STRAYS = 32 * ITEM_COST;

export type Item = { json: unknown; bytes?: undefined } | { bytes: Buffer; json?: undefined };

/** The other end gave up on a stream, or refused it. `code` is one of its own words. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: string;
  /** What came of it until then. */
  readonly details: unknown;

  constructor(code: string, message: string, details?: unknown) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

/** The channel ended under a stream. */
export class ChannelClosed extends Error {
  override readonly name = 'ChannelClosed';
}

export interface Stream {
  /** The next item; undefined after the last. Rejects with a Refusal when the other end gave up. */
  next(): Promise<Item | undefined>;
  /** Both resolve when it is on its way: the other end takes no more than its window. Both reject when it is gone. */
  json(value: unknown): Promise<void>;
  bytes(data: Buffer): Promise<void>;
  end(): void;
  fail(code: string, message: string, details?: unknown): void;
  /** Gives up: nothing more is said, and nothing more is heard. */
  reset(): void;
  /** Aborts when the other end gave up, or the channel closed. */
  readonly gone: AbortSignal;
}

export interface Channel {
  /** How many streams there are. */
  readonly count: number;
  open(name: string, args?: unknown): Stream;
  close(reason: string): void;
  /** Settles once, with the reason. */
  readonly closed: Promise<string>;
}

export interface ChannelOptions {
  /** Whether this end is the service: each end names its streams in its own half of the numbers. */
  host: boolean;
  /** Somebody asks for something. */
  onOpen: (name: string, args: unknown, stream: Stream) => void;
  /** How many streams the other end may have open. */
  most: number;
}

/** JSON is kept as it came until it is taken: what it becomes is many times as large. */
type Raw = { json: Buffer; bytes?: undefined } | { bytes: Buffer; json?: undefined };

interface Inner extends Stream {
  take(item: Raw, cost: number): void;
  finish(error?: Error): void;
  credit(bytes: number): void;
}

export function channel(socket: Duplex, { host, onOpen, most }: ChannelOptions): Channel {
  const streams = new Map<number, Inner>();
  let nextId = host ? 1 : 2;
  let theirs = 0;
  let lastTheirs = 0;
  /** How much may still come for streams that we gave up: what was on its way. */
  let strays = 0;
  let over: string | undefined;
  let settle!: (reason: string) => void;
  const closed = new Promise<string>((resolve) => (settle = resolve));

  const parse = parser(frame, (reason) => close(reason));
  socket.on('data', parse);
  socket.on('error', (error: Error) => close(error.message));
  socket.on('close', () => close('the other end is gone.'));
  socket.on('end', () => close('the other end is gone.'));

  function close(reason: string) {
    if (over !== undefined) return;
    over = reason;
    socket.off('data', parse);
    socket.destroy();
    for (const stream of streams.values()) stream.finish(new ChannelClosed(reason));
    streams.clear();
    settle(reason);
  }

  function send(kind: number, id: number, payload?: Buffer) {
    if (over !== undefined) return;
    if (socket.writableLength > MOST_UNREAD) return close('it does not read what it is sent.');
    const head = Buffer.allocUnsafe(HEAD);
    head.writeUInt32LE(5 + (payload?.length ?? 0), 0);
    head.writeUInt8(kind, 4);
    head.writeUInt32LE(id, 5);
    if (!payload) return void socket.write(head);
    socket.cork();
    socket.write(head);
    socket.write(payload);
    socket.uncork();
  }

  function frame(kind: number, id: number, payload: Buffer, first: boolean) {
    const stream = streams.get(id);
    if (!stream && kind !== OPEN && (strays -= payload.length + (first ? ITEM_COST : 0)) < 0)
      return close('it speaks of streams that there are not.');
    switch (kind) {
      case OPEN: {
        const fromThem = id % 2 === (host ? 0 : 1);
        if (!fromThem || id <= lastTheirs) return close('a stream was opened out of turn.');
        lastTheirs = id;
        if (theirs >= most) return host ? close('too many streams were opened.') : send(RESET, id);
        const { name, args } = JSON.parse(payload.toString()) as { name: unknown; args: unknown };
        theirs++;
        return onOpen(
          typeof name === 'string' ? name : '',
          args,
          make(id, () => theirs--),
        );
      }
      case BYTES:
        return stream?.take({ bytes: payload }, payload.length + (first ? ITEM_COST : 0));
      case JSON_ITEM:
        return stream?.take({ json: payload }, payload.length + ITEM_COST);
      case END:
        return stream?.finish();
      case FAIL: {
        const { code, message, details } = JSON.parse(payload.toString()) as Record<string, unknown>;
        return stream?.finish(new Refusal(String(code), String(message), details));
      }
      case CREDIT:
        return payload.length === 4 ? stream?.credit(payload.readUInt32LE(0)) : close('a credit of the wrong size.');
      case RESET:
        return stream?.finish(new Refusal('reset', 'The other end gave up on it.'));
      default:
        return close(`a frame of an unknown kind, ${kind}.`);
    }
  }

  function make(id: number, onGone: () => void = () => {}): Inner {
    const gone = new AbortController();
    const items: { item: Raw; cost: number; space?: Buffer }[] = [];
    let held = 0; // of theirs, here and not yet taken
    let owed = 0; // taken, and not yet told
    let room = WINDOW; // how much they still take of ours
    let said = false; // we have ended our side
    let heard = false; // they have ended theirs
    let failure: Error | undefined; // for who reads
    let broken: Error | undefined; // for who writes
    let reader: (() => void) | undefined;
    let writers: (() => void)[] = [];

    const forget = () => {
      if (!streams.delete(id)) return;
      strays = Math.min(strays + FEW_STRAYS, MOST_UNREAD);
      onGone();
    };
    const wake = () => {
      reader?.();
      reader = undefined;
      const those = writers;
      writers = [];
      for (const writer of those) writer();
    };
    const abandon = () => {
      failure = broken = new ChannelClosed('This stream was given up.');
      items.length = 0;
      if (!heard) strays = Math.min(strays + WINDOW + MAX_JSON, MOST_UNREAD);
      forget();
      wake();
    };
    const writable = async () => {
      while (room <= 0 && !broken && !said) await new Promise<void>((resolve) => writers.push(resolve));
      if (broken) throw broken;
      if (said) throw new ChannelClosed('This side of the stream was ended.');
    };

    const stream: Inner = {
      gone: gone.signal,

      async next() {
        for (;;) {
          const first = items.shift();
          if (first) {
            held -= first.cost;
            owed += first.cost;
            if (owed >= WINDOW / 4 && !heard) {
              const credit = Buffer.allocUnsafe(4);
              credit.writeUInt32LE(owed);
              owed = 0;
              send(CREDIT, id, credit);
            }
            return parsed(first.item);
          }
          if (failure) throw failure;
          if (heard) return undefined;
          await new Promise<void>((resolve) => (reader = resolve));
        }
      },

      async json(value) {
        const payload = Buffer.from(JSON.stringify(value));
        if (payload.length > MAX_JSON) throw new Error('This is too much for one message.');
        await writable();
        room -= payload.length + ITEM_COST;
        send(JSON_ITEM, id, payload);
      },

      async bytes(data) {
        for (let at = 0; at < data.length; at += CHUNK) {
          await writable();
          const chunk = data.subarray(at, at + CHUNK);
          room -= chunk.length + ITEM_COST;
          send(BYTES, id, chunk);
        }
      },

      end() {
        if (said || broken) return;
        said = true;
        send(END, id);
        if (heard) forget();
      },

      fail(code, message, details) {
        if (said || broken) return;
        send(FAIL, id, Buffer.from(JSON.stringify({ code, message, details })));
        abandon(); // there is nothing more to hear either: whoever asked was answered
      },

      reset() {
        if (broken || (said && heard)) return;
        send(RESET, id);
        abandon();
      },

      take(item, cost) {
        if (heard || failure) return;
        // What is sent last may overdraw the window, since it comes whole, or in pieces of a chunk; then there is nothing to send before
        // something is taken.
        if (held >= WINDOW + (item.bytes ? CHUNK + ITEM_COST : 0)) return close('more was sent than was asked for.');
        held += cost;
        if (!appended(items.at(-1), item, cost)) items.push({ item, cost });
        reader?.();
        reader = undefined;
      },

      finish(error) {
        if (error) {
          // What it had said to the end before it gave up is still to be read.
          if (!heard) failure = error;
          broken ??= error;
          gone.abort(error);
        }
        heard = true;
        if (said || error) forget();
        wake();
      },

      credit(bytes) {
        if (bytes === 0 || room + bytes > WINDOW) return close('a credit for more than was sent.');
        room += bytes;
        if (room <= 0) return;
        const those = writers;
        writers = [];
        for (const writer of those) writer();
      },
    };
    /** What cannot be read ends the channel, and with it this stream. */
    function parsed(item: Raw): Item {
      if (item.bytes) return item;
      try {
        return { json: JSON.parse(item.json.toString()) as unknown };
      } catch (error) {
        close(`something that cannot be read: ${(error as Error).message}`);
        throw new ChannelClosed('It sent JSON that is none.');
      }
    }

    if (over === undefined) streams.set(id, stream);
    else stream.finish(new ChannelClosed(over));
    return stream;
  }

  return {
    closed,
    close,
    get count() {
      return streams.size;
    },

    open(name, args = {}) {
      const id = nextId;
      nextId += 2;
      const stream = make(id);
      send(OPEN, id, Buffer.from(JSON.stringify({ name, args })));
      return stream;
    },
  };
}

/** Puts small pieces of bytes that nobody has taken yet into one item, which has room for more of them. */
function appended(
  last: { item: Raw; cost: number; space?: Buffer } | undefined,
  { bytes }: Raw,
  cost: number,
): boolean {
  if (!last?.item.bytes || !bytes) return false;
  const { length } = last.item.bytes;
  if (length + bytes.length > SMALL) return false;
  if (!last.space) last.item.bytes.copy((last.space = Buffer.allocUnsafeSlow(SMALL)));
  bytes.copy(last.space, length);
  last.item.bytes = last.space.subarray(0, length + bytes.length);
  last.cost += cost;
  return true;
}

/** Reads frames off a socket. Bytes are passed on as they come, in pieces; everything else is put together first. */
function parser(
  frame: (kind: number, id: number, payload: Buffer, first: boolean) => void,
  fault: (reason: string) => void,
) {
  const head = Buffer.alloc(HEAD);
  let headFilled = 0;
  let left = 0;
  let kind = 0;
  let id = 0;
  let whole: Buffer | undefined;
  let filled = 0;
  let first = true;

  return (chunk: Buffer) => {
    try {
      for (let at = 0; at < chunk.length;) {
        if (headFilled < HEAD) {
          const copied = chunk.copy(head, headFilled, at);
          headFilled += copied;
          at += copied;
          if (headFilled < HEAD) return;
          left = head.readUInt32LE(0) - 5;
          kind = head.readUInt8(4);
          id = head.readUInt32LE(5);
          first = true;
          filled = 0;
          if (left < 0 || left > (kind === BYTES ? CHUNK : MAX_JSON)) return fault('a frame of an impossible size.');
          whole = kind === BYTES || left === 0 ? undefined : Buffer.allocUnsafe(left);
          if (left === 0) {
            headFilled = 0;
            if (kind !== BYTES) frame(kind, id, EMPTY, true);
            continue;
          }
        }
        const piece = chunk.subarray(at, at + left);
        at += piece.length;
        left -= piece.length;
        if (left === 0) headFilled = 0;
        if (kind === BYTES) {
          frame(kind, id, piece, first);
          first = false;
        } else {
          piece.copy(whole!, filled);
          filled += piece.length;
          if (left === 0) frame(kind, id, whole!, true);
        }
      }
    } catch (error) {
      fault(`something that cannot be read: ${(error as Error).message}`);
    }
  };
}

const EMPTY = Buffer.alloc(0);
