import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket } from 'ws';
import { attachBidi, type BidiOptions } from '../../src/chromium/bidi/bidi.ts';
import { hello } from '../../src/chromium/browser/hello.ts';
import { multiplex, type Mux, type MuxOptions } from '../../src/chromium/cdp/mux.ts';
import { openPipe } from '../../src/chromium/cdp/pipe.ts';
import { serveWebSocket } from '../../src/lib/ws-sink.ts';
import { rawChromium, type RawChromium } from './raw-chromium.ts';

export interface MuxServer {
  endpoint: string;
  bidiEndpoint: string;
  mux: Mux;
  chromium: RawChromium;
  stop(): Promise<void>;
}

/** A Chromium on a pipe, and a websocket port on loopback at which any number of CDP and BiDi clients may use it. */
export async function muxServer(options?: MuxOptions, bidi?: BidiOptions, ...flags: string[]): Promise<MuxServer> {
  const chromium = await rawChromium('pipe', ...flags);
  await hello(chromium.toBrowser, chromium.fromBrowser); // it answers before it has a page
  const mux = multiplex(openPipe(chromium.toBrowser, chromium.fromBrowser), options);
  const http = createServer();
  http.on('upgrade', (request, socket, head) =>
    serveWebSocket({ request, socket, head }, (sink) =>
      request.url === '/bidi' ? attachBidi(mux, sink, bidi) : mux.attach(sink),
    ),
  );
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const endpoint = `ws://127.0.0.1:${(http.address() as AddressInfo).port}/`;
  return {
    endpoint,
    bidiEndpoint: `${endpoint}bidi`,
    mux,
    chromium,
    async stop() {
      mux.close(1001, 'The test is over.');
      await chromium.stop();
      http.closeAllConnections();
      http.close();
    },
  };
}

export function portOf(server: Server): number {
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('The server does not listen on a port.');
  return address.port;
}

export interface CdpMessage {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: any; // oxlint-disable-line typescript/no-explicit-any -- each method has its own
  error?: { code: number; message: string };
  sessionId?: string;
}

/** A client with nothing between the test and the wire. */
export class RawClient {
  readonly socket: WebSocket;
  readonly seen: CdpMessage[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #waiting = new Map<number, (message: CdpMessage) => void>();
  #lastId = 0;

  static async open(endpoint: string): Promise<RawClient> {
    const client = new RawClient(new WebSocket(endpoint, { perMessageDeflate: false, maxPayload: 1024 ** 3 }));
    await once(client.socket, 'open');
    return client;
  }

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data: Buffer) => this.#take(data));
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    socket.on('error', () => {});
  }

  #take(data: Buffer): void {
    const message: CdpMessage = JSON.parse(data.toString());
    this.seen.push(message);
    if (message.id === undefined) return;
    this.#waiting.get(message.id)?.(message);
    this.#waiting.delete(message.id);
  }

  /** The whole answer, error or not. */
  ask(method: string, params?: object, sessionId?: string): Promise<CdpMessage> {
    this.#lastId += 1;
    const id = this.#lastId;
    this.socket.send(JSON.stringify({ id, method, params, sessionId }));
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  /** Sends bytes as they are, and waits for the next message that is no event. */
  async next(raw: string | Buffer): Promise<CdpMessage> {
    const answer = new Promise<CdpMessage>((resolve) => {
      const look = (data: Buffer) => {
        const message: CdpMessage = JSON.parse(String(data));
        if (message.method !== undefined) return;
        this.socket.off('message', look);
        resolve(message);
      };
      this.socket.on('message', look);
    });
    this.socket.send(raw);
    return answer;
  }

  async result<Result = Record<string, unknown>>(method: string, params?: object, sessionId?: string): Promise<Result> {
    const { result, error } = await this.ask(method, params, sessionId);
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  events(method: string): CdpMessage[] {
    return this.seen.filter((message) => message.method === method);
  }

  async event(method: string): Promise<CdpMessage> {
    while (this.events(method).length === 0) await once(this.socket, 'message');
    return this.events(method)[0]!;
  }

  /** Opens a page and attaches to it; answers with its session. */
  async page(url = 'about:blank'): Promise<{ targetId: string; sessionId: string }> {
    const { targetId } = await this.result<{ targetId: string }>('Target.createTarget', { url });
    const { sessionId } = await this.attachTo(targetId);
    return { targetId, sessionId };
  }

  attachTo(targetId: string): Promise<{ sessionId: string }> {
    return this.result('Target.attachToTarget', { targetId, flatten: true });
  }

  async evaluate(expression: string, sessionId: string): Promise<unknown> {
    const options = { expression, returnByValue: true, awaitPromise: true };
    const { result } = await this.result<{ result: { value: unknown } }>('Runtime.evaluate', options, sessionId);
    return result.value;
  }

  async close(): Promise<void> {
    this.socket.close();
    await this.closed;
  }
}
