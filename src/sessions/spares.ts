import type { Engine } from '../chromium/engine.ts';
import type { Log } from '../lib/log.ts';
import { withoutOwner } from '../lib/scope.ts';

export type Shape = 'headless' | 'headful';

/** A browser that runs for a future session. Its id becomes the session's, so its directory is the session's from the start. */
export interface Spare {
  id: string;
  engine: Engine;
  /** Replaced when the spare becomes a session. */
  whenGone: () => { code: number; reason: string };
}

const firstPauseMs = 1000;
const longestPauseMs = 60_000;
/** A refill takes processor time from the client that has just got a browser, so it waits until that client's first steps are likely over. */
const settleMs = 300;

/**
 * Keeps a few browsers of the common shapes running. A dead browser is replaced; failed launches are retried at growing intervals. `room`
 * says whether the node may run one more now.
 */
export function warmSpares({
  wanted,
  start,
  discard,
  room,
  log,
}: {
  wanted: Record<Shape, number>;
  start: (shape: Shape) => Promise<Spare>;
  discard: (spare: Spare) => Promise<void>;
  room: () => boolean;
  log: Log;
}) {
  const shelf: Record<Shape, Spare[]> = { headless: [], headful: [] };
  const starting: Record<Shape, Promise<void> | undefined> = { headless: undefined, headful: undefined };
  let pauseMs = firstPauseMs;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  /** A repeated call does not extend the delay: sessions that come and go all the time need spares, too. */
  function fillSoon(ms = settleMs) {
    if (closed) return;
    const due = () => {
      timer = undefined;
      fill();
    };
    timer ??= withoutOwner(() => setTimeout(due, ms));
  }

  function fill() {
    for (const shape of ['headless', 'headful'] as const) {
      if (closed || starting[shape] || shelf[shape].length >= wanted[shape] || !room()) continue;
      // One at a time: a start occupies a core for as long as it lasts.
      starting[shape] = start(shape)
        .then((spare) => {
          pauseMs = firstPauseMs;
          if (closed) return discard(spare);
          shelf[shape].push(spare);
          void spare.engine.browser.exited.then(() => drop(shape, spare));
          return undefined;
        })
        .catch((error: Error) => {
          log.warn({ shape, error: error.message, retryMs: pauseMs }, 'spare.did_not_start');
          fillSoon(pauseMs);
          pauseMs = Math.min(pauseMs * 2, longestPauseMs);
        })
        .finally(() => {
          starting[shape] = undefined;
          if (pauseMs === firstPauseMs) fill();
        });
    }
  }

  /** Removes a spare that died before it was used. */
  function drop(shape: Shape, spare: Spare) {
    const at = shelf[shape].indexOf(spare);
    if (at === -1) return;
    shelf[shape].splice(at, 1);
    log.warn({ shape }, 'spare.died');
    void discard(spare);
    fillSoon();
  }

  return {
    fill,
    fillSoon,

    take(shape: Shape): Spare | undefined {
      const spare = shelf[shape].shift();
      if (wanted[shape] > 0) fillSoon();
      return spare;
    },

    /** Returns a spare after its session was refused. */
    giveBack(shape: Shape, spare: Spare) {
      if (closed) return void discard(spare);
      shelf[shape].unshift(spare);
    },

    /** Ends the spare of this id. False: there is none. */
    dropOne(id: string): boolean {
      for (const shape of ['headless', 'headful'] as const) {
        const spare = shelf[shape].find((spare) => spare.id === id);
        if (spare) drop(shape, spare);
        if (spare) return true;
      }
      return false;
    },

    /** Ends a spare to free a place for a session when the node is full of spares. */
    async giveUpOne(): Promise<boolean> {
      const spare = shelf.headful.pop() ?? shelf.headless.pop();
      if (spare) await discard(spare);
      return spare !== undefined;
    },

    count: (shape: Shape) => shelf[shape].length,

    async close() {
      closed = true;
      clearTimeout(timer);
      await Promise.all([starting.headless, starting.headful]);
      await Promise.all([...shelf.headless.splice(0), ...shelf.headful.splice(0)].map(discard));
    },
  };
}
