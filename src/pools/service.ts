import { setTimeout as sleep } from 'node:timers/promises';
import { errors, ServiceError } from '../errors.ts';
import type { EventBus } from '../events.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import type { Session } from '../sessions/schema.ts';
import { refuseWhatIsNotHere } from '../sessions/request.ts';
import type { SessionService } from '../sessions/service.ts';
import { uniqueViolation, type Db } from '../store/db.ts';
import { acquirer, type SecondTurn } from './acquire.ts';
import { browserOf, configOf, defaultConfig, fillSeconds, mergeConfig, sameBrowser } from './config.ts';
import { filler } from './filler.ts';
import type { PoolMetrics } from './metrics.ts';
import type { Placed, SessionsAnywhere } from './nodes/anywhere.ts';
import type { Acquire, CreatePool, Pool, PoolList, UpdatePool } from './schema.ts';
import { poolStore, type CountedPool, type PoolRow, type PoolStore } from './store.ts';

/** Clients of this interface give a request up after 60 s, and 55 is promised; the rest is for handing the browser over. */
const longestWaitMs = 50_000;
const longestSaveMs = 45_000;
/** How often this node compares what it holds with what the database says that it holds. */
const tidyMs = 15_000;

export type PoolService = ReturnType<typeof poolService>;

/** A browser that was acquired. `undelivered` takes it back from a client that never heard of it. */
export interface Acquired {
  session: Session;
  undelivered(): void;
}

