import { Overdue } from '../lib/deadline.ts';
import type { Client, Sink } from './mux.ts';

/** A command failed, or its connection ended first. `code` is the protocol's, and absent in the second case. */
export class CdpError extends Error {
  override readonly name = 'CdpError';
  readonly code: number | undefined;

  constructor(message: string, code?: number) {
    super(message);
    this.code = code;
  }
}

export type CdpListener = (params: Record<string, unknown>, sessionId: string | undefined) => void;

/** CDP for the service itself: one more client of the multiplexer. */
export interface LocalClient {
  /** Rejects with `Overdue` when the browser does not answer in time. */
  send<Result = Record<string, unknown>>(
    method: string,
    params?: object,
    sessionId?: string,
    options?: SendOptions,
  ): Promise<Result>;
  /** Listens to an event on every session of this client; answers with what stops it. */
  on(event: string, listener: CdpListener): () => void;
  close(): void;
  /** Settles once, when the connection is over, with the reason. */
  readonly closed: Promise<string>;
  /** What a websocket in this client's place would have been closed with; undefined as long as it is open. */
  readonly closeCode: number | undefined;
}

export interface SendOptions {
  /**
   * The answer may take as long as it takes (a navigation, the next byte of a stream), but only while the browser answers
   * something else: each time the deadline passes, it is asked for its version, and the command fails if it does not say.
   */
  patient?: boolean;
}

/** Several times what a browser takes on a machine that is far too busy; a quarter of what callers wait for an answer. */
export const ANSWER_MS = 15_000;

/** More than the service ever asks at once. Beyond that somebody makes it ask: an event for each of which a command is sent. */
const MOST_WAITING = 20_000;

interface Waiting {
  method: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- each method has a result of its own
  resolve: (result: any) => void;
  reject: (error: Error) => void;
  late: NodeJS.Timeout;
}

interface Incoming {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { code: number; message: string };
  sessionId?: string;
}

export function localClient(attach: (sink: Sink) => Client, answerMs = ANSWER_MS): LocalClient {
  const waiting = new Map<number, Waiting>();
  const listeners = new Map<string, Set<CdpListener>>();
  let lastId = 0;
  let over: string | undefined;
  let closeCode: number | undefined;
  let settle!: (reason: string) => void;
  const closed = new Promise<string>((resolve) => (settle = resolve));

  let client: Client | undefined; // none yet when the browser is gone already: then `close` is called within `attach`
  client = attach({
    bufferedAmount: 0,
    send: (pieces) => take(JSON.parse(Buffer.concat(pieces).toString())),
    flush() {},
    close: (code, reason) => finish(code, reason),
    pause() {}, // what this process sends itself is bounded by what it awaits
    resume() {},
  });

  function take({ id, method, params, result, error, sessionId }: Incoming): void {
    if (method !== undefined) {
      for (const listener of listeners.get(method) ?? []) listener(params ?? {}, sessionId);
      return;
    }
    const command = id === undefined ? undefined : waiting.get(id);
    if (!command) return;
    settled(id!, command);
    if (error) command.reject(new CdpError(`${command.method}: ${error.message}`, error.code));
    else command.resolve(result);
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

  const send: LocalClient['send'] = (method, params, sessionId, { patient = false } = {}) => {
    if (over !== undefined) return Promise.reject(new CdpError(`${method}: ${over}`));
    if (waiting.size >= MOST_WAITING)
      return Promise.reject(new CdpError(`${method}: too many commands wait for an answer.`));
    lastId += 1;
    const id = lastId;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => (patient ? askOn(id, command) : giveUp(id, command)), answerMs);
      const command = { method, resolve, reject, late };
      waiting.set(id, command);
      client.receive(Buffer.from(JSON.stringify({ id, method, params, sessionId })));
      client.flush();
    });
  };

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

    on(event, listener) {
      const those = listeners.get(event) ?? new Set();
      listeners.set(event, those.add(listener));
      return () => void those.delete(listener);
    },

    close: () => finish(1000, 'The connection was closed.'),

    get closeCode() {
      return closeCode;
    },
  };
}
