import type { Duplex } from 'node:stream';
import type { Share } from '../../lib/byte-budget.ts';
import type { Pace } from '../../lib/turns.ts';
import {
  BYTES,
  ChannelClosed,
  channelStream,
  CHUNK,
  CREDIT,
  END,
  FAIL,
  ITEM_COST,
  JSON_ITEM,
  MAX_JSON,
  MOST_FAIL,
  Refusal,
  RESET,
  type InnerStream,
  type Stream,
} from './stream.ts';

export { ChannelClosed, Refusal, type Stream } from './stream.ts';

/**
 * Many streams over one socket, between the service and the guest inside a session. Both ends run this file. A stream carries JSON and
 * bytes, in order, both ways; each way has a window of its own, so a slow reader delays only its own stream and neither end ever keeps
 * more of it than the window. The other end is not trusted: a violation of the rules closes the channel.
 *
 *     length u32 (of what follows) · kind u8 · stream u32 · payload
 */
const OPEN = 0; // JSON: the name of the request and its arguments. The other kinds are in stream.ts

const HEAD = 9;
/** The most bytes of an OPEN of the guest, which is a name. The service's own have arguments, such as the code to run. */
const MOST_OPEN = 4096;
/** Streams wait while more sent bytes than this are unread: what is sent is kept until it is read, also for a cancelled stream. */
const FULL = 1024 * 1024;
/** The most unread bytes. Messages have up to 8 MiB; credits and resets do not wait. */
const MOST_UNREAD = 64 * 1024 * 1024;
/** The most requests that wait until the other end reads. */
const MOST_WAITING = 100;
/** Unread bytes count for the memory budget from this size on. */
const COUNTED = 64 * 1024;
/** Allowance for a stream that ended in order: the other end may still send credits. */
const FEW_STRAYS = 32 * ITEM_COST;

export interface Channel {
  /** The number of open streams. */
  readonly count: number;
  /** Opens a stream at once, also when the other end reads nothing. */
  open(name: string, args?: unknown): Stream;
  /** Opens a stream when the other end has read what was sent. Refuses when too many wait for that. Rejects when the signal aborts. */
  ask(name: string, args: unknown, signal?: AbortSignal): Promise<Stream>;
  close(reason: string): void;
  /** Settles once, with the reason. */
  readonly closed: Promise<string>;
}

interface ChannelOptions {
  /** Whether this end is the service: the service numbers its streams odd, the guest even. */
  host: boolean;
  /** The other end opens a stream. */
  onOpen: (name: string, args: unknown, stream: Stream) => void;
  /** The most streams that the other end may have open. */
  most: number;
  /** Whether JSON of the other end may be parsed: `{},{},…` of one frame would take seconds. Any, unless set. */
  isLight?: (json: Buffer) => boolean;
  /** Stops reading when the time of a turn of the event loop is over: the other end can send small frames without a pause. */
  pace?: Pace;
  /** Counts the sent bytes that the other end has not read. */
  share?: Pick<Share, 'set' | 'close'> | undefined;
}

