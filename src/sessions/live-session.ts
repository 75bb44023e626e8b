import { setMaxListeners } from 'node:events';
import type { Engine } from '../chromium/engine.ts';
import type { Browser } from '../chromium/browser/launch.ts';
import type { Proxy } from '../chromium/egress/proxy.ts';
import type { Log } from '../lib/log.ts';
import type { WebSocketReceiver, WebSocketSink } from '../lib/ws-sink.ts';
import { endings, type Ending } from './state.ts';

const standbyMs = 5000;
const mostCrashes = 3;
const crashWindowMs = 5 * 60 * 1000;
/** What a browser may take to write down what it has; it is a few tenths of a second as a rule. */
const closingMs = 10_000;

interface Planned {
  start: LiveSessionOptions['relaunch'];
  reason: string;
  done: () => void;
  failed: (error: Error) => void;
}

export interface LiveSessionOptions {
  id: string;
  engine: Engine;
  /** Undefined: it waits for as long as it takes, on a pool's shelf. */
  timeoutSeconds: number | undefined;
  /** A browser on a GPU cannot be stopped in the middle of things. */
  mayStandBy: boolean;
  /** What its traffic leaves by, from the start. */
  proxy: Proxy | undefined;
  /** Starts a browser like the first one, in the same place. */
  relaunch: (signal: AbortSignal, proxy: Proxy | undefined) => Promise<Engine>;
  /** It was asleep, and runs again. */
  onAwake?: () => void;
  /** The idle timeout has run out. */
  onIdle: () => void;
  /** The browser is gone for good. */
  onLost: (detail: string) => void;
  log: Log;
}

export type LiveSession = ReturnType<typeof liveSession>;

/** Somebody who uses the session. While there is one, it stays awake and does not time out. */
export interface Hold {
  engine: Engine;
  /** Aborts when the browser goes back to its pool: what still streams to whoever had it must not show the next holder. */
  until: AbortSignal;
  /** Giving back twice is giving back once. */
  release(): void;
  /** Something goes on in it that nobody waits for: until that is over it does not sleep, but it may time out. */
  stayAwake(): () => void;
}

/**
 * A running browser that clients attach to: who uses it, when it may sleep, when it has idled too long, and what happens
 * when it crashes. It ends by one road, `end`, whoever asks.
 */
