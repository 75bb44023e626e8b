import { errors, ServiceError } from '../errors.ts';
import type { EventBus } from '../events.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import type { Session } from '../sessions/schema.ts';
import { refuseWhatIsNotHere } from '../sessions/service.ts';
import { uniqueViolation, type Db } from '../store/db.ts';
import { acquirer } from './acquire.ts';
import { browserOf, configOf, defaultConfig, fillSeconds, mergeConfig, sameBrowser } from './config.ts';
import { filler } from './filler.ts';
import type { PoolMetrics } from './metrics.ts';
import type { PooledSessions } from './nodes/anywhere.ts';
import type { Acquire, CreatePool, Pool, PoolList, UpdatePool } from './schema.ts';
import { poolStore, type CountedPool, type PoolRow } from './store.ts';

/** Clients of this interface give a request up after 60 s, so a poll is answered before. */
const longestPollMs = 55_000;

export type PoolService = ReturnType<typeof poolService>;

export function poolService({
  db,
  sessions,
  events,
  metrics,
  nodeId,
  capacity,
  refuseUnknownProxy,
  log,
}: {
  db: Db;
  sessions: PooledSessions;
  events: EventBus;
  metrics: PoolMetrics;
  nodeId: string;
  capacity: () => Promise<number>;
  refuseUnknownProxy: (projectId: string, proxyId: string) => Promise<void>;
  log: Log;
}) {
  const store = poolStore(db);
  const line = acquirer({ store, nodeId, onNeed: (poolId) => void fill.fill(poolId) });
  const fill = filler({
    db,
    log,
    make: async (pool, onPlaced) => (await sessions.makePooled(pool.project_id, pool, browserOf(pool), onPlaced)).id,
    retire,
    onShelved: (poolId) => void served(poolId),
    onLaunched: (outcome) => metrics.launches.inc({ outcome }),
  });

  /** Ends browsers that are no longer the pool's; each leaves room for another. */
  function retire(poolId: string, ids: string[]) {
    for (const id of ids) void sessions.stop(id, 'retired').then(() => fill.fill(poolId));
  }

  // However a browser of a pool ended (deleted, idle, crashed), its place is to be filled again.
  const stopListening = events.on('session.ended', ({ poolId }) => poolId && void fill.fill(poolId));

  async function served(poolId: string) {
    await line
      .serve(poolId)
      .catch((error: Error) => log.warn({ pool: poolId, error: error.message }, 'pool.not_served'));
  }

  async function find(projectId: string, idOrName: string): Promise<PoolRow> {
    const row = await store.findByIdOrName(projectId, idOrName);
    if (!row) throw errors.pool_not_found({ pool: idOrName });
    return row;
  }

  async function counted(pool: PoolRow): Promise<Pool> {
    const counts = await store.count(pool.id);
    return toPool({ ...pool, ...(counts ?? { available: 0, acquired: 0, warming: 0, waiting: 0 }) });
  }

  async function refuseTooMany(id: string | null, size: number) {
    const [others, most] = await Promise.all([store.sizesOtherThan(id), capacity()]);
    if (others + size > most) throw errors.pool_limit_reached({ size, others, most });
  }

  async function unlessTaken<T>(name: string | null, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      const taken = uniqueViolation(error);
      if (taken === 'pools_name') throw errors.already_exists({ thing: 'pool', name: name ?? '' });
      if (taken === 'sessions_name') throw errors.already_exists({ thing: 'session', name: name ?? '' });
      throw error;
    }
  }

  async function acquire(
    projectId: string,
    idOrName: string,
    request: Acquire,
    hungUp: AbortSignal,
  ): Promise<Session | { ahead: number }> {
    refuseWhatIsNotHere(request);
    const started = performance.now();
    const pool = await find(projectId, idOrName);
    const waitMs = Math.min(longestPollMs, (request.acquire_timeout_seconds ?? fillSeconds(pool)) * 1000);
    for (;;) {
      const turn = await line.acquire(pool.id, Math.max(0, waitMs - (performance.now() - started)), hungUp);
      if ('ahead' in turn) {
        metrics.acquires.observe({ outcome: 'timed_out' }, (performance.now() - started) / 1000);
        return turn;
      }
      const { sessionId, leaseId } = turn;
      try {
        const session = await lend(pool, sessionId, leaseId, request);
        hungUp.throwIfAborted();
        metrics.acquires.observe({ outcome: 'leased' }, (performance.now() - started) / 1000);
        return session;
      } catch (error) {
        if (hungUp.aborted) {
          await giveBack(pool, sessionId); // nobody was told of it
          throw error;
        }
        if (error instanceof ServiceError && error.code === 'already_exists') {
          await giveBack(pool, sessionId);
          throw error;
        }
        // It does not answer: nobody gets it, and the next in the line is us again.
        log.warn({ pool: pool.id, session: sessionId, error: (error as Error).message }, 'pool.browser_unfit');
        await store.endLease(pool.id, sessionId, false);
        retire(pool.id, [sessionId]);
      }
    }
  }

  async function lend(pool: PoolRow, sessionId: string, leaseId: string, request: Acquire): Promise<Session> {
    const lease = {
      name: request.name ?? null,
      tags: request.tags ?? {},
      timeoutSeconds: pool.config.timeout_seconds ?? defaultConfig.timeout_seconds,
    };
    const described = await unlessTaken(lease.name, () => store.describeLease(sessionId, leaseId, lease));
    if (!described) throw errors.session_not_found({ session: sessionId });
    return sessions.lend(sessionId, lease.timeoutSeconds, request.start_url ?? pool.config.start_url);
  }

  /** A lease that nobody has used ends: the browser is as clean as it was. */
  async function giveBack(pool: PoolRow, sessionId: string) {
    await sessions.takeBack(sessionId);
    if (!(await store.endLease(pool.id, sessionId, true))) return;
    if (await store.shelve(sessionId)) await served(pool.id);
    else retire(pool.id, await store.expel(sessionId));
  }

  return {
    acquire,

    async create(projectId: string, request: CreatePool): Promise<Pool> {
      refuseWhatIsNotHere(request);
      const { size, name, ...rest } = request;
      const config = configOf(rest);
      if (config.proxy_id) await refuseUnknownProxy(projectId, config.proxy_id);
      await refuseTooMany(null, size);
      const pool = { id: newId(), project_id: projectId, name: name ?? null, size, config };
      await unlessTaken(pool.name, () => store.insert(pool));
      void fill.fill(pool.id);
      return counted((await store.find(pool.id))!);
    },

    async list(projectId: string, filter: PoolList): Promise<Pool[]> {
      return (await store.list(projectId, filter)).map(toPool);
    },

    async get(projectId: string, idOrName: string): Promise<Pool> {
      return counted(await find(projectId, idOrName));
    },

    /** A field left out keeps its value; an empty one clears it, where it can be cleared. */
    async update(projectId: string, idOrName: string, request: UpdatePool): Promise<Pool> {
      refuseWhatIsNotHere({ ...request, ...(request.profile?.id === '' ? { profile: undefined } : {}) });
      const before = await find(projectId, idOrName);
      const { size = before.size, name, discard_all_idle, ...rest } = request;
      const config = mergeConfig(before.config, rest);
      if (rest.proxy_id) await refuseUnknownProxy(projectId, rest.proxy_id);
      if (size > before.size) await refuseTooMany(before.id, size);
      const stale = !sameBrowser(before.config, config);
      const change = { name: name || before.name, size, config, stale, larger: size > before.size };
      const after = await unlessTaken(change.name, () => store.update(before.id, change));
      if (!after) throw errors.pool_not_found({ pool: idOrName });
      if (discard_all_idle) retire(before.id, await store.clearShelf(before.id));
      void fill.fill(before.id);
      return counted(after);
    },

    async remove(projectId: string, idOrName: string, force: boolean): Promise<void> {
      const pool = await find(projectId, idOrName);
      const leased = (await store.browsers(pool.id)).filter(({ lease_id }) => lease_id !== null).length;
      if (leased > 0 && !force) throw errors.pool_in_use({ leased });
      if (!(await store.remove(pool.id))) throw errors.pool_not_found({ pool: idOrName });
      fill.forget(pool.id);
      line.close(pool.id, pool.name ?? pool.id);
      await store.tell({ deleted: pool.id, name: pool.name ?? pool.id });
      await Promise.all((await store.browsers(pool.id)).map(({ id }) => sessions.stop(id, 'retired')));
    },

    /** Puts a clean browser back on the shelf at once: a fresh one behind the same place, since only that is sure to be clean. */
    async release(projectId: string, idOrName: string, sessionId: string, reuse: boolean): Promise<void> {
      const pool = await find(projectId, idOrName);
      const keep = reuse && pool.config.reset_on_release === false;
      const ended = await store.endLease(pool.id, sessionId, keep);
      if (!ended) throw errors.not_leased({ session: sessionId, pool: idOrName });
      await sessions.takeBack(sessionId);
      metrics.releases.inc({ how: keep ? 'kept' : reuse ? 'renewed' : 'destroyed' });
      if (!keep) retire(pool.id, [sessionId]);
      else if (await store.shelve(sessionId)) return served(pool.id);
      else retire(pool.id, await store.expel(sessionId));
      if (reuse) fill.renew(pool.id);
      else void fill.fill(pool.id);
    },

    async flush(projectId: string, idOrName: string): Promise<void> {
      const pool = await find(projectId, idOrName);
      retire(pool.id, await store.clearShelf(pool.id));
      void fill.fill(pool.id);
    },

    /** The client hung up before it heard of its lease: nobody has used it. */
    async undelivered({ session_id, pool }: Session): Promise<void> {
      const row = pool && (await store.find(pool.id));
      if (row) await giveBack(row, session_id);
    },

    /** What another node tells. */
    hear(message: string) {
      const { given, to, sessionId, deleted, name } = JSON.parse(message) as Record<string, string | undefined>;
      if (given && to === nodeId && sessionId) line.given(given, sessionId);
      if (deleted) {
        fill.forget(deleted);
        line.close(deleted, name ?? deleted);
      }
    },

    async occupancy(projectId: string): Promise<string | undefined> {
      const pools = await store.list(projectId, { limit: 1, offset: 0 });
      return pools.length === 0 ? undefined : 'browser pools';
    },

    /** In the transaction that settles a lost node: who waited there is gone, and what they were given is free again. */
    async nodeLost(lost: string, within: Db): Promise<() => void> {
      const freed = await poolStore(within).forgetWaiters(lost);
      return () => {
        for (const poolId of freed) void served(poolId);
        void store.ids().then((ids) => ids.forEach((id) => void fill.fill(id)));
      };
    },

    /** Those who waited here hung up when we went; what the pools lost with us is made again. */
    async start(): Promise<void> {
      await store.forgetWaiters(nodeId);
      for (const id of await store.ids()) void fill.fill(id);
    },

    async close(): Promise<void> {
      stopListening();
      await fill.close();
    },
  };
}

function toPool(pool: CountedPool): Pool {
  const { engine_policy } = pool.config;
  return {
    id: pool.id,
    ...(pool.name === null ? {} : { name: pool.name }),
    available_count: pool.available,
    acquired_count: pool.acquired,
    warming_count: pool.warming,
    waiting_count: pool.waiting,
    ...(pool.last_error && pool.last_error_at
      ? { last_error: { message: pool.last_error, at: pool.last_error_at.toISOString() } }
      : {}),
    created_at: pool.created_at.toISOString(),
    browser_pool_config: {
      size: pool.size,
      ...(pool.name === null ? {} : { name: pool.name }),
      ...pool.config,
      ...(engine_policy ? { chrome_policy: engine_policy } : {}),
    },
    extension_ids: [],
  };
}
