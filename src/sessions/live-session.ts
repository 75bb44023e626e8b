import { setMaxListeners } from 'node:events';
import { oneByOne } from '../lib/one-at-a-time.ts';
import type { Proxy } from '../chromium/egress/proxy.ts';
import type { Engine } from '../chromium/engine.ts';
import { errors } from '../errors.ts';
import { within } from '../lib/deadline.ts';
import type { Log } from '../lib/log.ts';
import { sessionClients } from './clients.ts';
import type { LastLines } from './logs/kept.ts';
import { sessionFrontPage } from './front-page.ts';
import { sessionHolds } from './holds.ts';
import { forgetProcesses, processLines } from './process/tails.ts';
import { sessionStandby } from './standby.ts';
import { endings, SessionEnded, type Ending } from './state.ts';
import { closingMs, sessionSuccession, type StartNext } from './succession.ts';
import type { SessionTelemetry } from './telemetry.ts';
import type { SessionTimings } from './timings.ts';
import { sessionThumbnail } from './thumbnail.ts';

export interface LiveSessionOptions {
  id: string;
  projectId: string;
  engine: Engine;
  /** Undefined: the session is idle in a pool and does not time out. */
  timeoutSeconds: number | undefined;
  /** A browser on a GPU cannot be frozen. */
  mayStandBy: boolean;
  /** The proxy from the start; undefined for none. */
  proxy: Proxy | undefined;
  telemetry: SessionTelemetry;
  /** Starts a browser with the same options in the same directory. */
  relaunch: StartNext;
  /** The session was asleep and runs again. */
  onAwake?: () => void;
  /** The session fell asleep or woke up. */
  onClock?: (clock: { uptimeMs: number; awake: boolean }) => void;
  /** The idle timeout has run out. */
  onIdle: () => void;
  /** The browser has exited and is not replaced. */
  onLost: (detail: string) => void;
  timings?: Partial<SessionTimings> | undefined;
  log: Log;
}

/** How long a look at the browser may take: it is for an answer that can do without. */
const lookMs = 1000;
/** The same for the picture that is shown of it while it sleeps. In a pool it shows nothing that anybody did. */
const pictureMs = 2000;

/** A recording of a session that is under way. */
export interface Recorded {
  /** Ends its video. The returned function begins the next one, unless the recording has ended. It never rejects. */
  cut(): () => Promise<void>;
}

export type LiveSession = ReturnType<typeof liveSession>;

/**
 * A running browser that clients attach to: its lease and its end. Its holds, clients, standby and replacement after a crash have files
 * of their own. It ends in one way only, by `end`.
 */