export function liveSession(options: LiveSessionOptions) {
  const { id, mayStandBy, relaunch, onAwake, onIdle, onLost, log } = options;
  let { timeoutSeconds, proxy } = options;
  let lease: string | null = null;
  let lending = new AbortController();
  /** Whether anybody has come to it since it was lent, or anything has happened to it. */
  let used = true;
  /** The browser, or the next one while it is being started. */
  let engine = Promise.resolve(options.engine);
  let holds = 0;
  let busy = 0;
  let viewers = 0;
  let ending: Ending | undefined;
  let over: Promise<void> | undefined;
  const sinks = new Set<WebSocketSink>();
  const crashes: number[] = [];
  /** A browser that is about to take this one's place, not because it crashed. */
  let planned: Planned | undefined;
  const stopping = new AbortController();

  let moves = Promise.resolve();
  let swaps = Promise.resolve();
  let restarts = Promise.resolve(); // one plan at a time: a second would take the first one's place, and its end never come
  let frozen = false;
  let activeMs = 0;
  let activeSince: number | undefined = performance.now();
  let standby: NodeJS.Timeout | undefined;
  let idle: NodeJS.Timeout | undefined;

  void watch();
  rest();

  /** Wakes it and keeps it awake. Rejects when it has ended or its browser cannot be brought back. */
  async function hold(): Promise<Hold> {
    if (ending) throw new SessionEnded(ending);
    holds++;
    used = true;
    clearTimeout(standby);
    clearTimeout(idle);
    let held = true;
    const release = () => {
      if (!held) return;
      held = false;
      holds--;
      if (holds === 0) rest();
    };
    try {
      await wake();
      return { engine: await answering(), until: lending.signal, release, stayAwake };
    } catch (error) {
      release();
      throw ending ? new SessionEnded(ending) : error;
    }
  }

  function stayAwake(): () => void {
    busy++;
    let over = false;
    return () => {
      if (over) return;
      over = true;
      busy--;
      if (busy === 0 && holds === 0 && !ending) dozeOff();
    };
  }

  /** The browser, but never one that has just died: then its successor is waited for. */
  async function answering(): Promise<Engine> {
    for (;;) {
      const found = await engine;
      if (ending) throw new SessionEnded(ending);
      if (!found.mux.isClosed) return found;
      await found.browser.exited; // by then `watch` has put the next one in its place
    }
  }

  /** Nobody uses it: first it may sleep, then it has idled too long. */
  function rest() {
    if (ending) return;
    dozeOff();
    if (timeoutSeconds !== undefined) idle = setTimeout(onIdle, timeoutSeconds * 1000);
  }

  function restartTimers() {
    clearTimeout(standby);
    clearTimeout(idle);
    if (holds === 0) rest();
  }

  function dozeOff() {
    clearTimeout(standby);
    if (mayStandBy) standby = setTimeout(() => void sleep(), standbyMs);
  }

  function inTurn(move: () => Promise<void>): Promise<void> {
    const done = moves.then(move);
    moves = done.catch(() => {}); // one that failed must not keep the next from being tried
    return done;
  }

  function sleep(): Promise<void> {
    return inTurn(async () => {
      const { browser, mux } = await engine;
      if (holds > 0 || busy > 0 || frozen || ending || mux.isClosed) return;
      frozen = true; // even if it fails halfway: then it has to be woken all the same
      await browser.freeze();
      if (activeSince !== undefined) activeMs += performance.now() - activeSince;
      activeSince = undefined;
      log.debug({ session: id }, 'session.standby');
    }).catch(
      (error: Error) => void (ending || log.warn({ session: id, error: error.message }, 'session.stayed_awake')),
    );
  }

  function wake(): Promise<void> {
    return inTurn(async () => {
      if (!frozen) return;
      await (await engine).browser.thaw();
      frozen = false;
      activeSince ??= performance.now();
      onAwake?.();
      log.debug({ session: id }, 'session.awake');
    });
  }

  /** Does something while nothing of it runs. One that sleeps is not woken for it; one that cannot be stopped runs on. */
  async function still<T>(work: (browser: Browser) => Promise<T>): Promise<T> {
    let result: { of: T } | undefined;
    await inTurn(async () => {
      const { browser } = await engine;
      const stops = mayStandBy && !frozen && !ending;
      try {
        if (stops) await browser.freeze();
        result = { of: await work(browser) };
      } finally {
        if (stops) await browser.thaw();
      }
    });
    return result!.of;
  }

  /** Puts another browser in the place of each that crashes, for as long as there is to be one. */
  async function watch(): Promise<void> {
    try {
      for (;;) {
        const watched = await engine;
        await watched.browser.exited;
        if (ending) return planned?.failed(new SessionEnded(ending));
        engine = planned ? follow(watched, planned) : replace(watched);
      }
    } catch (error) {
      if (!ending) onLost((error as Error).message);
    }
  }

  /** The next browser in the place of one that crashed. Rejects when there is to be none. */
  async function replace(crashed: Engine): Promise<Engine> {
    const { code, reason } = whenGone();
    frozen = false;
    used = true;
    activeSince ??= performance.now();
    crashes.push(Date.now());
    const count = recentCrashes();
    const lastWords = crashed.browser.logTail().slice(-5);
    log.warn({ session: id, crashes: count, lastWords }, 'session.browser_crashed');
    closeClients(code, reason);
    await crashed.close();
    if (timeoutSeconds === undefined) throw new Error('The browser crashed while nobody held it.');
    if (count > mostCrashes)
      throw new Error(`The browser crashed ${count} times in five minutes. Its last words: ${lastWords.join(' ')}`);
    const before = proxy;
    const next = await relaunch(stopping.signal, before);
    if (proxy !== before) next.gateway.setProxy(proxy); // swapped meanwhile
    if (holds === 0 && !ending) dozeOff();
    return next;
  }

  /** The next browser in the place of one that was stopped for it. */
  async function follow(stopped: Engine, plan: Planned): Promise<Engine> {
    try {
      closeClients(1012, plan.reason);
      await stopped.close();
      const before = proxy;
      const next = await plan.start(stopping.signal, before);
      if (proxy !== before) next.gateway.setProxy(proxy); // swapped meanwhile
      plan.done();
      if (holds === 0 && !ending) dozeOff();
      return next;
    } catch (error) {
      plan.failed(error as Error);
      throw error;
    } finally {
      planned = undefined;
    }
  }

  async function restartNow(start: Planned['start'], reason: string, isOld: (engine: Engine) => Promise<boolean>) {
    const held = await hold();
    try {
      if (!(await isOld(held.engine))) return;
      const followed = new Promise<void>((done, failed) => (planned = { start, reason, done, failed }));
      followed.catch(() => {}); // awaited below, once it was stopped
      await held.engine.close({ graceMs: closingMs });
      await followed;
    } finally {
      held.release();
    }
  }

  function recentCrashes(): number {
    return crashes.filter((at) => Date.now() - at < crashWindowMs).length;
  }

  /** What clients are told when the browser goes: that it comes back, unless it has crashed too often. */
  function whenGone(): { code: number; reason: string } {
    if (ending) return { code: 1001, reason: endings[ending] };
    if (planned) return { code: 1012, reason: planned.reason };
    if (recentCrashes() >= mostCrashes) return { code: 1011, reason: endings.crashed };
    return { code: 1012, reason: 'The browser crashed and is being started again. Connect again to the same address.' };
  }

  /** Its traffic leaves by this from now on, in this browser and in those that take its place. Undefined: by no proxy. */
  async function setProxy(next: Proxy | undefined): Promise<void> {
    if (JSON.stringify(next) === JSON.stringify(proxy)) return; // nothing would change but dropped connections
    proxy = next;
    const { gateway } = await engine; // one that is being started hears of it when it stands
    gateway.setProxy(proxy);
  }

  function closeClients(code: number, reason: string) {
    for (const sink of sinks) sink.close(code, reason);
  }

  /**
   * Lets a websocket in. It holds the session until it closes; whatever ends the session or the browser closes it with a
   * code and a sentence.
   */
  function attach(held: Hold, use: (sink: WebSocketSink) => WebSocketReceiver, kind: 'client' | 'viewer' = 'client') {
    return (sink: WebSocketSink): WebSocketReceiver => {
      sinks.add(sink);
      if (kind === 'viewer') viewers++;
      const receiver = use(sink);
      if (ending) sink.close(1001, endings[ending]);
      let left = false;
      /** Whatever one client's message does, it ends no more than that client. */
      const failed = (error: unknown) => {
        log.error({ session: id, error: error instanceof Error ? error.stack : error }, 'session.client_failed');
        sink.close(1011, 'Something broke on our side.');
      };
      return {
        receive(data, binary) {
          try {
            receiver.receive(data, binary);
          } catch (error) {
            failed(error);
          }
        },
        flush() {
          try {
            receiver.flush();
          } catch (error) {
            failed(error);
          }
        },
        closed() {
          try {
            receiver.closed();
          } catch (error) {
            failed(error);
          }
          if (left) return;
          left = true;
          sinks.delete(sink);
          if (kind === 'viewer') viewers--;
          held.release();
        },
      };
    };
  }

  return {
    id,
    hold,
    attach,

    /** It waits on a pool's shelf, and whoever had it before has no business with it. */
    get shelved() {
      return timeoutSeconds === undefined;
    },
    get clientCount() {
      return sinks.size;
    },
    get viewerCount() {
      return viewers;
    },
    /** How its live view is drawn. */
    get view(): 'display' | 'screencast' {
      return options.engine.browser.connectDisplay ? 'display' : 'screencast'; // the next one is like the first
    },
    get standingBy() {
      return frozen;
    },
    /** Whether its processes run. */
    get awake() {
      return !frozen && !ending;
    },
    get ending() {
      return ending;
    },
    still,

    uptimeMs: () => Math.round(activeMs + (activeSince === undefined ? 0 : performance.now() - activeSince)),

    whenGone,

    setProxy,
    /** One change of the proxy at a time, so that who comes last has the last word in the row and in the browser. */
    swapping<T>(work: () => Promise<T>): Promise<T> {
      const done = swaps.then(work);
      swaps = done.then(
        () => {},
        () => {},
      );
      return done;
    },
    /** A lease is over: what it changed goes with it. */
    resetProxy: () => setProxy(options.proxy),

    /** What its holder has, if it was lent by a pool: an address from before leads nowhere. */
    get lease() {
      return lease;
    },

    /** For pools: somebody has it from now on. */
    lend(to: { lease: string; timeoutSeconds: number; used: boolean }) {
      ({ lease, timeoutSeconds, used } = to);
      lending = new AbortController();
      setMaxListeners(0, lending.signal); // one for each stream
      restartTimers();
    },

    /** For pools: nobody has it from now on. Its clients go, and its clock stops. Answers whether anybody had used it. */
    takeBack(): boolean {
      lease = null;
      timeoutSeconds = undefined;
      lending.abort();
      closeClients(1001, 'The browser went back to its pool.');
      restartTimers();
      return used;
    },

    /**
     * Stops the browser in order and puts another in its place, at the same addresses; its clients are told to come back.
     * Rejects when there is none after that, which is the session's end.
     */
    restart(
      start: Planned['start'],
      reason: string,
      /** Whether this browser is one to replace, once it is our turn. */
      isOld: (engine: Engine) => Promise<boolean> = async () => true,
    ): Promise<void> {
      const done = restarts.then(() => restartNow(start, reason, isOld));
      restarts = done.catch(() => {});
      return done;
    },

    /**
     * Closes its clients and its browser. Everyone who asks awaits the same end. With `keep` the browser may close its files in
     * order, and they stay.
     */
    end(reason: Ending, { keep = false } = {}): Promise<void> {
      ending ??= reason;
      return (over ??= (async () => {
        clearTimeout(standby);
        clearTimeout(idle);
        stopping.abort(new SessionEnded(reason));
        closeClients(1001, endings[reason]);
        const last = await engine.catch(() => undefined);
        await last?.close(keep ? { graceMs: closingMs } : {});
        if (activeSince !== undefined) activeMs += performance.now() - activeSince;
        activeSince = undefined;
      })());
    },
  };
}

export class SessionEnded extends Error {
  override readonly name = 'SessionEnded';
  readonly reason: Ending;
  constructor(reason: Ending) {
    super(endings[reason]);
    this.reason = reason;
  }
}