export function poolService({
  db,
  sessions,
  make,
  resolve,
  place,
  events,
  metrics,
  nodeId,
  capacity,
  sessionCap,
  usage,
  refuseUnknownProxy,
  log,
}: {
  db: Db;
  sessions: SessionsAnywhere;
  make: SessionService['makePooled'];
  /** What the selectors of a request mean. */
  resolve: SessionService['resolve'];
  /** The node with the most room that is none of these; undefined when nobody has any. */
  place: (except: ReadonlySet<string>) => string | undefined;
  events: EventBus;
  metrics: PoolMetrics;
  nodeId: string;
  capacity: () => Promise<number>;
  /** How many browsers a project may run; null for no cap. */
  sessionCap: (projectId: string) => Promise<number | null>;
  /** How many a project has besides this pool's, and how many places its other pools keep; both stay until the transaction ends. */
  usage: (within: Db, projectId: string, except: string) => Promise<{ active: number; kept: number }>;
  refuseUnknownProxy: (projectId: string, proxyId: string) => Promise<void>;
  log: Log;
}) {
  const store = poolStore(db);
  const line = acquirer({
    store,
    nodeId,
    onNeed: (poolId) => void fill.fill(poolId),
    onExpelled: (poolId, sessionId) => retire(poolId, [sessionId]),
  });
  /** Browsers that were not on the shelf when we last looked, and that nobody held: most of them were just being made. */
  let unshelved = new Set<string>();
  const fill = filler({
    db,
    nodeId,
    log,
    place,
    makeAt: sessions.makeAt,
    make: async (pool, onPlaced) => {
      const { id, version, config } = pool;
      const place = { id, version, opensUrl: config.start_url !== undefined };
      return (await make(pool.project_id, place, browserOf(pool), onPlaced)).id;
    },
    retire,
    onShelved: (poolId) => void served(poolId),
    onLaunched: (outcome) => metrics.launches.inc({ outcome }),
  });
  let tidying: NodeJS.Timeout | undefined;
  let closed = false;

  /** Ends browsers that have left the pool; each leaves room for another. */
  function retire(poolId: string, ids: string[]) {
    for (const id of ids) void sessions.stop(id, 'retired').then(() => fill.fill(poolId));
  }

  /** Never rejects. The idle browsers of pools that ask for it are made anew; leased ones go on with what they have. */
  async function refresh(profileId: string): Promise<void> {
    try {
      for (const poolId of await store.outdate(profileId)) {
        const outdated = await store.clearShelf(poolId);
        fill.renew(poolId, outdated.length);
        retire(poolId, outdated);
      }
    } catch (error) {
      log.warn({ profile: profileId, error: (error as Error).message }, 'pools.not_refreshed');
    }
  }

  const stopListening = [
    // However a browser of a pool ended (deleted, idle, crashed), its place is to be filled again.
    events.on('session.ended', ({ poolId }) => poolId && void fill.fill(poolId)),
    // Whether it was stopped or given up: what the pools had there is gone.
    events.on('node.left', () => void reopen()),
    events.on('profile.saved', ({ profileId }) => void refresh(profileId)),
  ];

  /** Never rejects. What pools lack because a node went is made at once, by whoever comes first. */
  async function reopen(): Promise<void> {
    await store.reopen().catch((error: Error) => log.warn({ error: error.message }, 'pools.not_reopened'));
    await fill.fillAll();
  }

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

  async function counted(id: string): Promise<Pool> {
    const pool = await store.look(id);
    if (!pool) throw errors.pool_not_found({ pool: id });
    return toPool(pool);
  }

  /** Writes a pool with its size. If it takes more places than before, they have to be there: those who ask at the same moment count each other. */
  async function ifItFits<T>(
    { id, project_id, size }: Pick<PoolRow, 'id' | 'project_id' | 'size'>,
    write: (within: PoolStore) => Promise<T>,
  ): Promise<T> {
    const [most, cap] = await Promise.all([capacity(), sessionCap(project_id)]);
    return db.transaction(async (tx) => {
      const { own, others } = await poolStore(tx).lockSizes(id);
      const larger = size > own;
      if (larger && others + size > most) throw errors.pool_limit_reached({ size, others, most });
      if (larger && cap !== null) {
        const { active, kept } = await usage(tx, project_id, id);
        if (active + kept + size > cap) throw errors.project_limit_reached({ size, others: active + kept, cap });
      }
      return write(poolStore(tx));
    });
  }

  async function unlessTaken<T>(name: string | null, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (uniqueViolation(error) === 'pools_name') throw errors.already_exists({ thing: 'pool', name: name ?? '' });
      throw error;
    }
  }

  async function acquire(
    projectId: string,
    keyId: string,
    idOrName: string,
    request: Acquire,
    hungUp: AbortSignal,
  ): Promise<Acquired | { ahead: number }> {
    refuseWhatIsNotHere(request);
    const started = performance.now();
    const elapsed = () => performance.now() - started;
    const pool = await find(projectId, idOrName);
    const waitMs = Math.min(longestWaitMs, (request.acquire_timeout_seconds ?? fillSeconds(pool)) * 1000);
    const startUrl = request.start_url ?? pool.config.start_url;
    let again: SecondTurn | undefined;
    for (;;) {
      const turn = await line.acquire(pool.id, Math.max(0, waitMs - elapsed()), hungUp, again);
      const waited = elapsed();
      metrics.waits.observe(waited / 1000);
      if ('ahead' in turn) {
        metrics.acquires.observe({ outcome: 'timed_out' }, waited / 1000);
        return turn;
      }
      const { sessionId, leaseId } = turn;
      const undo = () => giveBack(pool.id, sessionId, leaseId);
      try {
        const session = await sessions.lend(sessionId, leaseOf(pool, leaseId, request), startUrl, keyId);
        hungUp.throwIfAborted();
        metrics.acquires.observe({ outcome: 'leased' }, elapsed() / 1000);
        return { session, undelivered: () => void undo() };
      } catch (error) {
        if (hungUp.aborted) {
          await undo(); // nobody was told of it
          throw error;
        }
        if (error instanceof ServiceError && error.code === 'already_exists') {
          await putBack(pool.id, sessionId, leaseId);
          throw error;
        }
        // It does not answer, or is not ours any more: nobody gets it from us, and we keep our place in the line.
        log.warn({ pool: pool.id, session: sessionId, error: (error as Error).message }, 'pool.browser_unfit');
        const { place } = turn;
        const discard = () => replace(pool.id, sessionId, leaseId).finally(() => line.settled(leaseId));
        if (place === undefined) await discard();
        again = place === undefined ? undefined : { place, leaseId, discard };
      } finally {
        if (again?.leaseId !== leaseId) line.settled(leaseId);
      }
    }
  }

  /** Ends a lease that nobody has heard of. Never rejects: what the database does not hear now, `tidy` finds. */
  async function giveBack(poolId: string, sessionId: string, leaseId: string): Promise<void> {
    try {
      const used = await sessions.takeBack(sessionId);
      if (used) await replace(poolId, sessionId, leaseId);
      else await putBack(poolId, sessionId, leaseId);
    } catch (error) {
      log.warn({ pool: poolId, session: sessionId, error: (error as Error).message }, 'pool.not_given_back');
    }
  }

  /** Ends a lease together with its browser, and swaps a fresh one in behind its place. False: the lease had ended before. */
  async function replace(poolId: string, sessionId: string, leaseId: string): Promise<boolean> {
    if (!(await store.endLease(sessionId, leaseId))) return false;
    fill.renew(poolId);
    retire(poolId, [sessionId]);
    return true;
  }

  /** Ends a lease and puts its browser back on the shelf. False: the lease had ended before. */
  async function putBack(poolId: string, sessionId: string, leaseId: string | null): Promise<boolean> {
    const shelved = await store.shelve(sessionId, leaseId);
    if (shelved === 'shelved') await served(poolId);
    if (shelved === 'expelled') {
      fill.renew(poolId);
      retire(poolId, [sessionId]);
    }
    return shelved !== undefined;
  }

  /** What becomes of a browser that is released. */
  const endings = {
    unused: putBack,
    kept: putBack,
    renewed: replace,
    async destroyed(poolId: string, sessionId: string, leaseId: string): Promise<boolean> {
      const ended = await store.endLease(sessionId, leaseId);
      if (ended) retire(poolId, [sessionId]);
      return ended !== undefined;
    },
  };

  /** What the database says that we have, and we do not know of: something went wrong while it was under way. Never rejects. */
  async function tidy(): Promise<void> {
    clearTimeout(tidying);
    try {
      for (const poolId of await store.forgetWaiters(nodeId, line.underWay())) void served(poolId);
      for (const id of await store.strays(nodeId)) void sessions.stop(id, 'retired');
      const found = await store.unshelved(nodeId);
      for (const { id, poolId } of found) if (unshelved.has(id)) await putBack(poolId, id, null);
      unshelved = new Set(found.map(({ id }) => id));
    } catch (error) {
      if (!closed) log.warn({ error: (error as Error).message }, 'pools.not_tidied');
    }
    if (!closed) tidying = setTimeout(() => void tidy(), tidyMs).unref();
  }

  return {
    acquire,

    async create(projectId: string, request: CreatePool): Promise<Pool> {
      refuseWhatIsNotHere(request);
      const { size, name, ...rest } = request;
      const config = configOf(rest);
      if (config.proxy_id) await refuseUnknownProxy(projectId, config.proxy_id);
      const belongings = { profile_id: null, extension_ids: [], ...(await resolve(projectId, request)) };
      const pool = { id: newId(), project_id: projectId, name: name ?? null, size, config, ...belongings };
      await unlessTaken(pool.name, () => ifItFits(pool, (store) => store.insert(pool)));
      void fill.fill(pool.id);
      return counted(pool.id);
    },

    async list(projectId: string, filter: PoolList): Promise<Pool[]> {
      return (await store.list(projectId, filter)).map(toPool);
    },

    async get(projectId: string, idOrName: string): Promise<Pool> {
      return counted((await find(projectId, idOrName)).id);
    },

    /** A field left out keeps its value; an empty one clears it, where it can be cleared. */
    async update(projectId: string, idOrName: string, request: UpdatePool): Promise<Pool> {
      refuseWhatIsNotHere(request);
      const before = await find(projectId, idOrName);
      const { size = before.size, name, discard_all_idle, ...rest } = request;
      const config = mergeConfig(before.config, rest);
      if (rest.proxy_id) await refuseUnknownProxy(projectId, rest.proxy_id);
      const cleared = { ...request, ...(request.profile?.id === '' ? { profile: null } : {}) };
      const belongings = { ...belongingsOf(before), ...(await resolve(projectId, cleared)) };
      const same =
        sameBrowser(before.config, config) && JSON.stringify(belongingsOf(before)) === JSON.stringify(belongings);
      const change = {
        ...belongings,
        name: name || before.name,
        size: request.size ?? null,
        config,
        stale: !same,
        larger: size > before.size,
      };
      const after = await unlessTaken(change.name, () =>
        request.size === undefined
          ? store.update(before.id, change)
          : ifItFits({ ...before, size }, (store) => store.update(before.id, change)),
      );
      if (!after) throw errors.pool_not_found({ pool: idOrName });
      if (discard_all_idle) {
        const discarded = await store.clearShelf(before.id);
        fill.renew(before.id, discarded.length);
        retire(before.id, discarded);
      }
      void fill.fill(before.id);
      return counted(before.id);
    },

    async remove(projectId: string, idOrName: string, force: boolean): Promise<void> {
      const pool = await find(projectId, idOrName);
      if (!(await store.remove(pool.id, force))) {
        const leased = await store.leased(pool.id);
        throw leased > 0 && !force ? errors.pool_in_use({ leased }) : errors.pool_not_found({ pool: idOrName });
      }
      fill.forget(pool.id);
      line.close(pool.id, pool.name ?? pool.id);
      await store.tell({ deleted: pool.id, name: pool.name ?? pool.id });
      await Promise.all((await store.browsers(pool.id)).map((id) => sessions.stop(id, 'retired')));
    },

    /**
     * Puts a clean browser back on the shelf at once: the same one when nobody has come to it, otherwise a fresh one behind the
     * same place, since only that is sure to be clean.
     */
    async release(projectId: string, idOrName: string, sessionId: string, reuse: boolean): Promise<void> {
      const pool = await find(projectId, idOrName);
      const leaseId = await store.leaseOn(pool.id, sessionId);
      if (!leaseId) throw errors.not_leased({ session: sessionId, pool: idOrName });
      const ownProfile = await store.hasOwnProfile(sessionId);
      const used = await sessions.takeBack(sessionId); // its clients are gone before anybody else can have it
      const kept = pool.config.reset_on_release === false && !ownProfile;
      const how = !reuse ? 'destroyed' : !used ? 'unused' : kept ? 'kept' : 'renewed';
      const ended = await endings[how](pool.id, sessionId, leaseId);
      if (!ended) throw errors.not_leased({ session: sessionId, pool: idOrName });
      metrics.releases.inc({ how });
      // Whoever gives it back may count on what was saved; if that takes too long, it goes on without them.
      const saved = ownProfile && sessions.stop(sessionId, 'retired');
      if (saved) await Promise.race([saved, sleep(longestSaveMs, undefined, { ref: false })]);
    },

    async flush(projectId: string, idOrName: string): Promise<void> {
      const pool = await find(projectId, idOrName);
      retire(pool.id, await store.clearShelf(pool.id));
      void fill.fill(pool.id);
    },

    /** Another node asks for a browser of a pool to be made here. */
    makeHere: (poolId: string): Promise<Placed> => fill.makeHere(poolId),

    /** What another node tells. */
    hear(message: string) {
      const { given, to, sessionId, deleted, name } = JSON.parse(message) as Record<string, string | undefined>;
      if (given && to === nodeId && sessionId) line.given(given, sessionId);
      if (deleted) {
        fill.forget(deleted);
        line.close(deleted, name ?? deleted);
      }
    },

    /** Something we were to be told may have been lost. Rejects when the database cannot say. */
    catchUp: () => line.catchUp(),

    async occupancy(projectId: string): Promise<string | undefined> {
      const pools = await store.list(projectId, { limit: 1, offset: 0 });
      return pools.length === 0 ? undefined : 'browser pools';
    },

    /** In the transaction that settles a lost node: who waited there is gone, and what they were to get is free again. */
    async nodeLost(lost: string, within: Db): Promise<() => void> {
      const freed = await poolStore(within).forgetWaiters(lost);
      return () => {
        for (const poolId of freed) void served(poolId);
        void reopen();
      };
    },

    /** Once we are one of the nodes: those who waited here hung up when we went; what the pools lost with us is made again. */
    async start(): Promise<void> {
      await tidy();
      await reopen();
    },

    async close(): Promise<void> {
      closed = true;
      clearTimeout(tidying);
      for (const stop of stopListening) stop();
      line.closeAll();
      await fill.close();
    },
  };
}

function leaseOf(pool: PoolRow, id: string, request: Acquire) {
  return {
    id,
    name: request.name ?? null,
    tags: request.tags ?? {},
    timeoutSeconds: pool.config.timeout_seconds ?? defaultConfig.timeout_seconds,
  };
}

const belongingsOf = ({ profile_id, extension_ids }: PoolRow) => ({ profile_id, extension_ids });

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
    ...(pool.profile_id === null ? {} : { profile_id: pool.profile_id }),
    extension_ids: pool.extension_ids,
  };
}
