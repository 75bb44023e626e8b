import type { Engine } from '../chromium/engine.ts';
import type { Log } from '../lib/log.ts';
import type { WebSocketReceiver, WebSocketSink } from '../lib/ws-sink.ts';
import { endings, type Ending } from './state.ts';

const standbyMs = 5000;
const mostCrashes = 3;
const crashWindowMs = 5 * 60 * 1000;
const crashed = 'The browser crashed and is being started again. Connect again to the same address.';

export interface LiveSessionOptions {
  id: string;
  engine: Engine;
  /** Undefined: it waits for as long as it takes, on a pool's shelf. */
  timeoutSeconds: number | undefined;
  /** A browser on a GPU cannot be stopped in the middle of things. */
  mayStandBy: boolean;
  /** Starts a browser like the first one, in the same place. */
  relaunch: (signal: AbortSignal) => Promise<Engine>;
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
  /** Giving back twice is giving back once. */
  release(): void;
}

/**
 * A running browser that clients attach to: who uses it, when it may sleep, when it has idled too long, and what happens
 * when it crashes. It ends by one road, `end`, whoever asks.
 */
export function liveSession(options: LiveSessionOptions) {
  const { id, mayStandBy, relaunch, onIdle, onLost, log } = options;
  let { timeoutSeconds } = options;
  /** The browser, or the next one while it is being started. */
  let engine = Promise.resolve(options.engine);
  let current = options.engine;
  let holds = 0;
  let viewers = 0;
  let ending: Ending | undefined;
  let over: Promise<void> | undefined;
  const sinks = new Set<WebSocketSink>();
  const crashes: number[] = [];
  const stopping = new AbortController();

  let moves = Promise.resolve();
  let frozen = false;
  let activeMs = 0;
  let activeSince: number | undefined = performance.now();
  let standby: NodeJS.Timeout | undefined;
  let idle: NodeJS.Timeout | undefined;

  void watch(options.engine);
  rest();

  /** Wakes it and keeps it awake. Rejects when it has ended or its browser cannot be brought back. */
  async function hold(): Promise<Hold> {
    if (ending) throw new SessionEnded(ending);
    holds++;
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
      await move(wake);
      return { engine: await engine, release };
    } catch (error) {
      release();
      throw ending ? new SessionEnded(ending) : error;
    }
  }

  /** Nobody uses it: first it may sleep, then it has idled too long. */
  function rest() {
    if (ending) return;
    if (mayStandBy) standby = setTimeout(() => void fallAsleep(), standbyMs);
    if (timeoutSeconds !== undefined) idle = setTimeout(onIdle, timeoutSeconds * 1000);
  }

  async function fallAsleep() {
    await move(sleep).catch((error: Error) => log.warn({ session: id, error: error.message }, 'session.not_frozen'));
  }

  /** One after the other, in the order they were wanted; one that failed does not hold up the next. */
  function move(step: () => Promise<void>): Promise<void> {
    const moved = moves.then(step);
    moves = moved.catch(() => {});
    return moved;
  }

  async function sleep() {
    if (holds > 0 || frozen || ending) return;
    frozen = true; // before it is tried: half frozen is to be thawed, too
    await current.browser.freeze();
    if (activeSince !== undefined) activeMs += performance.now() - activeSince;
    activeSince = undefined;
    log.debug({ session: id }, 'session.standby');
  }

  async function wake() {
    if (!frozen) return;
    await current.browser.thaw();
    frozen = false;
    activeSince ??= performance.now();
    log.debug({ session: id }, 'session.awake');
  }

  /** Waits for a browser's end. If nobody asked for it, starts the next one in its place, unless that happens too often. */
  async function watch(watched: Engine): Promise<void> {
    await watched.browser.exited;
    if (ending) return;
    frozen = false;
    activeSince ??= performance.now();
    crashes.push(Date.now());
    const recent = crashes.filter((at) => Date.now() - at < crashWindowMs).length;
    const lastWords = watched.browser.logTail().slice(-5);
    log.warn({ session: id, crashes: recent, lastWords }, 'session.browser_crashed');
    closeClients(1012, crashed);
    if (timeoutSeconds === undefined) return onLost('The browser crashed while nobody held it.');
    if (recent > mostCrashes) {
      return onLost(`The browser crashed ${recent} times in five minutes. Its last words: ${lastWords.join(' ')}`);
    }
    // Set before anything is awaited: whoever comes now waits for the next browser.
    engine = watched.close().then(() => relaunch(stopping.signal));
    try {
      current = await engine;
    } catch (error) {
      if (!ending) onLost((error as Error).message);
      return;
    }
    await watch(current);
  }

  function closeClients(code: number, reason: string) {
    for (const sink of sinks) sink.close(code, reason);
  }

  /**
   * Lets a websocket in. It holds the session until it closes; whatever ends the session or the browser closes it with a
   * code and a sentence.
   */
  function attach(
    held: Hold,
    use: (engine: Engine, sink: WebSocketSink) => WebSocketReceiver,
    kind: 'client' | 'viewer' = 'client',
  ) {
    return (sink: WebSocketSink): WebSocketReceiver => {
      sinks.add(sink);
      if (kind === 'viewer') viewers++;
      const receiver = use(held.engine, sink);
      if (ending) sink.close(1001, endings[ending]);
      let left = false;
      return {
        receive: (data) => receiver.receive(data),
        flush: () => receiver.flush(),
        closed() {
          receiver.closed();
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

    get clientCount() {
      return sinks.size;
    },
    get viewerCount() {
      return viewers;
    },
    /** How its live view is drawn. */
    get view(): 'display' | 'screencast' {
      return current.browser.rfbPath === undefined ? 'screencast' : 'display';
    },
    get standingBy() {
      return frozen;
    },
    get ending() {
      return ending;
    },

    uptimeMs: () => Math.round(activeMs + (activeSince === undefined ? 0 : performance.now() - activeSince)),

    /** What clients that are attached to the browser itself are told when it goes. */
    whenGone: () => (ending ? { code: 1001, reason: endings[ending] } : { code: 1012, reason: crashed }),

    /** Somebody has it from now on, or (undefined) nobody: its clients go, and its clock stops. */
    setTimeout(seconds: number | undefined) {
      timeoutSeconds = seconds;
      if (seconds === undefined) closeClients(1001, 'The browser went back to its pool.');
      clearTimeout(standby);
      clearTimeout(idle);
      if (holds === 0) rest();
    },

    /** Closes its clients and its browser. Everyone who asks awaits the same end. */
    end(reason: Ending): Promise<void> {
      ending ??= reason;
      return (over ??= (async () => {
        clearTimeout(standby);
        clearTimeout(idle);
        stopping.abort(new SessionEnded(reason));
        closeClients(1001, endings[reason]);
        const last = await engine.catch(() => undefined);
        await last?.close({ discard: true });
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
