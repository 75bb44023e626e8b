import { Overdue } from '../../lib/deadline.ts';
import { record, type Check } from '../../lib/shape.ts';
import { withoutLongStrings } from '../../lib/long-strings.ts';
import { turns } from '../../lib/turns.ts';
import type { Client, Sink } from './client.ts';
import { LARGE, readMessage } from './large-messages.ts';
import { ANSWER, answerId, byteLength, eventIn } from './message.ts';
import type { Answered, Arguments, EventName, Method, ReadOf, EventParams } from './protocol.ts';

/** A command failed, or its connection ended first. `code` is the protocol's, and absent in the second case. */
export class CdpError extends Error {
  override readonly name = 'CdpError';
  readonly code: number | undefined;

  constructor(message: string, code?: number) {
    super(message);
    this.code = code;
  }
}

/** Errors of a listener are dropped: an event of the browser must not end more than its own handling. */
export type CdpListener<Params = Record<string, unknown>> = (params: Params, sessionId: string | undefined) => unknown;

/** CDP for the service itself: one more client of the multiplexer. */
export interface LocalClient {
  /** Rejects with `Overdue` when the browser does not answer in time. */
  send<M extends Method>(method: M, ...args: Arguments<M, OnSession>): Promise<Record<string, unknown>>;
  /** The same with a checked answer. An answer of another shape is an error: the browser may be compromised. */
  ask<M extends Method, Result>(
    is: Check<Result> & ReadOf<Result, Answered<M>>,
    method: M,
    ...args: Arguments<M, OnSession>
  ): Promise<Result>;
  /** Listens to an event on every session of this client, if it has this shape. Answers with the function that stops it. */
  on<E extends EventName, Read>(
    event: E,
    is: Check<Read> & ReadOf<Read, EventParams<E>>,
    listener: CdpListener<Read>,
  ): () => void;
  close(): void;
  /** Settles once, when the connection is closed, with the reason. */
  readonly closed: Promise<string>;
  /** The close code that a websocket would have got; undefined while the client is open. */
  readonly closeCode: number | undefined;
}

/** A command without a session is for the browser. */
type OnSession = [sessionId?: string | undefined, options?: SendOptions];

export interface SendOptions {
  /**
   * The answer may take any time (a navigation, the next byte of a stream), but only while the browser answers other commands: each time
   * the deadline passes, the browser is asked for its version, and the command fails if that gets no answer.
   */
  patient?: boolean;
  /** A further parameter, of many bytes. Its Base64 is made in pieces: 24 MiB at once stopped the event loop for 0.4 s. */
  base64?: { name: string; bytes: Buffer };
}

/** Several times the answer time on an overloaded machine; a quarter of the time that callers wait. */
export const ANSWER_MS = 15_000;

/** More than the service ever sends at once, unless a browser provokes it with events that each cause a command. */
const MOST_WAITING = 20_000;

/** A multiple of three, so that the Base64 of a piece has no padding. */
const PIECE = 192 * 1024;
const PAUSED = 'Fetch.requestPaused';
/** Of a string in a large event of this kind. Headers are shorter. */
const LONGEST_TEXT = 256 * 1024;

interface Waiting {
  method: string;
  resolve: (result: Record<string, unknown>) => void;
  reject: (error: Error) => void;
  late: NodeJS.Timeout;
}