export function liveSession(options: LiveSessionOptions) {
  const { id, telemetry, onIdle, log } = options;
  let { timeoutSeconds } = options;
  let lease: string | null = null;
  let lending = unlimited();
  /** Whether the session was held since it was lent, or anything else happened to it. */
  let used = true;
  let ending: Ending | undefined;
  let over: Promise<void> | undefined;
  /** What processes of its users had said when it ended. */
  let spoken: readonly string[] = [];
  const stopping = new AbortController();
  const changes = oneByOne();

  const clients = sessionClients({ id, ending: () => ending, visited: telemetry.visited, log });
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
  const mayAsk = () => !standby.frozen && !ending;
  const front = sessionFrontPage({ engine: browsers.current, mayAsk });
  const wall = sessionThumbnail({ engine: browsers.current, mayAsk });
  const standby = sessionStandby({
    ...options,
    engine: browsers.current,
    standbyMs: options.timings?.standbyMs,
    beforeSleep: () => Promise.all([front.look(lookMs), timeoutSeconds === undefined || wall.look(pictureMs)]),
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
    secondMs: options.timings?.secondMs,
    until: () => lending.signal,
    ending: () => ending,
    onHold: () => (used = true),
    onIdle,
  });
  holds.restartTimers();
  telemetry.hide(options.proxy);

  const setProxy = (proxy: Proxy | undefined) => (telemetry.hide(proxy), browsers.setProxy(proxy));

  return {
    id,
    projectId: options.projectId,
    telemetry,
    hold: holds.hold,
    attach: clients.attach,
    whenGone: browsers.whenGone,
    setProxy,
    still: standby.still,
    uptimeMs: standby.uptimeMs,

    /** The session is idle in a pool: its last holder may no longer use it. */
    get shelved() {
      return timeoutSeconds === undefined;
    },
    get clientCount() {
      return clients.count;
    },
    sight: sightOf({ clients, holds, front, wall, browsers, ending: () => ending }),
    get viewerCount() {
      return clients.viewers;
    },
    /** How its live view is drawn. */
    get view(): 'display' | 'screencast' {
      return options.engine.browser.connectDisplay ? 'display' : 'screencast'; // a replacement is of the same kind as the first browser
    },
    get standingBy() {
      return standby.asleep;
    },
    /** Whether the session's processes run. */
    get awake() {
      return !standby.frozen && !ending;
    },
    get ending() {
      return ending;
    },

    /** Changes run one at a time, so that the row and the browser end up with the same, last one, and a failed one can be undone. */
    changing: changes,
    /** Its recordings. A video has one size, so a change of the viewport cuts each of them in two. */
    recordings: new Set<Recorded>(),
    get proxy() {
      return browsers.proxy();
    },
    /** Undoes the proxy changes of a lease that has ended. */
    resetProxy: () => setProxy(options.proxy),

    /** The current lease, if a pool lent the session. Addresses of an earlier lease are not valid. */
    get lease() {
      return lease;
    },

    /** For pools: the session has a holder from now on. */
    lend(to: { lease: string; timeoutSeconds: number; used: boolean }) {
      ({ lease, timeoutSeconds, used } = to);
      lending = unlimited();
      holds.restartTimers();
    },

    /** For pools: the session has no holder from now on. Closes its clients and stops its timeout. Answers whether it was used. */
    takeBack(): boolean {
      lease = null;
      timeoutSeconds = undefined;
      lending.abort(errors.session_not_found({ session: id }));
      clients.close(1001, 'The browser went back to its pool.');
      telemetry.shelve();
      for (const seen of [front, wall]) seen.forget();
      void browsers.current().then(({ guest }) => forgetProcesses(guest), ignore);
      holds.restartTimers();
      return used;
    },

    restart: restarter(holds, browsers),

    /** What its processes wrote at last, without secrets; also when it has ended. */
    lastLines: (): LastLines => mapped({ ...browsers.lastLines(), processes: spoken }, telemetry.clean),

    /** Closes the clients and the browser. All callers await the same end. With `keep` the browser closes its files in order, and they are kept. */
    end(reason: Ending, { keep = false } = {}): Promise<void> {
      ending ??= reason;
      return (over ??= (async () => {
        holds.stopTimers();
        stopping.abort(new SessionEnded(reason));
        clients.close(1001, endings[reason]);
        const last = await browsers.current().catch(() => undefined);
        if (last) spoken = await processLines(last.guest);
        await last?.close(keep ? { graceMs: closingMs } : {});
        standby.stopClock();
      })().finally(() => telemetry.end()));
    },
  };
}

const ignore = () => {};

const mapped = (lines: LastLines, change: (lines: readonly string[]) => string[]): LastLines =>
  Object.fromEntries(Object.entries(lines).map(([name, those]) => [name, change(those)]));

/** The public view of a session, for callers without control rights. */
function sightOf({
  clients,
  holds,
  front,
  wall,
  browsers,
  ending,
}: {
  clients: ReturnType<typeof sessionClients>;
  holds: ReturnType<typeof sessionHolds>;
  front: ReturnType<typeof sessionFrontPage>;
  wall: ReturnType<typeof sessionThumbnail>;
  browsers: ReturnType<typeof sessionSuccession>;
  ending: () => Ending | undefined;
}) {
  return {
    /** What uses the session: its websockets by kind, and requests. */
    get uses() {
      return { ...clients.byKind, requests: Math.max(0, holds.count - clients.holding) };
    },
    /** When it ends by its idle timeout, unless it is used before. */
    get endsAt() {
      return ending() ? undefined : holds.endsAt;
    },
    /** The page in front, as it was last seen. */
    get frontPage() {
      return front.seen;
    },
    /** Asks the browser which page is in front. A session that sleeps is not woken. */
    look: () => front.look(lookMs),
    /** A small picture of the page in front. A session that sleeps is not woken. */
    thumbnail: () => wall.look(),
    async memoryBytes(): Promise<number | undefined> {
      if (ending()) return undefined;
      const measured = browsers.current().then(({ browser }) => browser.memory());
      return within(lookMs, 'The memory', measured).catch(() => undefined); // such as while the browser is being replaced
    },
  };
}

function restarter(holds: ReturnType<typeof sessionHolds>, browsers: ReturnType<typeof sessionSuccession>) {
  const restarts = oneByOne(); // a second plan would replace the first one, which would then never resolve
  /**
   * Stops the browser in order and starts another one in its place, at the same addresses; clients are asked to reconnect. Rejects when
   * that fails, which ends the session.
   */
  return (
    start: StartNext,
    reason: string,
    /** Whether this browser is still to be replaced when the restart's turn comes. */
    isOld: (engine: Engine) => Promise<boolean> = async () => true,
  ): Promise<void> =>
    restarts(async () => {
      const held = await holds.hold();
      try {
        if (await isOld(held.engine)) await browsers.handOver(held.engine, start, reason);
      } finally {
        held.release();
      }
    });
}

/** Every request that uses the session listens to its signal. */
function unlimited(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
