import { setMaxListeners } from 'node:events';
import type { Proxy } from '../chromium/egress/proxy.ts';
import type { Engine } from '../chromium/engine.ts';
import type { Log } from '../lib/log.ts';
import { sessionClients } from './clients.ts';
import { sessionHolds } from './holds.ts';
import { sessionStandby } from './standby.ts';
import { endings, SessionEnded, type Ending } from './state.ts';
import { closingMs, sessionSuccession, type StartNext } from './succession.ts';

export interface LiveSessionOptions {
  id: string;
  engine: Engine;
  /** Undefined: it waits for as long as it takes, on a pool's shelf. */
  timeoutSeconds: number | undefined;
  /** A browser on a GPU cannot be frozen. */
  mayStandBy: boolean;
  /** What its traffic leaves by, from the start. */
  proxy: Proxy | undefined;
  /** Starts a browser like the first one, in the same place. */
  relaunch: StartNext;
  /** It was asleep, and runs again. */
  onAwake?: () => void;
  /** The idle timeout has run out. */
  onIdle: () => void;
  /** The browser is gone for good. */
  onLost: (detail: string) => void;
  log: Log;
}

export type LiveSession = ReturnType<typeof liveSession>;

/**
 * A running browser that clients attach to: to which lease it belongs and how it ends. How it is held, its
 * clients, its standby and its replacement after a crash have files of their own. It ends by one road, `end`.
 */
export function liveSession(options: LiveSessionOptions) {
  const { id, onIdle, log } = options;
  let { timeoutSeconds } = options;
  let lease: string | null = null;
  let lending = new AbortController();
  /** Whether it was held since it was lent, or anything has happened to it. */
  let used = true;
  let ending: Ending | undefined;
  let over: Promise<void> | undefined;
  const stopping = new AbortController();
  const swaps = oneByOne();
  const restarts = oneByOne(); // a second plan would take the first one's place, and the first would never end

  const clients = sessionClients({ id, ending: () => ending, log });
  const browsers = sessionSuccession({
    ...options,
    first: options.engine,
    ending: () => ending,
    stopping: stopping.signal,
    mayReplace: () => timeoutSeconds !== undefined,
    closeClients: clients.close,
    onCrash() {
      standby.crashed();
      used = true;
    },
    onNext: () => holds.any || ending || standby.dozeOff(),
  });
  const standby = sessionStandby({
    ...options,
    engine: browsers.current,
    inUse: () => holds.inUse,
    ended: () => ending !== undefined,
  });
  const holds = sessionHolds({
    async wake() {
      await standby.wake();
      return browsers.answering();
    },
    dozeOff: standby.dozeOff,
    stayUp: standby.cancel,
    timeoutSeconds: () => timeoutSeconds,
    until: () => lending.signal,
    ending: () => ending,
    onHold: () => (used = true),
    onIdle,
  });
  holds.restartTimers();

  return {
    id,
    hold: holds.hold,
    attach: clients.attach,
    whenGone: browsers.whenGone,
    setProxy: browsers.setProxy,
    still: standby.still,
    uptimeMs: standby.uptimeMs,

    /** It waits on a pool's shelf: its last holder may not come to it any more. */
    get shelved() {
      return timeoutSeconds === undefined;
    },
    get clientCount() {
      return clients.count;
    },
    get viewerCount() {
      return clients.viewers;
    },
    /** How its live view is drawn. */
    get view(): 'display' | 'screencast' {
      return options.engine.browser.connectDisplay ? 'display' : 'screencast'; // the next one is like the first
    },
    get standingBy() {
      return standby.frozen;
    },
    /** Whether its processes run. */
    get awake() {
      return !standby.frozen && !ending;
    },
    get ending() {
      return ending;
    },

    /** One change of the proxy at a time, so that the last one has the last word in the row and in the browser. */
    swapping: swaps,
    /** A lease is over: what it changed goes with it. */
    resetProxy: () => browsers.setProxy(options.proxy),

    /** What its holder has, if it was lent by a pool: an address from before leads nowhere. */
    get lease() {
      return lease;
    },

    /** For pools: it has a holder from now on. */
    lend(to: { lease: string; timeoutSeconds: number; used: boolean }) {
      ({ lease, timeoutSeconds, used } = to);
      lending = new AbortController();
      setMaxListeners(0, lending.signal); // one for each stream
      holds.restartTimers();
    },

    /** For pools: it has no holder from now on. Its clients go, and its clock stops. Answers whether it was used. */
    takeBack(): boolean {
      lease = null;
      timeoutSeconds = undefined;
      lending.abort();
      clients.close(1001, 'The browser went back to its pool.');
      holds.restartTimers();
      return used;
    },

    /**
     * Stops the browser in order and puts another in its place, at the same addresses; its clients are told to come back.
     * Rejects when there is none after that, which is the session's end.
     */
    restart(
      start: StartNext,
      reason: string,
      /** Whether this browser is one to replace, once it is our turn. */
      isOld: (engine: Engine) => Promise<boolean> = async () => true,
    ): Promise<void> {
      return restarts(async () => {
        const held = await holds.hold();
        try {
          if (await isOld(held.engine)) await browsers.handOver(held.engine, start, reason);
        } finally {
          held.release();
        }
      });
    },

    /**
     * Closes its clients and its browser. Everyone who asks awaits the same end. With `keep` the browser may close its files in
     * order, and they stay.
     */
    end(reason: Ending, { keep = false } = {}): Promise<void> {
      ending ??= reason;
      return (over ??= (async () => {
        holds.stopTimers();
        stopping.abort(new SessionEnded(reason));
        clients.close(1001, endings[reason]);
        const last = await browsers.current().catch(() => undefined);
        await last?.close(keep ? { graceMs: closingMs } : {});
        standby.stopClock();
      })());
    },
  };
}

/** Runs one piece of work after the other, whatever became of the one before. */
function oneByOne() {
  let last: Promise<unknown> = Promise.resolve();
  return <T>(work: () => Promise<T>): Promise<T> => {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  };
}