export function localClient(attach: (sink: Sink) => Client, answerMs = ANSWER_MS): LocalClient {
  const waiting = new Map<number, Waiting>();
  const listeners = new Map<string, Set<CdpListener>>();
  let lastId = 0;
  let over: string | undefined;
  let closeCode: number | undefined;
  let settle!: (reason: string) => void;
  const closed = new Promise<string>((resolve) => (settle = resolve));

  let client: Client | undefined; // not set yet if the browser has already exited: then `close` is called within `attach`
  client = attach({
    bufferedAmount: 0,
    wants: isWanted,
    send: (pieces) => isWanted(pieces[0]!) && receive(pieces),
    flush() {},
    close: (code, reason) => finish(code, reason),
    pause() {}, // the service limits its own commands by awaiting them
    resume() {},
  });

  /** Events without a listener are not parsed: a page that loads sends thousands. */
  function isWanted(head: Buffer): boolean {
    const event = eventIn(head);
    return event === undefined || (listeners.get(event)?.size ?? 0) > 0;
  }

  /**
   * A paused request has its whole body, twice: 36 MiB for a body of 8 MiB, and 0.3 s to parse. No listener reads the body, so it is
   * removed first.
   */
  function receive(pieces: readonly Buffer[]): void {
    if (byteLength(pieces) <= LARGE || eventIn(pieces[0]!) !== PAUSED) return hear(pieces);
    void withoutLongStrings(pieces, LONGEST_TEXT).then((shorter) => hear([shorter]));
  }

  function hear(pieces: readonly Buffer[]): void {
    const [head] = pieces as [Buffer];
    const id = head.toString('latin1', 0, ANSWER.length) === ANSWER ? answerId(head).id : undefined;
    const command = id === undefined ? undefined : waiting.get(id);
    if (id !== undefined && !command) return;
    const read = readMessage(pieces, command?.method);
    if (read?.data && record(read.message['result'])) read.message['result']['data'] = textOf(read.data);
    if (read) return take(read.message);
    if (id === undefined || !command) return;
    settled(id, command);
    command.reject(new CdpError(`${command.method}: the answer of ${byteLength(pieces)} bytes cannot be read.`));
  }

  function take(message: Record<string, unknown>): void {
    const { id, method, params = {}, result, error, sessionId } = message;
    if (typeof method === 'string') {
      if (!record(params)) return;
      const from = typeof sessionId === 'string' ? sessionId : undefined;
      for (const listener of listeners.get(method) ?? []) notify(listener, params, from);
      return;
    }
    const command = typeof id === 'number' ? waiting.get(id) : undefined;
    if (typeof id !== 'number' || !command) return;
    settled(id, command);
    if (record(error)) {
      const { message, code } = error;
      command.reject(
        new CdpError(
          `${command.method}: ${String(message).slice(0, 10_000)}`,
          typeof code === 'number' ? code : undefined,
        ),
      );
    } else if (record(result)) command.resolve(result);
    else command.reject(misshapen(command.method));
  }

  function finish(code: number, reason: string): void {
    if (over !== undefined) return;
    over = reason;
    closeCode = code;
    client?.closed();
    for (const [id, command] of waiting) {
      settled(id, command);
      command.reject(new CdpError(`${command.method}: ${reason}`));
    }
    settle(reason);
  }

  function settled(id: number, { late }: Waiting): void {
    waiting.delete(id);
    clearTimeout(late);
  }

  const send: LocalClient['send'] = (method, ...[params, sessionId, { patient = false, base64 } = {}]) => {
    lastId += 1;
    const id = lastId;
    if (!base64) return post(id, method, patient, Buffer.from(JSON.stringify({ id, method, params, sessionId })));
    const command = { id, method, sessionId, params: { ...params, [base64.name]: '' } };
    return withBase64(JSON.stringify(command), base64.bytes).then((message) => post(id, method, patient, message));
  };

  function post(id: number, method: string, patient: boolean, message: Buffer): Promise<Record<string, unknown>> {
    if (over !== undefined) return Promise.reject(new CdpError(`${method}: ${over}`));
    if (waiting.size >= MOST_WAITING)
      return Promise.reject(new CdpError(`${method}: too many commands wait for an answer.`));
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => (patient ? askOn(id, command) : giveUp(id, command)), answerMs);
      const command = { method, resolve, reject, late };
      waiting.set(id, command);
      client?.receive(message);
      client?.flush();
    });
  }

  function giveUp(id: number, command: Waiting): void {
    if (!waiting.has(id)) return;
    settled(id, command);
    command.reject(new Overdue('The browser', answerMs, command.method));
  }

  function askOn(id: number, command: Waiting): void {
    send('Browser.getVersion').then(
      () => waiting.has(id) && command.late.refresh(),
      () => giveUp(id, command),
    );
  }

  return {
    closed,
    send,

    async ask(is, method, ...args) {
      const result = await send(method, ...args);
      if (!is(result)) throw misshapen(method);
      return result;
    },

    on(event, is, listener) {
      const those = listeners.get(event) ?? new Set();
      const mine: CdpListener = (params, sessionId) => (is(params) ? listener(params, sessionId) : undefined);
      listeners.set(event, those.add(mine));
      return () => void those.delete(mine);
    },

    close: () => finish(1000, 'The connection was closed.'),

    get closeCode() {
      return closeCode;
    },
  };
}

function notify(listener: CdpListener, params: Record<string, unknown>, sessionId: string | undefined): void {
  try {
    const done = listener(params, sessionId);
    if (done instanceof Promise) done.catch(() => {});
  } catch {
    // The message could not be used. Other listeners still get it.
  }
}

/** The message with the Base64 of the bytes in its last string, which is empty. */
async function withBase64(message: string, bytes: Buffer): Promise<Buffer> {
  const turn = turns();
  const end = message.lastIndexOf('""') + 1;
  const [head, tail] = [Buffer.from(message.slice(0, end)), Buffer.from(message.slice(end))];
  const whole = Buffer.allocUnsafeSlow(head.length + Math.ceil(bytes.length / 3) * 4 + tail.length);
  let size = head.copy(whole);
  for (let at = 0; at < bytes.length; at += PIECE) {
    size += whole.write(bytes.subarray(at, at + PIECE).toString('base64'), size, 'latin1');
    await turn();
  }
  tail.copy(whole, size);
  return whole;
}

const textOf = (base64: readonly Buffer[]) => Buffer.concat(base64).toString('latin1');

function misshapen(method: string): CdpError {
  return new CdpError(`${method}: the browser answered with something else.`);
}
