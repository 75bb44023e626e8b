import { once } from 'node:events';
import { WebSocket } from 'ws';

const MIB = 1024 * 1024;

/** The least CDP client there can be: ids, and the browser's first page. What it costs is the same on every side. */
export class Page {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, { resolve: (result: any) => void; reject: (error: Error) => void }>(); // oxlint-disable-line typescript/no-explicit-any -- each method has its own
  #lastId = 0;
  #sessionId: string | undefined;
  #loaded: (() => void) | undefined;

  static async open(endpoint: string): Promise<Page> {
    const socket = new WebSocket(endpoint, { perMessageDeflate: false, maxPayload: 512 * MIB });
    await once(socket, 'open');
    const page = new Page(socket);
    const { targetInfos } = await page.#send<{ targetInfos: { targetId: string; type: string }[] }>(
      'Target.getTargets',
    );
    const first = targetInfos.find(({ type }) => type === 'page');
    if (!first) throw new Error('The browser has no page.');
    const { targetId } = first;
    const attached = await page.#send<{ sessionId: string }>('Target.attachToTarget', { targetId, flatten: true });
    page.#sessionId = attached.sessionId;
    return page;
  }

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => {
      const { id, result, error, method }: Message = JSON.parse(data.toString());
      if (method === 'Page.loadEventFired') this.#loaded?.();
      const waiting = id === undefined ? undefined : this.#waiting.get(id);
      if (!waiting || id === undefined) return;
      this.#waiting.delete(id);
      if (error) waiting.reject(new Error(error.message));
      else waiting.resolve(result);
    });
    socket.on('close', (code, reason) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`closed: ${code} ${reason.toString()}`));
    });
  }

  evaluate(expression: string): Promise<unknown> {
    return this.#send('Runtime.evaluate', { expression, returnByValue: true });
  }

  /** Resolves when the page's load event has fired. */
  async goto(url: string): Promise<void> {
    const loaded = new Promise<void>((resolve) => (this.#loaded = resolve));
    await this.#send('Page.enable'); // awaited, or now and then the new page's process would not have heard of it
    const { errorText } = await this.#send<{ errorText?: string }>('Page.navigate', { url });
    if (errorText !== undefined) throw new Error(`${url}: ${errorText}`);
    await loaded;
  }

  /** Asks for every event of the network, as drivers do, or for none. */
  async listenToNetwork(on: boolean): Promise<void> {
    await this.#send(on ? 'Network.enable' : 'Network.disable');
  }

  close() {
    this.#socket.close();
  }

  #send<Result>(method: string, params: object = {}): Promise<Result> {
    const id = ++this.#lastId;
    this.#socket.send(JSON.stringify({ id, method, params, sessionId: this.#sessionId }));
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }
}

interface Message {
  id?: number;
  method?: string;
  result?: unknown;
  error?: { message: string };
}
