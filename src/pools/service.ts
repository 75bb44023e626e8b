import { errors } from '../errors.ts';
import type { EventBus } from '../events.ts';
import type { Log } from '../lib/log.ts';
import type { SessionService } from '../sessions/service.ts';
import type { Db } from '../store/db.ts';
import { acquirer } from './acquire.ts';
import { browserOf } from './config.ts';
import { declaredPools, type Allowance } from './declared.ts';
import { filler } from './filler.ts';
import { poolLeases } from './leases.ts';
import type { PoolMetrics } from './metrics.ts';
import type { Placed, SessionsAnywhere } from './nodes/anywhere.ts';
import { poolStore, type PoolRow } from './store.ts';

/** How often this node compares its own state with the database. */
const tidyMs = 15_000;

export type PoolService = ReturnType<typeof poolService>;

interface PoolOptions {
  db: Db;
  sessions: SessionsAnywhere;
  make: SessionService['makePooled'];
  /** Resolves the selectors of a request. */
  resolve: SessionService['resolve'];
  /** The node with the most room, except these; undefined when no node has room. */
  place: (except: ReadonlySet<string>) => string | undefined;
  events: EventBus;
  metrics: PoolMetrics;
  nodeId: string;
  allowance: Allowance;
  refuseUnknownProxy: (projectId: string, proxyId: string) => Promise<void>;
  log: Log;
}

export function poolService(options: PoolOptions) {
  const { db, sessions, make, place, events, metrics, nodeId, log } = options;
  const store = poolStore(db);
  const queue = acquirer({
    store,
    nodeId,
    onNeed: (poolId) => void fill.fill(poolId),
    onExpelled: (poolId, sessionId) => retire(poolId, [sessionId]),
  });
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

  /** Replaces the idle browsers of pools that ask for it; leased ones keep their profile. Never rejects. */
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
    // However a browser of a pool ended (deleted, idle, crashed), its place is filled again.
    events.on('session.ended', ({ poolId }) => poolId && void fill.fill(poolId)),
    // The node was stopped or declared dead: its pool browsers have exited.
    events.on('node.left', () => void reopen()),
    events.on('profile.saved', ({ profileId }) => void refresh(profileId)),
  ];

  /** Never rejects. The browsers that pools lost with a node are made at once, by the first node that gets to it. */
  async function reopen(): Promise<void> {
    await store.reopen().catch((error: Error) => log.warn({ error: error.message }, 'pools.not_reopened'));
    await fill.fillAll();
  }

  async function served(poolId: string) {
    await queue
      .serve(poolId)
      .catch((error: Error) => log.warn({ pool: poolId, error: error.message }, 'pool.not_served'));
  }

  async function find(projectId: string, idOrName: string): Promise<PoolRow> {
    const row = await store.findByIdOrName(projectId, idOrName);
    if (!row) throw errors.pool_not_found({ pool: idOrName });
    return row;
  }

  const leases = poolLeases({ store, queue, sessions, find, served, renew: fill.renew, retire, metrics, log });
  const declared = declaredPools({ ...options, store, queue, fill, find, retire });

  const looseEnds = looseEndsOf({ store, sessions, leases, nodeId });
  /** Cleans up rows of this node that this process does not know: leftovers of failures. Never rejects. */
  async function tidy(): Promise<void> {
    clearTimeout(tidying);
    try {
      // Read first: a client that joins the queue after the question would be taken for a leftover.
      const left = (await store.claimsOf(nodeId)).filter((leaseId) => !queue.isUnderWay(leaseId));
      if (left.length > 0) for (const poolId of await store.forgetWaiters(nodeId, left)) void served(poolId);
      await looseEnds();
    } catch (error) {
      if (!closed) log.warn({ error: (error as Error).message }, 'pools.not_tidied');
    }
    if (!closed) tidying = setTimeout(() => void tidy(), tidyMs).unref();
  }

  return {
    ...declared,
    acquire: leases.acquire,
    release: leases.release,

    async flush(projectId: string, idOrName: string): Promise<void> {
      const pool = await find(projectId, idOrName);
      retire(pool.id, await store.clearShelf(pool.id));
      void fill.fill(pool.id);
    },

    /** Makes a browser of a pool on this node for another node. */
    makeHere: (poolId: string): Promise<Placed> => fill.makeHere(poolId),

    /** Handles a notification from another node. */
    hear(message: string) {
      const { given, to, sessionId, deleted, name } = JSON.parse(message) as Record<string, string | undefined>;
      if (given && to === nodeId && sessionId) queue.given(given, sessionId);
      if (deleted) {
        fill.forget(deleted);
        queue.close(deleted, name ?? deleted);
      }
    },

    /** Called when notifications may have been lost. Rejects when the database does not answer. */
    catchUp: () => queue.catchUp(),

    async occupancy(projectId: string): Promise<string | undefined> {
      const { rows } = await store.list(projectId, { limit: 1, offset: 0 });
      return rows.length === 0 ? undefined : 'browser pools';
    },

    /** In the transaction that settles a lost node: its waiters are removed, and the browsers assigned to them are free again. */
    async nodeLost(lost: string, within: Db): Promise<() => void> {
      const freed = await poolStore(within).forgetWaiters(lost);
      return () => {
        for (const poolId of freed) void served(poolId);
        void reopen();
      };
    },

    /** Called once this node has joined: its old waiters disconnected when it went; the browsers that pools lost with it are made again. */
    async start(): Promise<void> {
      await tidy();
      await reopen();
    },

    async close(): Promise<void> {
      closed = true;
      clearTimeout(tidying);
      for (const stop of stopListening) stop();
      queue.closeAll();
      await fill.close();
    },
  };
}

/** Repairs the state of this node's browsers after an interrupted change. */
function looseEndsOf({
  store,
  sessions,
  leases,
  nodeId,
}: {
  store: ReturnType<typeof poolStore>;
  sessions: Pick<SessionsAnywhere, 'stop' | 'leaseHere'>;
  leases: Pick<ReturnType<typeof poolLeases>, 'putBack' | 'replace'>;
  nodeId: string;
}) {
  /** Browsers that were neither idle nor leased at the last check: most of them were being started. */
  let unshelved = new Set<string>();
  /** Leases that their browsers did not know of at the last look: most of them were just beginning or ending. */
  let loose = new Set<string>();
  return async () => {
    for (const id of await store.strays(nodeId)) void sessions.stop(id, 'retired');
    const found = await store.unshelved(nodeId);
    for (const { id, poolId } of found) if (unshelved.has(id)) await leases.putBack(poolId, id, null);
    unshelved = new Set(found.map(({ id }) => id));
    // A node that ends between taking a browser back and shelving it leaves a lease without a holder, and without a timeout.
    const unknown = (await store.leasesOn(nodeId)).filter(({ id, leaseId }) => sessions.leaseHere(id) !== leaseId);
    for (const { id, poolId, leaseId } of unknown) if (loose.has(leaseId)) await leases.replace(poolId, id, leaseId);
    loose = new Set(unknown.map(({ leaseId }) => leaseId));
  };
}
