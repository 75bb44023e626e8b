import type { Pace } from '../../lib/turns.ts';

/** Kinds of frames of a stream. */
export const JSON_ITEM = 1;
export const BYTES = 2;
export const END = 3; // the sender has sent everything
export const FAIL = 4; // JSON: the sender cancels, with the reason
export const CREDIT = 5; // u32: so many bytes were taken, and as many may follow
export const RESET = 6; // the sender neither reads nor sends any more

const WINDOW = 1024 * 1024;
export const CHUNK = 64 * 1024;
/** JSON arrives whole; this is more than any request body of the service. */
export const MAX_JSON = 8 * 1024 * 1024;
/** The most characters of the code and of the message of a FAIL. Both are logged. */
const MOST_REASON = 2000;
/** The most bytes of a FAIL: a character takes up to 6 bytes. */
export const MOST_FAIL = 32 * 1024;
/** The close reason when the other end sends JSON that takes long to parse. */
const TOO_HEAVY = 'JSON with more names and values than any answer has.';
/** The cost of an item besides its bytes: about its overhead in memory, so that small items are not free. */
export const ITEM_COST = 128;
/** Smaller pieces of bytes are merged while they wait for the reader. */
const SMALL = 8 * 1024;

type Item = { json: unknown; bytes?: undefined } | { bytes: Buffer; json?: undefined };

/** The other end cancelled or refused a stream. `code` is the other end's. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message.slice(0, MOST_REASON));
    this.code = code.slice(0, MOST_REASON);
  }
}

/** The channel closed while the stream was open. */
export class ChannelClosed extends Error {
  override readonly name = 'ChannelClosed';
}

export interface Stream {
  /** The next item; undefined after the last. Rejects with a Refusal when the other end cancelled. */
  next(): Promise<Item | undefined>;
  /** Both resolve when the data is sent: the other end takes no more than its window. Both reject when the stream is closed. */
  json(value: unknown): Promise<void>;
  bytes(data: Buffer): Promise<void>;
  end(): void;
  fail(code: string, message: string): void;
  /** Cancels the stream: nothing more is sent or read. */
  reset(): void;
  /** Aborts when the other end cancelled, or the channel closed. */
  readonly gone: AbortSignal;
}

/** JSON is kept unparsed until it is taken: the parsed value is many times as large. */
type Raw = { json: Buffer; bytes?: undefined } | { bytes: Buffer; json?: undefined };

/** The channel's side of a stream. */
export interface InnerStream extends Stream {
  take(item: Raw, cost: number): void;
  finish(error?: Error): void;
  credit(bytes: number): void;
  /** The other end has read all that was sent. */
  drained(): void;
}

/** A stream's access to its channel. */
interface Port {
  send(kind: number, payload?: Buffer): void;
  /** The other end has broken a rule: closes the channel. */
  close(reason: string): void;
  /** Whether JSON of the other end may be parsed. */
  isLight(json: Buffer): boolean;
  /** Whether too much of what was sent is unread. */
  isFull(): boolean;
  /** Bounds the time that readers take for items that wait already. */
  readonly pace: Pace | undefined;
  /** The number of bytes that may still arrive for the cancelled stream. */
  stray(bytes: number): void;
  /** The stream is over. May be called more than once. */
  gone(): void;
}

/** One stream of a channel: JSON and bytes, in order, both ways, each way with a window of its own. */
export function channelStream(port: Port): InnerStream {
  const gone = new AbortController();
  const items: { item: Raw; cost: number; space?: Buffer }[] = [];
  let held = 0; // received, and not yet taken
  let owed = 0; // taken, and not yet credited
  let room = WINDOW; // how much the other end still takes
  let said = false; // this end has finished sending
  let heard = false; // the other end has finished sending
  let failure: Error | undefined; // for the reader
  let broken: Error | undefined; // for the writer
  let reader: (() => void) | undefined;
  let writers: (() => void)[] = [];

  const wakeWriters = () => {
    const those = writers;
    writers = [];
    for (const writer of those) writer();
  };
  const wake = () => {
    reader?.();
    reader = undefined;
    wakeWriters();
  };
  const abandon = () => {
    failure = broken = new ChannelClosed('This stream was cancelled.');
    items.length = 0;
    if (!heard) port.stray(WINDOW + MAX_JSON);
    port.gone();
    wake();
  };
  const mustWait = () => (room <= 0 || port.isFull()) && !broken && !said;
  /** Sends in the turn in which there is room: other streams wait for the same room. */
  const write = async (kind: number, payload: Buffer) => {
    while (mustWait()) await new Promise<void>((resolve) => writers.push(resolve));
    if (broken) throw broken;
    if (said) throw new ChannelClosed('This side of the stream was ended.');
    room -= payload.length + ITEM_COST;
    port.send(kind, payload);
  };

  const stream: InnerStream = {
    gone: gone.signal,

    async next() {
      for (;;) {
        if (items.length > 0 && port.pace?.isOver()) await port.pace.next();
        const first = items.shift();
        if (first) {
          held -= first.cost;
          owed += first.cost;
          if (owed >= WINDOW / 4 && !heard) {
            const credit = Buffer.allocUnsafe(4);
            credit.writeUInt32LE(owed);
            owed = 0;
            port.send(CREDIT, credit);
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
      await write(JSON_ITEM, payload);
    },

    async bytes(data) {
      for (let at = 0; at < data.length; at += CHUNK) await write(BYTES, data.subarray(at, at + CHUNK));
    },

    end() {
      if (said || broken) return;
      said = true;
      port.send(END);
      if (heard) port.gone();
    },

    fail(code, message) {
      if (said || broken) return;
      const reason = { code: code.slice(0, MOST_REASON), message: message.slice(0, MOST_REASON) };
      port.send(FAIL, Buffer.from(JSON.stringify(reason)));
      abandon(); // nothing more is to be read either: the request was answered
    },

    reset() {
      if (broken || (said && heard)) return;
      port.send(RESET);
      abandon();
    },

    take(item, cost) {
      if (heard || failure) return;
      // The last message may overdraw the window, since it is sent whole, or in pieces of a chunk; then nothing may be sent before something is
      // taken.
      if (held >= WINDOW + (item.bytes ? CHUNK + ITEM_COST : 0)) return port.close('more was sent than was asked for.');
      held += cost;
      if (!appended(items.at(-1), item, cost)) items.push({ item, cost });
      reader?.();
      reader = undefined;
    },

    finish(error) {
      if (error) {
        // If the other end finished before it cancelled, its data can still be read.
        if (!heard) failure = error;
        broken ??= error;
        gone.abort(error);
      }
      heard = true;
      if (said || error) port.gone();
      wake();
    },

    credit(bytes) {
      if (bytes === 0 || room + bytes > WINDOW) return port.close('a credit for more than was sent.');
      room += bytes;
      if (room > 0) wakeWriters();
    },

    drained: wakeWriters,
  };
  /** JSON that is invalid, or takes long to parse, closes the channel, and with it this stream. */
  function parsed(item: Raw): Item {
    if (item.bytes) return item;
    if (!port.isLight(item.json)) {
      port.close(TOO_HEAVY);
      throw new ChannelClosed('It sent JSON that takes long to parse.');
    }
    try {
      return { json: JSON.parse(item.json.toString()) as unknown };
    } catch (error) {
      port.close(`something that cannot be read: ${(error as Error).message}`);
      throw new ChannelClosed('It sent invalid JSON.');
    }
  }

  return stream;
}

/** Merges small pieces of waiting bytes into one item, which has room for more of them. */
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
