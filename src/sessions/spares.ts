import type { Engine } from '../chromium/engine.ts';
import type { Log } from '../lib/log.ts';

export type Shape = 'headless' | 'headful';

/** A browser that runs for a session to come. It gets the session's id, so its directory is the session's from the start. */
export interface Spare {
  id: string;
  engine: Engine;
  /** Changed when it becomes a session. */
  whenGone: () => { code: number; reason: string };
}

const firstPauseMs = 1000;
const longestPauseMs = 60_000;
/** A refill takes the processor from whoever has just been given a browser; it waits until they are likely on their way. */
const settleMs = 300;

export type Spares = ReturnType<typeof warmSpares>;

/**
 * Keeps a few browsers of the common shapes running. One that dies is replaced; launches that fail are tried again ever
 * more slowly. `room` says whether the node may run one more now.
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

  /** Asked again while it waits, it waits no longer for that: those who come and go all the time need spares, too. */
  function fillSoon(ms = settleMs) {
    if (closed) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      fill();
    }, ms);
  }

  function fill() {
    for (const shape of ['headless', 'headful'] as const) {
      if (closed || starting[shape] || shelf[shape].length >= wanted[shape] || !room()) continue;
      // One at a time: a start takes a core for as long as it lasts.
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

  /** It died on the shelf. */
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

    /** It was taken for a session that was refused after all. */
    giveBack(shape: Shape, spare: Spare) {
      if (closed) return void discard(spare);
      shelf[shape].unshift(spare);
    },

    /** Makes room for a session when the node is full of spares. */
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