export function channel(
  socket: Duplex,
  { host, onOpen, most, isLight = () => true, pace, share }: ChannelOptions,
): Channel {
  const streams = new Map<number, InnerStream>();
  let nextId = host ? 1 : 2;
  let theirs = 0;
  let lastTheirs = 0;
  /** The number of bytes that may still arrive for streams that this end cancelled. */
  let strays = 0;
  let over: string | undefined;
  let settle!: (reason: string) => void;
  const closed = new Promise<string>((resolve) => (settle = resolve));

  const parse = parser(frame, (reason) => close(reason), host ? MOST_OPEN : MAX_JSON);
  socket.on('data', read);
  socket.on('drain', drained);
  socket.on('error', (error: Error) => close(error.message));
  socket.on('close', () => close('the other end is gone.'));
  socket.on('end', () => close('the other end is gone.'));

  function read(chunk: Buffer) {
    parse(chunk);
    if (over !== undefined || !pace?.isOver()) return;
    socket.pause();
    void pace.next().then(() => socket.resume());
  }

  function close(reason: string) {
    if (over !== undefined) return;
    over = reason;
    socket.off('data', read);
    socket.destroy();
    for (const stream of streams.values()) stream.finish(new ChannelClosed(reason));
    streams.clear();
    share?.close();
    requests.wake();
    settle(reason);
  }

  const isFull = () => over === undefined && socket.writableLength > FULL;
  const requests = waitingRequests(isFull);

  function drained() {
    share?.set(0);
    for (const stream of streams.values()) stream.drained();
    requests.wake();
  }

  function send(kind: number, id: number, payload?: Buffer) {
    if (over !== undefined) return;
    if (socket.writableLength > MOST_UNREAD) return close('it does not read its messages.');
    const head = Buffer.allocUnsafe(HEAD);
    head.writeUInt32LE(5 + (payload?.length ?? 0), 0);
    head.writeUInt8(kind, 4);
    head.writeUInt32LE(id, 5);
    if (!payload) return void socket.write(head);
    socket.cork();
    socket.write(head);
    socket.write(payload);
    socket.uncork();
    if (socket.writableLength > COUNTED) share?.set(socket.writableLength);
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
        if (!stream) return;
        const { code, message } = JSON.parse(payload.toString()) as Record<string, unknown>;
        return stream.finish(new Refusal(String(code), String(message)));
      }
      case CREDIT:
        return payload.length === 4 ? stream?.credit(payload.readUInt32LE(0)) : close('a credit of the wrong size.');
      case RESET:
        return stream?.finish(new Refusal('reset', 'The other end cancelled it.'));
      default:
        return close(`a frame of an unknown kind, ${kind}.`);
    }
  }

  function make(id: number, onGone: () => void = () => {}): InnerStream {
    const stray = (bytes: number) => void (strays = Math.min(strays + bytes, MOST_UNREAD));
    const stream = channelStream({
      send: (kind, payload) => send(kind, id, payload),
      close,
      isLight,
      isFull,
      pace,
      stray,
      gone() {
        if (!streams.delete(id)) return;
        stray(FEW_STRAYS);
        onGone();
      },
    });
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

    open,

    ask: (name, args, signal) => requests.send(() => open(name, args), signal),
  };

  function open(name: string, args: unknown = {}): Stream {
    const id = nextId;
    nextId += 2;
    const stream = make(id);
    send(OPEN, id, Buffer.from(JSON.stringify({ name, args })));
    return stream;
  }
}

/** Requests that wait until the other end reads. */
function waitingRequests(isFull: () => boolean) {
  const waiting = new Set<() => void>();
  return {
    wake(): void {
      for (const resume of waiting) resume();
    },

    /** Sends in the turn in which there is room: other requests wait for the same room. */
    async send<T>(work: () => T, signal: AbortSignal | undefined): Promise<T> {
      if (isFull() && waiting.size >= MOST_WAITING)
        throw new Refusal('busy', `The session does not read its requests: ${MOST_WAITING} wait. Try again later.`);
      while (isFull()) {
        await new Promise<void>((resolve) => {
          const resume = () => {
            waiting.delete(resume);
            signal?.removeEventListener('abort', resume);
            resolve();
          };
          waiting.add(resume);
          signal?.addEventListener('abort', resume, { once: true });
        });
        signal?.throwIfAborted();
      }
      return work();
    },
  };
}

/** Reads frames off a socket. Bytes are passed on in pieces as they come; all other payloads are assembled first. */
function parser(
  frame: (kind: number, id: number, payload: Buffer, first: boolean) => void,
  fault: (reason: string) => void,
  mostOpen: number,
) {
  const most: Record<number, number> = { [OPEN]: mostOpen, [BYTES]: CHUNK, [FAIL]: MOST_FAIL };
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
          if (left < 0 || left > (most[kind] ?? MAX_JSON)) return fault('a frame of an impossible size.');
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
