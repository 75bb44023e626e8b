import type { ServiceError } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import type { Db } from '../store/db.ts';
import type { Placed } from './nodes/anywhere.ts';
import { poolStore, type PoolRow, type PoolToFill } from './store.ts';

/** How many browsers of one pool a node starts at the same time: more only slow each other down. */
const atOnce = 2;
/** How long a node that refused is not asked again. */
const avoidMs = 15_000;
/** A launch that failed on this node is retried after a second, then two, and at most after a minute. */
const longestPauseMs = 60_000;
/** How soon to look again: when nodes are busy, and when none has room. */
const busyMs = 250;
const noRoomMs = 2000;
/** A lack of room shorter than this is the normal gap between two browsers and is not reported. */
const noRoomShownMs = 10_000;

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
  /** The node with the most room that is none of these; undefined when no node has room. */
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
  const busy = new Map<string, { again: boolean }>();
  /** Browsers that were given back and are to be replaced at once. */
  const owed = new Map<string, number>();
  const timers = new Map<string, NodeJS.Timeout>();
  const launches = new Set<Promise<unknown>>();
  /** Not asked for a while: other nodes, and (in `failed`) this node for a pool whose launch failed here. */
  const avoided = new Map<string, number>();
  const failed = new Map<string, { count: number; until: number }>();
  const noRoomSince = new Map<string, number>();
  let closed = false;

  /** Never rejects: a failure is logged and retried later. */
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
    const pool = await store.look(poolId);
    if (!pool?.open) return forget(poolId);
    const there = pool.available + pool.acquired + pool.warming;
    if (there > pool.size) retire(poolId, await store.clearShelf(poolId, there - pool.size));
    if (pool.available + pool.acquired >= pool.size && !pool.filled_once) await store.setFilled(poolId);
    const missing = pool.size - there;
    if (missing <= 0) {
      owed.delete(poolId);
      if (pool.last_error && pool.warming === 0) await store.recordSuccess(poolId);
      return;
    }

    const needed = Math.max(owed.get(poolId) ?? 0, pool.waiting - pool.available - pool.warming, 0);
    const wanted = Math.min(missing, pool.filled_once ? needed : missing);
    if (wanted > 0) return launchSome(pool, wanted);
    const rate = pool.config.fill_rate_per_minute ?? 25;
    if (rate === 0) return;
    const gap = secondsBetween(pool.size, rate);
    if (pool.fillMs > 0 || !(await store.takeFill(poolId, gap))) return later(poolId, pool.fillMs || gap * 1000);
    await launchSome(pool, 1);
    if (!timers.has(poolId)) later(poolId, gap * 1000);
  }

  /** Places as many as nodes can make now. A node that has made one looks at the pool again. */
  async function launchSome(pool: PoolToFill, wanted: number): Promise<void> {
    const except = new Set(unfit(pool.id));
    const warming = new Map(Object.entries(pool.warmingOn));
    const isBusy = (node: string) => (warming.get(node) ?? 0) >= atOnce;
    for (const node of warming.keys()) if (isBusy(node)) except.add(node);
    let left = wanted;
    while (left > 0 && !closed) {
      const target = place(except);
      if (target === undefined) return notNow(pool, except, [...warming.keys()].some(isBusy));
      const placed = target === nodeId ? await launchHere(pool) : await makeAt(target, pool.id);
      if (placed === 'pool_full') return; // another node was quicker
      if (placed === 'project_full') return later(pool.id, noRoomMs); // its cap was lowered
      if (placed === 'placed') {
        left--;
        warming.set(target, (warming.get(target) ?? 0) + 1);
        owed.set(pool.id, Math.max(0, (owed.get(pool.id) ?? 0) - 1));
        noRoomSince.delete(pool.id);
      }
      if (placed === 'refused' && target !== nodeId) avoided.set(target, performance.now() + avoidMs);
      if (placed !== 'placed' || isBusy(target)) except.add(target);
    }
  }

  /** Nodes that cannot be asked for a browser of this pool now. */
  function unfit(poolId: string): string[] {
    const now = performance.now();
    for (const [node, until] of avoided) if (until <= now) avoided.delete(node);
    const here = (failed.get(poolId)?.until ?? 0) > now;
    return here ? [...avoided.keys(), nodeId] : [...avoided.keys()];
  }

  /** No node can make one now: all are busy with this pool, avoided for a while, or full. */
  async function notNow(pool: PoolToFill, except: ReadonlySet<string>, someBusy: boolean): Promise<void> {
    const pauses = [failed.get(pool.id)?.until ?? 0, ...avoided.values()].map((until) => until - performance.now());
    const pause = Math.min(...pauses.filter((ms) => ms > 0));
    if (someBusy) return later(pool.id, busyMs);
    if (except.size > 0 && pause < noRoomMs) return later(pool.id, pause);
    later(pool.id, noRoomMs);
    const since = noRoomSince.get(pool.id) ?? performance.now();
    noRoomSince.set(pool.id, since);
    if (performance.now() - since < noRoomShownMs || pool.last_error) return;
    await store.recordFailure(pool.id, 'No node has room for one more browser (CORRAL_MAX_SESSIONS).');
  }

  /** Resolves when the session's place is taken, so that later counts include it; the launch itself takes longer. */
  function launchHere(pool: PoolRow): Promise<Placed> {
    return new Promise((resolve) => {
      const launching = tryLaunch(pool, () => resolve('placed'))
        .then(resolve, () => resolve('refused'))
        .finally(() => {
          launches.delete(launching);
          void fill(pool.id);
        });
      launches.add(launching);
    });
  }

  async function tryLaunch(pool: PoolRow, placed: () => void): Promise<Placed> {
    try {
      const sessionId = await make(pool, placed);
      failed.delete(pool.id);
      onLaunched('launched');
      if (pool.last_error) await store.recordSuccess(pool.id);
      const shelved = await store.shelve(sessionId);
      if (shelved === 'shelved') onShelved(pool.id);
      if (shelved === 'expelled') retire(pool.id, [sessionId]); // the pool changed while it was made
      return 'placed';
    } catch (error) {
      const { code, message } = error as ServiceError;
      if (code === 'pool_full') return 'pool_full';
      if (code === 'capacity_exhausted' || code === 'shutting_down') return 'node_full';
      if (code === 'session_limit_reached') {
        if (pool.last_error !== message) await store.recordFailure(pool.id, message);
        return 'project_full';
      }
      const count = (failed.get(pool.id)?.count ?? 0) + 1;
      const pauseMs = Math.min(longestPauseMs, 500 * 2 ** Math.min(count, 7));
      failed.set(pool.id, { count, until: performance.now() + pauseMs });
      onLaunched('failed');
      log.warn({ pool: pool.id, error: message, retryMs: pauseMs }, 'pool.launch_failed');
      await store.recordFailure(pool.id, message);
      return 'refused';
    }
  }

  /** At most one call is scheduled: the latest. */
  function later(poolId: string, ms: number) {
    clearTimeout(timers.get(poolId));
    if (closed) return;
    const call = () => {
      timers.delete(poolId);
      void fill(poolId);
    };
    timers.set(poolId, setTimeout(call, Math.ceil(ms) + 5));
  }

  function forget(poolId: string) {
    clearTimeout(timers.get(poolId));
    for (const known of [timers, owed, failed, noRoomSince]) known.delete(poolId);
  }

  return {
    fill,
    forget,

    /** Another node asks for a browser of this pool: it has seen that one is missing, and the database checks that again. */
    async makeHere(poolId: string): Promise<Placed> {
      const pool = await store.look(poolId);
      if (!pool?.open) return 'pool_full';
      if (closed || unfit(poolId).includes(nodeId)) return 'refused';
      return launchHere(pool);
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
      owed.set(poolId, (owed.get(poolId) ?? 0) + count);
      void fill(poolId);
    },

    async close() {
      closed = true;
      for (const timer of timers.values()) clearTimeout(timer);
      await Promise.all(launches);
    },
  };
}

/** `rate` percent of the pool per minute, spread evenly, and at least one browser: a pool of one fills, too. */
export const secondsBetween = (size: number, rate: number) => 60 / Math.max(1, Math.ceil((size * rate) / 100));
