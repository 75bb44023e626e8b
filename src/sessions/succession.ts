import type { Proxy } from '../chromium/egress/proxy.ts';
import type { Engine } from '../chromium/engine.ts';
import { memory } from '../lib/byte-budget.ts';
import type { Log } from '../lib/log.ts';
import { endings, SessionEnded, type Ending } from './state.ts';
import type { SessionTelemetry } from './telemetry.ts';

const mostCrashes = 3;
const crashWindowMs = 5 * 60 * 1000;
/** The lines that are kept of browsers that crashed. */
const mostEarlier = 100;
/** How long a browser may take to write its data; a few tenths of a second as a rule. */
export const closingMs = 10_000;

/** Starts a browser as the replacement of another, on the same files, with this proxy. */
export type StartNext = (signal: AbortSignal, proxy: Proxy | undefined) => Promise<Engine>;

/** The planned replacement of a browser that did not crash. */
interface Planned {
  start: StartNext;
  reason: string;
  done: () => void;
  failed: (error: Error) => void;
}

interface SuccessionOptions {
  id: string;
  projectId: string;
  first: Engine;
  proxy: Proxy | undefined;
  relaunch: StartNext;
  ending: () => Ending | undefined;
  /** Aborts when the session ends. */
  stopping: AbortSignal;
  /** A browser without a holder is not replaced: its pool creates another. */
  mayReplace: () => boolean;
  telemetry: Pick<SessionTelemetry, 'browserGone' | 'browserBack' | 'browserLost' | 'crashed'>;
  closeClients: (code: number, reason: string) => void;
  onCrash: () => void;
  /** Another browser has replaced the previous one. */
  onNext: () => void;
  /** The browser has exited and is not replaced. */
  onLost: (detail: string) => void;
  log: Log;
}

/** The browsers of one session, one after the other: each that crashes is replaced, until it crashes too often. */
export function sessionSuccession({
  id,
  projectId,
  first,
  proxy: firstProxy,
  relaunch,
  ending,
  stopping,
  mayReplace,
  telemetry,
  closeClients,
  onCrash,
  onNext,
  onLost,
  log,
}: SuccessionOptions) {
  /** The browser, or the next one while it is being started. */
  let engine = Promise.resolve(first);
  const written = browserLines(first);
  let proxy = firstProxy;
  let planned: Planned | undefined;
  const crashes = crashCount();
  void watch();

  async function watch(): Promise<void> {
    try {
      for (;;) {
        const watched = written.started(await engine);
        memory.join(watched.memory, memory.project(projectId));
        await watched.browser.exited;
        const ended = ending();
        if (ended) return planned?.failed(new SessionEnded(ended));
        engine = planned ? follow(watched, planned) : replace(watched);
      }
    } catch (error) {
      if (ending()) return;
      telemetry.browserLost();
      onLost((error as Error).message);
    }
  }

  /** Starts the replacement of a crashed browser. Rejects when the browser is not to be replaced. */
  async function replace(crashed: Engine): Promise<Engine> {
    const { code, reason } = whenGone();
    onCrash();
    telemetry.crashed('running');
    telemetry.browserGone();
    const count = crashes.add();
    const lastWords = written.crashed(crashed).slice(-5);
    log.warn({ session: id, crashes: count, lastWords }, 'session.browser_crashed');
    closeClients(code, reason);
    await crashed.close();
    if (!mayReplace()) throw new Error('The browser crashed while no client held it.');
    if (count > mostCrashes) {
      telemetry.crashed('gave_up');
      throw new Error(`The browser crashed ${count} times in five minutes. The end of its log: ${lastWords.join(' ')}`);
    }
    return next(relaunch).catch((error: Error) => {
      if (!ending()) telemetry.crashed('startup');
      throw error;
    });
  }

  /** Starts the replacement of a browser that was stopped for it. */
  async function follow(stopped: Engine, plan: Planned): Promise<Engine> {
    try {
      telemetry.browserGone();
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
    if (proxy !== before) started.gateway.setProxy(proxy); // changed during the start
    await telemetry.browserBack(started); // before clients, so that it sees their first request
    onNext();
    return started;
  }

  /** The code and reason for clients when the browser exits: it restarts, unless it has crashed too often. */
  function whenGone(): { code: number; reason: string } {
    const ended = ending();
    if (ended) return { code: 1001, reason: endings[ended] };
    if (planned) return { code: 1012, reason: planned.reason };
    if (crashes.recent() >= mostCrashes) return { code: 1011, reason: endings.crashed };
    return { code: 1012, reason: 'The browser crashed and is being started again. Connect again to the same address.' };
  }

  return {
    whenGone,
    current: () => engine,
    lastLines: written.lastLines,

    /** The browser. If it has just died, its replacement is awaited. */
    async answering(): Promise<Engine> {
      for (;;) {
        const found = await engine;
        const ended = ending();
        if (ended) throw new SessionEnded(ended);
        if (!found.mux.isClosed) return found;
        await found.browser.exited; // by then `watch` has put the next one in its place
      }
    },

    /** Stops a browser in order. Resolves when the browser made by `start` has replaced it. */
    async handOver(old: Engine, start: StartNext, reason: string): Promise<void> {
      const followed = new Promise<void>((done, failed) => (planned = { start, reason, done, failed }));
      followed.catch(() => {}); // awaited below, after the browser is stopped
      await old.close({ graceMs: closingMs });
      await followed;
    },

    proxy: () => proxy,

    /** Sets the proxy of this browser and of its replacements. Undefined: no proxy. */
    async setProxy(next: Proxy | undefined): Promise<void> {
      if (JSON.stringify(next) === JSON.stringify(proxy)) return; // a change would only drop connections
      proxy = next;
      const { gateway } = await engine; // a browser that is being started gets the proxy when it is up
      gateway.setProxy(proxy);
    },
  };
}

/** What the browsers of a session wrote at last. */
function browserLines(first: Engine) {
  /** The newest that was started, alive or not. */
  let newest = first;
  const earlier: string[] = [];

  return {
    started: (engine: Engine): Engine => (newest = engine),

    crashed({ browser }: Engine): string[] {
      const lines = browser.logTail();
      earlier.push(...lines.slice(-mostEarlier), 'The browser crashed.');
      earlier.splice(0, earlier.length - mostEarlier);
      return lines;
    },

    /** The last lines of the browsers' and the display's logs, also after they have exited. */
    lastLines: () => ({
      chromium: [...earlier, ...newest.browser.logTail()],
      ...(newest.browser.displayLog && { xvnc: newest.browser.displayLog() }),
    }),
  };
}

function crashCount() {
  const all: number[] = [];
  const recent = () => all.filter((at) => Date.now() - at < crashWindowMs).length;
  return {
    recent,
    add(): number {
      all.push(Date.now());
      return recent();
    },
  };
}
