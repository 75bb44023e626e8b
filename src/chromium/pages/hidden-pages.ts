import { Overdue } from '../../lib/deadline.ts';
import type { Check } from '../../lib/shape.ts';
import { isAttached, isCreated } from '../cdp/shapes.ts';
import type { LocalClient, SendOptions } from '../cdp/local-client.ts';
import type { Mux } from '../cdp/mux.ts';
import {
  passedOn,
  type Answered,
  type Arguments,
  type EventName,
  type Method,
  type ReadOf,
  type EventParams,
} from '../cdp/protocol.ts';

/** A page of the service itself inside the session's browser. It is not shown in windows, and clients get no events of it. */
export interface HiddenPage {
  send<M extends Method>(method: M, ...args: Arguments<M, [options?: SendOptions]>): Promise<unknown>;
  ask<M extends Method, Result>(
    is: Check<Result> & ReadOf<Result, Answered<M>>,
    method: M,
    ...args: Arguments<M, [options?: SendOptions]>
  ): Promise<Result>;
  /** Listens to an event of this page, until the returned function is called. */
  on<E extends EventName, Read>(
    event: E,
    is: Check<Read> & ReadOf<Read, EventParams<E>>,
    listener: (params: Read) => void,
  ): () => void;
}

export interface HiddenPages {
  /**
   * Runs `work` with a page for its exclusive use. The page is reused, unless `work` throws: its state is then unknown. The signal is for
   * callers that wait for a page.
   */
  use<T>(work: (page: HiddenPage) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** The client that creates the pages, for browser-level commands. */
  readonly client: LocalClient;
}

/** More than the connections that Chromium opens to one host; further requests wait. */
const MOST = 16;
/** Pages kept for reuse: creating one took 11 ms (headless) and 37 to 46 ms (headful) when measured. */
const KEPT = 2;
const KEPT_MS = 20_000;

interface Slot extends HiddenPage {
  close(): void;
  expiry: NodeJS.Timeout | undefined;
}

export function hiddenPages(mux: Mux): HiddenPages {
  const idle: Slot[] = [];
  const waiting: (() => void)[] = [];
  let busy = 0;
  let own: LocalClient | undefined;
  let ready: Promise<unknown> | undefined;

  function client(): LocalClient {
    own ??= mux.attachLocal({ secretive: true });
    // The multiplexer learns from this client's target events the tab of each page.
    ready ??= own.send('Target.setDiscoverTargets', { discover: true, filter: [{}] });
    ready.catch(() => (ready = undefined)); // the caller that creates a page gets the error, and the next one retries
    return own;
  }

  /** While the id of a new page is missing, the multiplexer holds back all target events from other clients. Closing this client releases them. */
  function forget(error: unknown): never {
    if (error instanceof Overdue || own?.closeCode !== undefined) {
      own?.close();
      own = ready = undefined;
      for (const slot of idle.splice(0)) clearTimeout(slot.expiry);
    }
    throw error;
  }

  async function make(): Promise<Slot> {
    const cdp = client();
    await ready!.catch(forget);
    const making = cdp.ask(isCreated, 'Target.createTarget', { url: 'about:blank', hidden: true });
    const { targetId } = await making.catch(forget);
    const close = () => void cdp.send('Target.closeTarget', { targetId }).catch(() => {});
    try {
      const { sessionId } = await cdp.ask(isAttached, 'Target.attachToTarget', { targetId, flatten: true });
      return {
        close,
        expiry: undefined,
        send: (method, ...[params, options]) => cdp.send(method, ...passedOn(params, sessionId, options)),
        ask: (is, method, ...[params, options]) => cdp.ask(is, method, ...passedOn(params, sessionId, options)),
        on: (event, is, listener) => cdp.on(event, is, (params, from) => from === sessionId && listener(params)),
      };
    } catch (error) {
      close();
      throw error;
    }
  }

  function inLine(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        waiting.splice(waiting.indexOf(come), 1);
        reject(signal!.reason as Error);
      };
      const come = () => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      waiting.push(come);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  function keep(slot: Slot) {
    if (idle.length >= KEPT) return slot.close();
    idle.push(slot);
    slot.expiry = setTimeout(() => {
      const at = idle.indexOf(slot);
      if (at !== -1) idle.splice(at, 1);
      slot.close();
    }, KEPT_MS).unref();
  }

  return {
    get client() {
      return client();
    },

    async use(work, signal) {
      signal?.throwIfAborted();
      if (busy >= MOST) await inLine(signal);
      else busy += 1;
      try {
        const slot = idle.pop() ?? (await make());
        clearTimeout(slot.expiry);
        try {
          const result = await work(slot);
          keep(slot);
          return result;
        } catch (error) {
          slot.close();
          throw error;
        }
      } finally {
        const next = waiting.shift(); // the place is passed on, not freed
        if (next) next();
        else busy -= 1;
      }
    },
  };
}
