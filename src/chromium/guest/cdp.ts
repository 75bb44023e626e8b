import { memory, type Group } from '../../lib/byte-budget.ts';
import { loopPace, type Pace } from '../../lib/turns.ts';
import type { Mux } from '../cdp/mux.ts';
import { MAX_TO_CHROMIUM } from '../cdp/connection.ts';
import type { Stream } from './channel.ts';

/** Bytes of the length before each message. */
const HEAD = 4;
const SPACE = 64 * 1024;
/** A message in assembly counts towards the memory budget from this size on. */
const LARGE = 256 * 1024;
/** The cost of an unread answer besides its bytes: about its overhead in memory. */
const UNREAD_COST = 512;

/**
 * A connection to the browser for processes inside the session: messages, each after its length, over a stream of the guest. To the
 * multiplexer it is a client like any other. There is no port inside the session, which its other processes could find.
 */
export function serveCdp(
  stream: Stream,
  mux: Pick<Mux, 'attach'>,
  group: Group = memory.group(),
  pace: Pace = loopPace,
): void {
  const unread = memory.share(group, 'reader', () => leave());
  const assembly = memory.share(group, 'sender', () => leave()); // the client stopped in the middle of a message
  let waiting = 0; // the cost of the answers that are not yet sent to the client
  let sending = Promise.resolve();
  let paused: { resume: () => void; until: Promise<void> } | undefined;
  let left = false;
  // If the browser has exited, the connection is closed before `attach` returns.
  let client: ReturnType<Mux['attach']> | undefined;

  const attached = mux.attach({
    get bufferedAmount() {
      return waiting;
    },
    send(pieces) {
      const size = pieces.reduce((sum, piece) => sum + piece.length, 0);
      const head = Buffer.allocUnsafe(HEAD);
      head.writeUInt32LE(size);
      const message = Buffer.concat([head, ...pieces]);
      const cost = message.length + UNREAD_COST;
      waiting += cost;
      unread.set(waiting);
      sending = sending
        .then(() => stream.bytes(message))
        .catch(() => {})
        .then(() => {
          waiting -= cost;
          if (!left) unread.set(waiting);
        });
    },
    flush() {},
    close: () => leave(),
    pause() {
      let resume!: () => void;
      const until = new Promise<void>((resolve) => (resume = resolve));
      paused ??= { resume, until };
    },
    resume() {
      paused?.resume();
      paused = undefined;
    },
  });

  client = attached;

  function leave() {
    if (left) return;
    left = true;
    unread.close();
    assembly.close();
    paused?.resume();
    client?.closed();
    stream.reset();
  }

  async function read() {
    const messages = splitter();
    for (let item; (item = await stream.next());) {
      if (!item.bytes) continue;
      for (const message of messages.split(item.bytes)) {
        if (paused || pace.isOver()) await turn();
        if (left) return;
        attached.receive(message);
      }
      attached.flush();
      await paused?.until;
      await room(messages.size);
    }
  }

  /** Resolves when there is room for the message in assembly. Counted twice: it is copied when its buffer grows. */
  async function room(size: number) {
    if (left) return;
    if (size < LARGE) {
      if (assembly.bytes > 0) assembly.close(); // the multiplexer counts it from now on
      return;
    }
    await new Promise<void>((resolve) => void (assembly.grow(2 * size - assembly.bytes, resolve) && resolve()));
  }

  /** 64 KiB may be 16,384 empty messages. Those that arrived together take several turns of the event loop. */
  async function turn() {
    attached.flush();
    assembly.hold(true);
    await (paused?.until ?? pace.next());
    assembly.hold(false);
  }

  read()
    .catch(() => {})
    .finally(leave);
}

/** Splits bytes into messages. A message that claims to be larger than Chromium accepts ends the connection. */
function splitter() {
  // One buffer that grows with the received bytes, independent of the claimed size of a message and of its chunks.
  let buffer = Buffer.allocUnsafeSlow(SPACE);
  let size = 0;
  const wanted = () => HEAD + (size < HEAD ? 0 : buffer.readUInt32LE(0));
  function* split(bytes: Buffer): Generator<Buffer> {
    for (let at = 0; at < bytes.length;) {
      const taken = Math.min(wanted() - size, bytes.length - at);
      if (size + taken > buffer.length) {
        const larger = Buffer.allocUnsafeSlow(Math.min(wanted(), Math.max(size + taken, buffer.length * 2)));
        buffer.copy(larger, 0, 0, size);
        buffer = larger;
      }
      bytes.copy(buffer, size, at, at + taken);
      size += taken;
      at += taken;
      if (wanted() > MAX_TO_CHROMIUM) throw new Error('a message that is too large');
      if (size < HEAD || size < wanted()) continue;
      const message = buffer.subarray(HEAD, size);
      size = 0;
      // The multiplexer keeps and changes the buffer it gets.
      if (buffer.length === SPACE) yield Buffer.from(message);
      else {
        buffer = Buffer.allocUnsafeSlow(SPACE);
        yield message;
      }
    }
  }
  return {
    split,
    /** The bytes of the message in assembly. */
    get size() {
      return size;
    },
  };
}
