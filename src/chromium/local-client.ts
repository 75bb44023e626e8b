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
  send<Result = Record<string, unknown>>(method: string, params?: object, sessionId?: string): Promise<Result>;
  /** Listens to an event on every session of this client; answers with what stops it. */
  on(event: string, listener: CdpListener): () => void;
  close(): void;
  /** Settles once, when the connection is over, with the reason. */
  readonly closed: Promise<string>;
  /** What a websocket in this client's place would have been closed with; undefined as long as it is open. */
  readonly closeCode: number | undefined;
}

interface Incoming {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { code: number; message: string };
  sessionId?: string;
}

export function localClient(attach: (sink: Sink) => Client): LocalClient {
  // oxlint-disable-next-line typescript/no-explicit-any -- each method has a result of its own
  const waiting = new Map<number, { method: string; resolve: (result: any) => void; reject: (error: Error) => void }>();
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
    waiting.delete(id!);
    if (error) command.reject(new CdpError(`${command.method}: ${error.message}`, error.code));
    else command.resolve(result);
  }

  function finish(code: number, reason: string): void {
    if (over !== undefined) return;
    over = reason;
    closeCode = code;
    client?.closed();
    for (const { method, reject } of waiting.values()) reject(new CdpError(`${method}: ${reason}`));
    waiting.clear();
    settle(reason);
  }

  return {
    closed,

    send(method, params, sessionId) {
      if (over !== undefined) return Promise.reject(new CdpError(`${method}: ${over}`));
      lastId += 1;
      const id = lastId;
      return new Promise((resolve, reject) => {
        waiting.set(id, { method, resolve, reject });
        client.receive(Buffer.from(JSON.stringify({ id, method, params, sessionId })));
        client.flush();
      });
    },

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
