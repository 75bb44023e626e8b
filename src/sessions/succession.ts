import type { Proxy } from '../chromium/egress/proxy.ts';
import type { Engine } from '../chromium/engine.ts';
import type { Log } from '../lib/log.ts';
import { endings, SessionEnded, type Ending } from './state.ts';

const mostCrashes = 3;
const crashWindowMs = 5 * 60 * 1000;
/** What a browser may take to write down what it has; it is a few tenths of a second as a rule. */
export const closingMs = 10_000;

/** Starts a browser in the place of another, on the same files, with this proxy. */
export type StartNext = (signal: AbortSignal, proxy: Proxy | undefined) => Promise<Engine>;

/** A browser that is about to take the place of one that did not crash. */
interface Planned {
  start: StartNext;
  reason: string;
  done: () => void;
  failed: (error: Error) => void;
}

/** The browsers of one session, one after the other: each that crashes is replaced, until it crashes too often. */
export function sessionSuccession({
  id,
  first,
  proxy: firstProxy,
  relaunch,
  ending,
  stopping,
  mayReplace,
  closeClients,
  onCrash,
  onNext,
  onLost,
  log,
}: {
  id: string;
  first: Engine;
  proxy: Proxy | undefined;
  relaunch: StartNext;
  ending: () => Ending | undefined;
  /** Aborts when the session ends. */
  stopping: AbortSignal;
  /** A browser that has no holder is not replaced: its pool makes another. */
  mayReplace: () => boolean;
  closeClients: (code: number, reason: string) => void;
  onCrash: () => void;
  /** Another browser has taken the place of the one before. */
  onNext: () => void;
  /** The browser is gone for good. */
  onLost: (detail: string) => void;
  log: Log;
}) {
  /** The browser, or the next one while it is being started. */
  let engine = Promise.resolve(first);
  let proxy = firstProxy;
  let planned: Planned | undefined;
  const crashes: number[] = [];
  void watch();

  async function watch(): Promise<void> {
    try {
      for (;;) {
        const watched = await engine;
        await watched.browser.exited;
        const ended = ending();
        if (ended) return planned?.failed(new SessionEnded(ended));
        engine = planned ? follow(watched, planned) : replace(watched);
      }
    } catch (error) {
      if (!ending()) onLost((error as Error).message);
    }
  }

  /** The next browser in the place of one that crashed. Rejects when there is to be none. */
  async function replace(crashed: Engine): Promise<Engine> {
    const { code, reason } = whenGone();
    onCrash();
    crashes.push(Date.now());
    const count = recentCrashes();
    const lastWords = crashed.browser.logTail().slice(-5);
    log.warn({ session: id, crashes: count, lastWords }, 'session.browser_crashed');
    closeClients(code, reason);
    await crashed.close();
    if (!mayReplace()) throw new Error('The browser crashed while nobody held it.');
    if (count > mostCrashes)
      throw new Error(`The browser crashed ${count} times in five minutes. Its last words: ${lastWords.join(' ')}`);
    return next(relaunch);
  }

  /** The next browser in the place of one that was stopped for it. */
  async function follow(stopped: Engine, plan: Planned): Promise<Engine> {
    try {
      closeClients(1012, plan.reason);
      await stopped.close();
      const started = await next(plan.start);
      plan.done();
      return started;
    } catch (error) {
      plan.failed(error as Error);
      throw error;
    } finally {
      planned = undefined;
    }
  }

  async function next(start: StartNext): Promise<Engine> {
    const before = proxy;
    const started = await start(stopping, before);
    if (proxy !== before) started.gateway.setProxy(proxy); // swapped meanwhile
    onNext();
    return started;
  }

  function recentCrashes(): number {
    return crashes.filter((at) => Date.now() - at < crashWindowMs).length;
  }

  /** What clients are told when the browser goes: that it comes back, unless it has crashed too often. */
  function whenGone(): { code: number; reason: string } {
    const ended = ending();
    if (ended) return { code: 1001, reason: endings[ended] };
    if (planned) return { code: 1012, reason: planned.reason };
    if (recentCrashes() >= mostCrashes) return { code: 1011, reason: endings.crashed };
    return { code: 1012, reason: 'The browser crashed and is being started again. Connect again to the same address.' };
  }

  return {
    whenGone,
    current: () => engine,

    /** The browser, but never one that has just died: then its successor is waited for. */
    async answering(): Promise<Engine> {
      for (;;) {
        const found = await engine;
        const ended = ending();
        if (ended) throw new SessionEnded(ended);
        if (!found.mux.isClosed) return found;
        await found.browser.exited; // by then `watch` has put the next one in its place
      }
    },

    /** Stops a browser in order. Resolves when the one that `start` makes has taken its place. */
    async handOver(old: Engine, start: StartNext, reason: string): Promise<void> {
      const followed = new Promise<void>((done, failed) => (planned = { start, reason, done, failed }));
      followed.catch(() => {}); // awaited below, once it was stopped
      await old.close({ graceMs: closingMs });
      await followed;
    },

    /** Traffic leaves by this from now on, in this browser and in those that take its place. Undefined: by no proxy. */
    async setProxy(next: Proxy | undefined): Promise<void> {
      if (JSON.stringify(next) === JSON.stringify(proxy)) return; // nothing would change but dropped connections
      proxy = next;
      const { gateway } = await engine; // one that is being started hears of it when it stands
      gateway.setProxy(proxy);
    },
  };
}
