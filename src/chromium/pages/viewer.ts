import type { Log } from '../../lib/log.ts';
import { record, type Check } from '../../lib/shape.ts';
import type { WebSocketSink } from '../../lib/ws-sink.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import {
  passedOn,
  type Answered,
  type Arguments,
  type EventName,
  type Method,
  type ReadOf,
  type EventParams,
} from '../cdp/protocol.ts';
import type { InputMessage, ViewMessage } from './viewer-protocol.ts';

/** What a viewer may leave unread. Answers to its input have no other bound, and it may acknowledge pictures that it did not read. */
const MAX_UNREAD = 16 * 1024 * 1024;

/** The tab that a viewer sees. Asynchronous work compares it with the current one afterwards. */
export interface Shown {
  readonly id: string;
  sessionId: string | undefined;
  /** The number of inputs that the page has not answered. */
  unanswered: number;
  /** Work that has to be over before the page gets the next key: see `waits` in viewer-input.ts. */
  presses: number;
  pageWork: number;
  /** Input that waits for its turn. */
  readonly backlog: InputMessage[];
  /** The last size of the page that was sent to the viewer. */
  viewport: string;
  /** The newest load of the page, and the reason of its failure; and the failed load that was reported to the viewer. */
  load?: { readonly id: string; errorText?: string };
  toldOf?: string | undefined;
  page: { loading: boolean; canGoBack: boolean; canGoForward: boolean };
  /** The page's history is being read; and has changed since. */
  news?: 'asked' | 'again' | undefined;
}

/** One viewer of the screencast: its connection, its CDP client, and the tab it sees. */
export class Viewer {
  readonly client: LocalClient;
  readonly sink: WebSocketSink;
  readonly readOnly: boolean;
  readonly log: Log;
  shown: Shown | undefined;
  over = false;
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(client: LocalClient, sink: WebSocketSink, { readOnly, log }: { readOnly: boolean; log: Log }) {
    this.client = client;
    this.sink = sink;
    this.readOnly = readOnly;
    this.log = log;
  }

  tell(message: ViewMessage): void {
    if (!this.reads()) return;
    this.sink.send([Buffer.from(JSON.stringify(message))]);
    this.sink.flush();
  }

  /** Whether it may be sent more. A viewer that does not read what it was sent is dropped. */
  reads(): boolean {
    if (this.sink.bufferedAmount > MAX_UNREAD) this.end(1008, 'Dropped: this viewer does not read its messages.');
    return !this.over;
  }

  /** Listens to an event of the shown tab; late events of other tabs are ignored. */
  onShown<E extends EventName, Read>(
    event: E,
    is: Check<Read> & ReadOf<Read, EventParams<E>>,
    listener: (tab: Shown, params: Read) => unknown,
  ): void {
    this.client.on(event, is, (params, sessionId) => {
      const { shown, over } = this;
      return !over && shown && shown.sessionId === sessionId ? listener(shown, params) : undefined;
    });
  }

  /** Sends a command to a tab. Resolves with nothing if the tab is closed or the command fails. */
  send<M extends Method>(tab: Shown, method: M, ...args: Arguments<M, []>) {
    return this.ask(tab, record, method, ...args);
  }

  async ask<M extends Method, R>(
    tab: Shown,
    is: Check<R> & ReadOf<R, Answered<M>>,
    method: M,
    ...[params]: Arguments<M, []>
  ): Promise<R | undefined> {
    try {
      return await this.client.ask(is, method, ...passedOn(params, tab.sessionId));
    } catch (error) {
      if (!this.over) this.log.debug({ error, method }, 'screencast.command_failed');
      return undefined;
    }
  }

  later(ms: number, work: () => unknown): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (this.over) return;
      Promise.resolve(work()).catch((error: unknown) => this.log.debug({ error }, 'screencast.work_failed'));
    }, ms);
    this.#timers.add(timer);
    return timer;
  }

  forget(timer: NodeJS.Timeout): void {
    clearTimeout(timer);
    this.#timers.delete(timer);
  }

  /** The viewer's connection is closed. */
  left(): void {
    this.over = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.client.close();
  }

  end(code: number, reason: string): void {
    if (this.over) return;
    this.left();
    this.sink.close(code, reason);
  }
}
