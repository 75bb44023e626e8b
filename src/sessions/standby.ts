import type { Browser } from '../chromium/browser/launch.ts';
import type { Engine } from '../chromium/engine.ts';
import type { Log } from '../lib/log.ts';
import { timings } from './timings.ts';

/** A session's standby: its browser is frozen while the session is not in use, and thawed for its next use. Counts the time it is awake. */
export function sessionStandby({
  id,
  engine,
  mayStandBy,
  inUse,
  ended,
  beforeSleep,
  onAwake,
  onClock,
  standbyMs = timings.standbyMs,
  log,
}: {
  id: string;
  /** The browser, or the next one while it is being started. */
  engine: () => Promise<Engine>;
  /** A browser on a GPU cannot be frozen. */
  mayStandBy: boolean;
  /** The session is used, so it stays awake. */
  inUse: () => boolean;
  ended: () => boolean;
  /** The last moment in which the browser answers. A client that connects at that time does not wait for it. */
  beforeSleep?: (() => Promise<unknown>) | undefined;
  onAwake?: (() => void) | undefined;
  /** It fell asleep or woke up, after so much time awake. */
  onClock?: ((clock: { uptimeMs: number; awake: boolean }) => void) | undefined;
  standbyMs?: number | undefined;
  log: Log;
}) {
  let timer: NodeJS.Timeout | undefined;
  let moves = Promise.resolve();
  let hurry = () => {};
  let frozen = false;
  let activeMs = 0;
  let activeSince: number | undefined = performance.now();

  /** Freezes and thaws run one after the other. */
  function inTurn(move: () => Promise<void>): Promise<void> {
    const done = moves.then(move);
    moves = done.catch(() => {}); // a failed move must not block the next one
    return done;
  }

  function stopClock() {
    if (activeSince !== undefined) activeMs += performance.now() - activeSince;
    activeSince = undefined;
  }

  function startClock() {
    if (activeSince !== undefined) return;
    activeSince = performance.now();
    onClock?.({ uptimeMs: Math.round(activeMs), awake: true });
  }

  function sleep(): Promise<void> {
    return inTurn(async () => {
      const { browser, mux } = await engine();
      if (beforeSleep && !inUse()) await Promise.race([beforeSleep(), new Promise<void>((now) => (hurry = now))]);
      if (inUse() || frozen || ended() || mux.isClosed) return;
      frozen = true; // until it is thawed, also if it fails halfway
      try {
        await browser.freeze();
      } catch (error) {
        await browser.thaw();
        frozen = false;
        throw error;
      }
      stopClock();
      onClock?.({ uptimeMs: Math.round(activeMs), awake: false });
      log.debug({ session: id }, 'session.standby');
    }).catch(
      (error: Error) => void (ended() || log.warn({ session: id, error: error.message }, 'session.stayed_awake')),
    );
  }

  return {
    /** Whether the browser is frozen, or about to be: it is not to be asked anything. */
    get frozen() {
      return frozen;
    },

    /** Whether the session is asleep: all of its processes are frozen, and the time does not count. A freeze may take seconds. */
    get asleep() {
      return frozen && activeSince === undefined;
    },

    /** Puts the session to sleep after a delay, unless it is in use by then. */
    dozeOff() {
      clearTimeout(timer);
      if (mayStandBy) timer = setTimeout(() => void sleep(), standbyMs);
    },

    cancel: () => clearTimeout(timer),

    wake(): Promise<void> {
      hurry();
      return inTurn(async () => {
        if (!frozen) return;
        await (await engine()).browser.thaw();
        frozen = false;
        startClock();
        onAwake?.();
        log.debug({ session: id }, 'session.awake');
      });
    },

    /** Runs `work` while the session is frozen. A sleeping session is not woken for it; a session that cannot be frozen keeps running. */
    async still<T>(work: (browser: Browser) => Promise<T>): Promise<T> {
      let result: { of: T } | undefined;
      hurry();
      await inTurn(async () => {
        const { browser } = await engine();
        const stops = mayStandBy && !frozen && !ended();
        try {
          if (stops) await browser.freeze();
          result = { of: await work(browser) };
        } finally {
          if (stops) await browser.thaw();
        }
      });
      return result!.of;
    },

    /** The browser crashed, asleep or awake. The next one starts awake. */
    crashed() {
      frozen = false;
      startClock();
    },

    /** The session is over. */
    stopClock,
    uptimeMs: () => Math.round(activeMs + (activeSince === undefined ? 0 : performance.now() - activeSince)),
  };
}
