import type { Log } from '../lib/log.ts';
import { mergedRuns } from '../lib/merged-runs.ts';
import type { Db } from '../store/db.ts';
import { poolLaunches } from './launches.ts';
import type { Placed } from './nodes/anywhere.ts';
import { spreading } from './placement.ts';
import { poolStore, type PoolRow } from './store.ts';

/** How soon to look again at a pool with both an idle browser and a client that waits. */
const unservedMs = 250;

export type Filler = ReturnType<typeof filler>;

/**
 * Keeps pools full. `fill` looks at one pool and has the missing browsers made on the node with the most room: at once
 * for waiting clients and for the first fill of a new pool, one by one at the pool's rate for later losses. It is called
 * after every change, and by a timer when the pace or a failed launch delays it; concurrent calls are merged. All state
 * that counts is in the database, so any node may do this.
 */
export function filler({
  db,
  nodeId,
  make,
  place,
  makeAt,
  retire,
  onShelved,
  onLaunched,
  log,
}: {
  db: Db;
  nodeId: string;
  /** Makes one browser of the pool on this node and resolves with its id. */
  make: (pool: PoolRow, onPlaced: () => void) => Promise<string>;
  /** The node with the most room, except these; undefined when no node has room. */
  place: (except: ReadonlySet<string>) => string | undefined;
  /** Asks another node to make one. */
  makeAt: (target: string, poolId: string) => Promise<Placed>;
  /** Ends browsers that have left the pool. */
  retire: (poolId: string, sessionIds: string[]) => void;
  onShelved: (poolId: string) => void;
  onLaunched: (outcome: 'launched' | 'failed') => void;
  log: Log;
}) {
  const store = poolStore(db);
  const owed = debts();
  const timers = new Map<string, { timer: NodeJS.Timeout; at: number }>();
  let closed = false;

  const launches = poolLaunches({
    store,
    make,
    retire,
    onShelved,
    onLaunched,
    onFailed: (poolId) => owed.add(poolId, 1),
    onOver: (poolId) => void fill(poolId),
    log,
  });
  const spread = spreading({
    store,
    nodeId,
    place,
    makeHere: launches.start,
    makeAt,
    pausedUntil: launches.pausedUntil,
    onPlaced: (poolId) => owed.add(poolId, -1),
  });

  /** Never rejects: a failure is logged and retried later. */
  const fill = mergedRuns(async (poolId: string) => {
    if (closed) return;
    try {
      await once(poolId);
    } catch (error) {
      log.warn({ pool: poolId, error: (error as Error).message }, 'pool.not_filled');
      later(poolId, 1000);
    }
  });

  async function once(poolId: string): Promise<void> {
    const owedBefore = owed.of(poolId); // a browser that is given back during the look may still be counted by it
    const pool = await store.look(poolId);
    if (!pool?.open) return forget(poolId);
    const there = pool.available + pool.acquired + pool.warming;
    if (there > pool.size) retire(poolId, await store.clearShelf(poolId, there - pool.size));
    if (pool.available + pool.acquired >= pool.size && !pool.filled_once) await store.setFilled(poolId);
    if (pool.waiting > 0 && pool.available > 0) {
      // Assigning skips a browser whose row is locked, as by the note that it fell asleep. No release would tell the client of it.
      onShelved(poolId);
      later(poolId, unservedMs);
    }
    const missing = pool.size - there;
    if (missing <= 0) {
      owed.add(poolId, -owedBefore);
      if (pool.last_error && pool.warming === 0) await store.recordSuccess(poolId);
      return;
    }

    const needed = Math.max(owed.of(poolId), pool.waiting - pool.available - pool.warming, 0);
    const wanted = Math.min(missing, pool.filled_once ? needed : missing);
    if (wanted > 0) {
      const pause = await spread.launch(pool, wanted, () => closed);
      if (pause !== undefined) later(poolId, pause);
      return;
    }
    const rate = pool.config.fill_rate_per_minute ?? 25;
    if (rate === 0) return;
    const gap = secondsBetween(pool.size, rate);
    if (pool.fillMs > 0 || !(await store.takeFill(poolId, gap))) return later(poolId, pool.fillMs || gap * 1000);
    const pause = await spread.launch(pool, 1, () => closed);
    later(poolId, pause ?? gap * 1000);
  }

  /** At most one call is scheduled: the earliest. It schedules the next one itself. */
  function later(poolId: string, ms: number) {
    const known = timers.get(poolId);
    const delay = Math.ceil(ms) + 5;
    const at = performance.now() + delay;
    if (closed || (known && known.at <= at)) return;
    clearTimeout(known?.timer);
    const call = () => {
      timers.delete(poolId);
      void fill(poolId);
    };
    timers.set(poolId, { timer: setTimeout(call, delay), at });
  }

  function forget(poolId: string) {
    clearTimeout(timers.get(poolId)?.timer);
    for (const known of [timers, owed]) known.delete(poolId);
    for (const part of [launches, spread]) part.forget(poolId);
  }

  return {
    fill,
    forget,

    /** Another node asks for a browser of this pool: it has seen that one is missing, and the database checks that again. */
    async makeHere(poolId: string): Promise<Placed> {
      const pool = await store.look(poolId);
      if (!pool?.open) return 'pool_full';
      if (closed || spread.unfit(poolId).includes(nodeId)) return 'refused';
      return launches.start(pool);
    },

    async fillAll(): Promise<void> {
      try {
        for (const id of await store.ids()) void fill(id);
      } catch (error) {
        log.warn({ error: (error as Error).message }, 'pools.not_filled');
      }
    },

    /** Makes so many browsers at once, regardless of the pace, to replace those that were given back. */
    renew(poolId: string, count = 1) {
      owed.add(poolId, count);
      void fill(poolId);
    },

    async close() {
      closed = true;
      for (const { timer } of timers.values()) clearTimeout(timer);
      await launches.settled();
    },
  };
}

/** Browsers that were given back and are to be replaced at once, by pool. */
function debts() {
  const owed = new Map<string, number>();
  const of = (poolId: string) => owed.get(poolId) ?? 0;
  return {
    of,
    add: (poolId: string, count: number) => void owed.set(poolId, Math.max(0, of(poolId) + count)),
    delete: (poolId: string) => void owed.delete(poolId),
  };
}

/** `rate` percent of the pool per minute, spread evenly, and at least one browser: a pool of one fills, too. */
const secondsBetween = (size: number, rate: number) => 60 / Math.max(1, Math.ceil((size * rate) / 100));
