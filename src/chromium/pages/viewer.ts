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
  type Told,
} from '../cdp/protocol.ts';
import type { InputMessage } from './viewer-messages.ts';

/** What a viewer of the screencast is told, as JSON. Pictures are binary messages, each a JPEG. */
export type ViewMessage =
  | { type: 'hello'; readOnly: boolean }
  /** `shown` is the tab the pictures are of, or null when there is none. */
  | { type: 'tabs'; tabs: readonly TabInfo[]; shown: string | null }
  /** The page's size in CSS pixels, which is what mouse coordinates are in. Comes before the first picture of that size. */
  | { type: 'viewport'; width: number; height: number }
  | { type: 'page'; loading: boolean; canGoBack: boolean; canGoForward: boolean }
  | { type: 'dialog'; kind: string; message: string; defaultText: string }
  | { type: 'dialogClosed' }
  | { type: 'crashed' }
  | { type: 'clipboard'; text: string }
  /** Something to tell the person, in a sentence. */
  | { type: 'notice'; text: string };

export interface TabInfo {
  readonly id: string;
  readonly title: string;
  readonly url: string;
}

/** The tab a viewer looks at. Work that waited for something compares it with the present one afterwards. */
export interface Shown {
  readonly id: string;
  sessionId: string | undefined;
  /** Frames that the viewer has not drawn yet, by Chromium's number. */
  undrawn: number[];
  /** Since there were as many of them as there may be: Chromium has thrown frames away, perhaps the last one. */
  missed: boolean;
  /** Input that the page has not answered. */
  unanswered: number;
  /** What has to be over before the page gets the next key: see `waits` in viewer-input.ts. */
  presses: number;
  clipboardWork: number;
  /** Input that waits for its turn. */
  readonly backlog: InputMessage[];
  viewport: string;
  page: { loading: boolean; canGoBack: boolean; canGoForward: boolean };
}

/** A message to the viewer, or from it. */
export const MAX_MESSAGE = 1024 * 1024 + 1024;

/** One viewer of the screencast: its connection, its client of the browser, and the tab it looks at. */
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
    if (this.over) return;
    this.sink.send([Buffer.from(JSON.stringify(message))]);
    this.sink.flush();
  }

  /** Listens to an event of the tab that is shown; those of others come too late to matter. */
  onShown<E extends EventName, Read>(
    event: E,
    is: Check<Read> & ReadOf<Read, Told<E>>,
    listener: (tab: Shown, params: Read) => unknown,
  ): void {
    this.client.on(event, is, (params, sessionId) => {
      const { shown, over } = this;
      return !over && shown && shown.sessionId === sessionId ? listener(shown, params) : undefined;
    });
  }

  /** A command to a tab, which may be gone, or be going, or say no: then there is no answer. */
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
