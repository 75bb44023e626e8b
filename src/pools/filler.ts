import type { ServiceError } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import type { Db } from '../store/db.ts';
import { poolStore, type PoolRow } from './store.ts';

/** Browsers of one pool that this node starts at the same time: more only make each other slow. */
const atOnce = 2;

export type Filler = ReturnType<typeof filler>;

/**
 * Keeps pools as full as they should be. `fill` looks at one pool and makes what it lacks: at once what somebody waits for and the
 * first fill of a new pool, one by one at the pool's rate what is lost later. It is called after every change, and by a
 * timer when the pace or a failed launch says "later"; calls that come together are one.
 */
export function filler({
  db,
  make,
  retire,
  onShelved,
  onLaunched,
  log,
}: {
  db: Db;
  /** Makes one browser of the pool and resolves with its id. */
  make: (pool: PoolRow, onPlaced: () => void) => Promise<string>;
  /** Ends browsers that were taken off the shelf. */
  retire: (poolId: string, sessionIds: string[]) => void;
  onShelved: (poolId: string) => void;
  onLaunched: (outcome: 'launched' | 'failed') => void;
  log: Log;
}) {
  const store = poolStore(db);
  const busy = new Map<string, { again: boolean }>();
  const making = new Map<string, number>();
  /** Browsers that were given back and are to be made anew at once. */
  const owed = new Map<string, number>();
  const timers = new Map<string, NodeJS.Timeout>();
  const launches = new Set<Promise<void>>();
  let closed = false;

  /** Never rejects: nobody could do anything about it but try again later, which it does. */
  async function fill(poolId: string): Promise<void> {
    const running = busy.get(poolId);
    if (running) return void (running.again = true);
    if (closed) return;
    const turn = { again: false };
    busy.set(poolId, turn);
    try {
      do {
        turn.again = false;
        await once(poolId);
      } while (turn.again && !closed);
    } catch (error) {
      log.warn({ pool: poolId, error: (error as Error).message }, 'pool.not_filled');
      later(poolId, 1000);
    } finally {
      busy.delete(poolId);
    }
  }

  async function once(poolId: string): Promise<void> {
    const pool = await store.find(poolId);
    const counts = pool && (await store.count(poolId));
    if (!pool || !counts) return;
    const there = counts.available + counts.acquired + counts.warming;
    if (there > pool.size) retire(poolId, await store.clearShelf(poolId, { count: there - pool.size }));
    if (counts.available + counts.acquired >= pool.size) await store.setFilled(poolId);

    const missing = pool.size - there;
    const renewals = owed.get(poolId) ?? 0;
    if (missing <= 0) return;
    const { retryMs, fillMs } = await store.pauses(poolId);
    if (retryMs > 0) return later(poolId, retryMs);
    const needed = Math.max(renewals, counts.waiting - counts.available - counts.warming, 0);
    const wanted = Math.min(missing, pool.filled_once ? needed : missing);
    const room = atOnce - (making.get(poolId) ?? 0);
    for (let index = 0; index < Math.min(wanted, room); index++) await launch(pool);
    if (wanted > 0) return; // each of them calls us again

    const rate = pool.config.fill_rate_per_minute ?? 25;
    if (rate === 0) return;
    if (fillMs > 0) return later(poolId, fillMs);
    if (room > 0 && (await store.takeFill(poolId, secondsBetween(pool.size, rate)))) await launch(pool);
    later(poolId, secondsBetween(pool.size, rate) * 1000);
  }

  /** Resolves when its place is taken, so that who counts next counts it; the browser itself takes longer. */
  function launch(pool: PoolRow): Promise<void> {
    making.set(pool.id, (making.get(pool.id) ?? 0) + 1);
    owed.set(pool.id, Math.max(0, (owed.get(pool.id) ?? 0) - 1));
    return new Promise((placed) => {
      const launching = tryLaunch(pool, placed).finally(() => {
        placed();
        making.set(pool.id, (making.get(pool.id) ?? 1) - 1);
        launches.delete(launching);
        if (!timers.has(pool.id)) void fill(pool.id);
      });
      launches.add(launching);
    });
  }

  async function tryLaunch(pool: PoolRow, placed: () => void): Promise<void> {
    try {
      const sessionId = await make(pool, placed);
      await store.recordSuccess(pool.id);
      onLaunched('launched');
      if (await store.shelve(sessionId)) onShelved(pool.id);
      else retire(pool.id, await store.expel(sessionId)); // the pool moved on while it was made
    } catch (error) {
      const { code, message } = error as ServiceError;
      if (code === 'pool_full') return; // another node was quicker
      if (code === 'capacity_exhausted' && owed.has(pool.id)) {
        // Still owed: we are called again when the browser that it replaces has made its room.
        owed.set(pool.id, (owed.get(pool.id) ?? 0) + 1);
        return later(pool.id, 5000);
      }
      onLaunched('failed');
      log.warn({ pool: pool.id, error: message }, 'pool.launch_failed');
      await store.recordFailure(pool.id, message).catch(() => {});
    }
  }

  /** At most one call waits, the one that was asked for last. */
  function later(poolId: string, ms: number) {
    clearTimeout(timers.get(poolId));
    if (closed) return;
    const call = () => {
      timers.delete(poolId);
      void fill(poolId);
    };
    timers.set(poolId, setTimeout(call, Math.ceil(ms) + 5));
  }

  return {
    fill,

    /** Makes one more at once, whatever the pace, in the place of one that was given back. */
    renew(poolId: string) {
      owed.set(poolId, (owed.get(poolId) ?? 0) + 1);
      void fill(poolId);
    },

    forget(poolId: string) {
      clearTimeout(timers.get(poolId));
      timers.delete(poolId);
    },

    async close() {
      closed = true;
      for (const timer of timers.values()) clearTimeout(timer);
      await Promise.all(launches);
    },
  };
}

/** `rate` percent of the pool a minute, spread evenly, and at least one: a pool of one fills, too. */
export const secondsBetween = (size: number, rate: number) => 60 / Math.max(1, Math.ceil((size * rate) / 100));
