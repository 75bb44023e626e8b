import { memory } from '../../lib/byte-budget.ts';
import type { Log } from '../../lib/log.ts';
import { Pieces } from '../../lib/pieces.ts';
import type { WebSocketReceiver, WebSocketSink } from '../../lib/ws-sink.ts';
import type { Hold } from '../holds.ts';
import { read, resize, writeStdin, type OutputItem } from './service.ts';

/** The most bytes that wait for a reader before the process's output is held back. */
const MOST_WAITING = 1024 * 1024;
/** The most bytes of a text message: input is binary. */
const LONGEST_TEXT = 1024;
/** The invalid text messages that are answered. A client that sends more does not speak this protocol. */
const MOST_INVALID = 5;
const USAGE = 'Text messages are {"type":"resize","rows":24,"cols":80}.';
/** The most bytes of inputs that wait to be written before no more are read from the client. An input has 1 MiB at most. */
const MOST_TYPED = 1024 * 1024;
/** What an input takes beside its bytes. */
const INPUT_COST = 1024;
/** Inputs that wait are written together, up to this size: a client may send a byte at a time. */
const MOST_JOINED = 64 * 1024;

/**
 * A terminal on a websocket: binary messages are input and output, text messages are JSON about the terminal itself (`resize` from the
 * client, `exit` and `error` to it). Several clients may attach to one terminal, and each gets its output from the beginning.
 */
export function attachProcess(held: Hold, processId: string, sink: WebSocketSink, log: Log): WebSocketReceiver {
  const disconnected = new AbortController();
  const over = new Promise((resolve) => disconnected.signal.addEventListener('abort', resolve, { once: true }));
  let typed = Promise.resolve();
  /** The last input, while it waits and more may be added to it. */
  let last: Pieces | undefined;
  const waiting = memory.share(held.engine.memory, 'sender', () => {});
  waiting.hold(true); // the process keeps it from making progress
  let invalid = 0;

  const send = (message: object) => {
    sink.send([Buffer.from(JSON.stringify(message))]);
    sink.flush();
  };
  /** A client that does not read gets no more of them: they would fill the memory. */
  const complain = (error: Error) => {
    if (sink.bufferedAmount <= MOST_WAITING) send({ type: 'error', message: error.message });
  };

  async function print() {
    const reading = await read(held, processId, disconnected.signal); // a client that leaves ends it
    try {
      for (let item: OutputItem | undefined; !disconnected.signal.aborted && (item = await reading.next());) {
        if ('stream' in item) await printed(Buffer.from(item.data_b64, 'base64'));
        else if (item.event === 'exit') send({ type: 'exit', exitCode: item.exit_code });
        else send({ type: 'dropped', bytes: item.dropped_bytes });
      }
    } finally {
      reading.close();
    }
  }

  /** If many bytes wait already, resolves when these have been sent. */
  async function printed(bytes: Buffer): Promise<void> {
    if (sink.bufferedAmount <= MOST_WAITING) return sink.sendBinary([bytes]);
    const left = new Promise<void>((resolve) => sink.sendBinary([bytes], resolve));
    await Promise.race([left, over]);
  }

  /** Inputs are written one after the other, in order. They are counted until then, also when the client has left. */
  function type(work: () => Promise<unknown>) {
    count(INPUT_COST);
    typed = typed
      .then(work)
      .catch(complain)
      .then(() => count(-INPUT_COST));
  }

  function count(bytes: number) {
    waiting.set(waiting.bytes + bytes);
    if (waiting.bytes >= MOST_TYPED) sink.pause();
    else if (bytes < 0) sink.resume();
  }

  function input(data: Buffer) {
    if (last && last.length + data.length > MOST_JOINED) last = undefined;
    if (!last) {
      const pieces = (last = new Pieces());
      type(() => {
        if (last === pieces) last = undefined;
        const { length } = pieces;
        const text = pieces.take().toString('base64');
        return writeStdin(held, processId, text, false).finally(() => count(-length));
      });
    }
    last.add(data);
    count(data.length);
  }

  function control(text: string) {
    const { type: what, rows, cols } = JSON.parse(text) as Record<string, unknown>;
    const fits = (size: unknown): size is number =>
      Number.isInteger(size) && Number(size) >= 1 && Number(size) <= 65_535;
    if (what !== 'resize' || !fits(rows) || !fits(cols)) throw new Error(USAGE);
    last = undefined;
    type(() => resize(held, processId, rows, cols));
  }

  print()
    .then(() => sink.close(1000, 'The process has exited.'))
    .catch((error: Error) => {
      log.debug({ error: error.message }, 'process.attach_failed');
      complain(error);
      sink.close(1008, 'The process cannot be read.');
    });

  return {
    receive(data, binary = false) {
      if (binary) return input(data);
      try {
        if (data.length > LONGEST_TEXT) throw new Error(USAGE);
        control(data.toString());
      } catch (error) {
        complain(error as Error);
        invalid += 1;
        if (invalid >= MOST_INVALID) sink.close(1008, USAGE);
      }
    },
    flush() {},
    closed: () => disconnected.abort(),
  };
}
