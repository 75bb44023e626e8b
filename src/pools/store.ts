import type { Db } from '../store/db.ts';
import { cutPage, type Cut } from '../store/pages.ts';
import { sql } from '../store/sql.ts';
import { mostPageOfPolicies } from '../sessions/policy.ts';
import type { PoolConfig, PoolList } from './schema.ts';

export interface PoolRow {
  id: string;
  project_id: string;
  name: string | null;
  size: number;
  config: Omit<PoolConfig, 'size' | 'name'>;
  /** What the selectors in the configuration resolved to when they were given. */
  profile_id: string | null;
  extension_ids: string[];
  version: number;
  filled_once: boolean;
  next_fill_at: Date;
  last_error: string | null;
  last_error_at: Date | null;
  created_at: Date;
  deleted_at: Date | null;
}

/** A pool with its counts, read in one statement so that the figures agree. */
export interface CountedPool extends PoolRow {
  available: number;
  acquired: number;
  warming: number;
  waiting: number;
}

/** A pool with the numbers that the filler needs. */
export interface PoolToFill extends CountedPool {
  /** Milliseconds until background filling may make one. */
  fillMs: number;
  /** Whether its project is active: nothing is made for an archived project. */
  open: boolean;
  /** How many browsers are being made, by node. */
  warmingOn: Record<string, number>;
}

/** Properties of a browser for one lease only. */
export interface Lease {
  id: string;
  name: string | null;
  tags: Record<string, string>;
  timeoutSeconds: number;
  /** The page that is opened for the holder; null for none. */
  startUrl: string | null;
  /** The categories that are captured. */
  telemetry: string[];
}

export type PoolStore = ReturnType<typeof poolStore>;

/**
 * Every query on `pools` and on the queue of their waiters. The columns of `sessions` for the holder of a pool's browser
 * (pool_id, lease_id, lease_node, idle_since) are of this room, too: a lease is taken with one statement over both
 * tables. A browser that leaves its pool is marked as deleted in the same statement, while it is still running: from then
 * on it has no owner, its place is free, and its node ends it.
 */
export const poolStore = (db: Db) => ({ ...poolsThemselves(db), ...lineOfWaiters(db), ...browsersOfPools(db) });

function poolsThemselves(db: Db) {
  return {
    async insert(
      pool: Pick<PoolRow, 'id' | 'project_id' | 'name' | 'size' | 'config' | 'profile_id' | 'extension_ids'>,
    ): Promise<void> {
      await db.rows(sql`insert into pools (id, project_id, name, size, config, profile_id, extension_ids)
        values (${pool.id}, ${pool.project_id}, ${pool.name}, ${pool.size}, ${pool.config}, ${pool.profile_id}, ${pool.extension_ids})`);
    },

    find(id: string): Promise<PoolRow | undefined> {
      return db.row(sql`select * from pools where id = ${id} and deleted_at is null`);
    },

    findByIdOrName(projectId: string, idOrName: string): Promise<PoolRow | undefined> {
      return db.row(sql`select * from pools where project_id = ${projectId} and deleted_at is null and (id = ${idOrName} or name = ${idOrName})
        order by id = ${idOrName} desc limit 1`);
    },

    /** Everything that decides whether a browser has to be made, in one snapshot. */
    look(id: string): Promise<PoolToFill | undefined> {
      return db.row(sql`select p.*, c.*,
          greatest(0, extract(epoch from next_fill_at - now()) * 1000)::float as "fillMs",
          (select status = 'active' and deleted_at is null from projects where id = p.project_id) as open,
          (select coalesce(jsonb_object_agg(node_id, making), '{}') from (select node_id, count(*) as making from sessions
            where pool_id = p.id and deleted_at is null and lease_id is null and idle_since is null group by node_id) m) as "warmingOn"
        from pools p cross join lateral (select
            count(*) filter (where state = 'live' and lease_id is null and idle_since is not null)::integer as available,
            count(*) filter (where lease_id is not null)::integer as acquired,
            count(*) filter (where lease_id is null and idle_since is null)::integer as warming,
            (select count(*) from pool_waiters w where w.pool_id = p.id and w.session_id is null)::integer as waiting
          from sessions s where s.pool_id = p.id and s.deleted_at is null) c
        where p.id = ${id} and p.deleted_at is null`);
    },

    /** A page, cut where its policies have many bytes. */
    async list(projectId: string, filter: PoolList): Promise<Cut<CountedPool>> {
      const { limit, offset } = filter;
      const [query, name] = [filter.query ?? null, filter.name ?? null];
      const rows = await db.rows<CountedPool & { of_page: string }>(sql`select * from (
        select page.*, count(*) over () as of_page, sum(config_bytes) over (order by created_at, id) - config_bytes as before from (
        select p.*, c.* from pools p cross join lateral (select
            count(*) filter (where state = 'live' and lease_id is null and idle_since is not null)::integer as available,
            count(*) filter (where lease_id is not null)::integer as acquired,
            count(*) filter (where lease_id is null and idle_since is null)::integer as warming,
            (select count(*) from pool_waiters w where w.pool_id = p.id and w.session_id is null)::integer as waiting
          from sessions s where s.pool_id = p.id and s.deleted_at is null) c
        where p.project_id = ${projectId} and p.deleted_at is null
          and (${name}::text is null or p.name = ${name})
          and (${query}::text is null or p.id = ${query}
            or strpos(lower(p.name collate "und-x-icu"), lower(${query} collate "und-x-icu")) > 0)
        order by p.created_at, p.id limit ${limit + 1} offset ${offset}) as page) as counted
        where before < ${mostPageOfPolicies} order by created_at, id`);
      return cutPage(rows);
    },

    async ids(): Promise<string[]> {
      return (await db.rows<{ id: string }>(sql`select id from pools where deleted_at is null`)).map(({ id }) => id);
    },

    /** The sizes of this pool and of all others. Until the transaction ends, other transactions that call this wait. */
    async lockSizes(id: string): Promise<{ own: number; others: number }> {
      await db.rows(sql`select pg_advisory_xact_lock(hashtextextended('corral sizes of pools', 0))`);
      const row = await db.row<{ own: number; others: number }>(sql`select
          coalesce(sum(size) filter (where id = ${id}), 0)::integer as own,
          coalesce(sum(size) filter (where id <> ${id}), 0)::integer as others
        from pools where deleted_at is null`);
      return row!;
    },

    /** `stale`: browsers made before are out of date. `larger`: fill without pacing again. A null size keeps the old one. */
    update(
      id: string,
      change: Pick<PoolRow, 'name' | 'config' | 'profile_id' | 'extension_ids'> & {
        size: number | null;
        stale: boolean;
        larger: boolean;
      },
    ): Promise<PoolRow | undefined> {
      return db.row(sql`update pools set name = ${change.name}, size = coalesce(${change.size}::integer, size), config = ${change.config},
          profile_id = ${change.profile_id}, extension_ids = ${change.extension_ids},
          version = version + ${change.stale ? 1 : 0}, filled_once = filled_once and not ${change.larger}
        where id = ${id} and deleted_at is null returning *`);
    },

    /** Undefined: the pool is deleted already, or has leases and `force` is not set. */
    remove(id: string, force: boolean): Promise<PoolRow | undefined> {
      return db.row(sql`update pools set deleted_at = now(), config = config - 'engine_policy' where id = ${id} and deleted_at is null
        and (${force} or not exists (select from sessions where pool_id = ${id} and lease_id is not null and deleted_at is null))
        returning *`);
    },

    /** Whether background filling may make one now; if so, the next may be made `seconds` later. */
    async takeFill(id: string, seconds: number): Promise<boolean> {
      const row = await db.row(sql`update pools set next_fill_at = now() + make_interval(secs => ${seconds})
        where id = ${id} and next_fill_at <= now() returning id`);
      return row !== undefined;
    },

    /** Notes that the pool is full, unless it has lost browsers since the caller counted them. */
    async setFilled(id: string): Promise<void> {
      await db.rows(sql`update pools p set filled_once = true where id = ${id} and not filled_once
        and size <= (select count(*) from sessions s where s.pool_id = p.id and s.deleted_at is null
          and (s.lease_id is not null or (s.state = 'live' and s.idle_since is not null)))`);
    },

    /** Lets pools that lost browsers with a node fill without pacing, as for the first time. */
    async reopen(): Promise<void> {
      await db.rows(sql`update pools p set filled_once = false where deleted_at is null and filled_once
        and size > (select count(*) from sessions s where s.pool_id = p.id and s.deleted_at is null)`);
    },

    async recordFailure(id: string, message: string): Promise<void> {
      await db.rows(sql`update pools set last_error = ${message}, last_error_at = now() where id = ${id}`);
    },

    async recordSuccess(id: string): Promise<void> {
      await db.rows(
        sql`update pools set last_error = null, last_error_at = null where id = ${id} and last_error is not null`,
      );
    },

    /** The pools that replace their browsers when this profile is saved. Their present browsers become out of date. */
    async outdate(profileId: string): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`update pools set version = version + 1
        where profile_id = ${profileId} and (config->>'refresh_on_profile_update')::boolean and deleted_at is null returning id`);
      return rows.map(({ id }) => id);
    },
  };
}

/** Clients that wait for a browser, in order, on all nodes. */
function lineOfWaiters(db: Db) {
  return {
    /** Resolves with the place in the queue; undefined when the pool is deleted. An earlier place is kept. */
    async join(
      poolId: string,
      nodeId: string,
      leaseId: string,
      place: string | undefined,
    ): Promise<string | undefined> {
      const row = await db.row<{ place: string }>(
        place === undefined
          ? sql`insert into pool_waiters (pool_id, node_id, lease_id)
              select id, ${nodeId}, ${leaseId} from pools where id = ${poolId} and deleted_at is null returning place`
          : sql`insert into pool_waiters (place, pool_id, node_id, lease_id) overriding system value
              select ${place}::bigint, id, ${nodeId}, ${leaseId} from pools where id = ${poolId} and deleted_at is null
              on conflict do nothing returning place`,
      );
      return row?.place;
    },

    /** Leaves the queue. If a browser was assigned already, the caller has to use it or put it back. */
    async leave(leaseId: string): Promise<{ sessionId: string | null; ahead: number } | undefined> {
      return db.row(sql`delete from pool_waiters w where lease_id = ${leaseId} returning session_id as "sessionId",
        (select count(*)::integer from pool_waiters o where o.pool_id = w.pool_id and o.session_id is null and o.place < w.place) as ahead`);
    },

    /**
     * Assigns the browser that has been idle longest to the client that has waited longest, in one statement, and
     * notifies that client's node if it is another. Undefined: there is no idle browser or no waiter. The head of the
     * queue is locked without `skip locked`: two concurrent calls would each see half of the queue, and a waiter would
     * stay beside an idle browser.
     */
    serve(
      poolId: string,
      ownNode: string,
    ): Promise<{ leaseId: string; nodeId: string; sessionId: string } | undefined> {
      return db.row(sql`with waiter as (
          select place from pool_waiters where pool_id = ${poolId} and session_id is null order by place limit 1 for update
        ), browser as (
          select id from sessions where pool_id = ${poolId} and state = 'live' and lease_id is null and idle_since is not null
            and deleted_at is null and exists (select from waiter) order by idle_since limit 1 for update skip locked
        ), given as (
          update pool_waiters w set session_id = (select id from browser) from waiter
          where w.place = waiter.place and exists (select from browser) returning w.lease_id, w.node_id, w.session_id
        )
        update sessions s set lease_id = given.lease_id, lease_node = given.node_id, idle_since = null from given where s.id = given.session_id
        returning given.lease_id as "leaseId", given.node_id as "nodeId", s.id as "sessionId",
          case when given.node_id <> ${ownNode} then
            pg_notify('corral_pools', json_build_object('given', given.lease_id, 'to', given.node_id, 'sessionId', s.id)::text)::text end`);
    },

    /** Leases the browser that has been idle longest, if there is one and no client waits for it. */
    leaseNow(poolId: string, leaseId: string, nodeId: string): Promise<{ id: string } | undefined> {
      return db.row(sql`update sessions set lease_id = ${leaseId}, lease_node = ${nodeId}, idle_since = null
        where id = (select id from sessions where pool_id = ${poolId} and state = 'live' and lease_id is null and idle_since is not null
            and deleted_at is null and not exists (select from pool_waiters where pool_id = ${poolId} and session_id is null)
          order by idle_since limit 1 for update skip locked)
        returning id`);
    },

    async waiting(poolId: string): Promise<number> {
      const row = await db.row<{ count: number }>(
        sql`select count(*)::integer as count from pool_waiters where pool_id = ${poolId} and session_id is null`,
      );
      return row?.count ?? 0;
    },

    /** Waiters of this node, and the browsers assigned to them. */
    async waitersOf(nodeId: string): Promise<{ leaseId: string; sessionId: string | null }[]> {
      return db.rows(
        sql`select lease_id as "leaseId", session_id as "sessionId" from pool_waiters where node_id = ${nodeId}`,
      );
    },

    /** The leases that clients of this node wait for, and those that it is about to hand over. */
    async claimsOf(nodeId: string): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`select lease_id as id from pool_waiters where node_id = ${nodeId}
        union select lease_id from sessions where lease_node = ${nodeId} and deleted_at is null`);
      return rows.map(({ id }) => id);
    },

    /**
     * Removes the waiters of this node, all or those with these leases: they disconnected with it. Browsers that were assigned but not
     * handed over are idle again. Resolves with the pools that have such browsers.
     */
    async forgetWaiters(nodeId: string, leases: readonly string[] | null = null): Promise<string[]> {
      await db.rows(
        sql`delete from pool_waiters where node_id = ${nodeId} and (${leases}::text[] is null or lease_id = any (${leases}))`,
      );
      const freed = await db.rows<{
        pool_id: string;
      }>(sql`update sessions set lease_id = null, lease_node = null, idle_since = now()
        where lease_node = ${nodeId} and (${leases}::text[] is null or lease_id = any (${leases})) and deleted_at is null returning pool_id`);
      return [...new Set(freed.map(({ pool_id }) => pool_id))];
    },

    async tell(message: object): Promise<void> {
      await db.rows(sql`select pg_notify('corral_pools', ${JSON.stringify(message)})`);
    },
  };
}

/** The browsers of pools: leased, on the shelf, or neither. */
function browsersOfPools(db: Db) {
  return {
    async leased(id: string): Promise<number> {
      const row = await db.row<{ count: number }>(
        sql`select count(*)::integer as count from sessions where pool_id = ${id} and lease_id is not null and deleted_at is null`,
      );
      return row?.count ?? 0;
    },

    /** Hands the browser over to the holder. Undefined: the lease has ended. */
    describeLease(sessionId: string, lease: Lease): Promise<{ id: string } | undefined> {
      return db.row(sql`update sessions set name = ${lease.name}, tags = ${lease.tags}, timeout_seconds = ${lease.timeoutSeconds},
          start_url = ${lease.startUrl}, telemetry = ${lease.telemetry}, lease_node = null
        where id = ${sessionId} and lease_id = ${lease.id} and deleted_at is null returning id`);
    },

    /** The lease on a pool's browser, if it is leased. */
    async leaseOn(poolId: string, sessionId: string): Promise<string | undefined> {
      const row = await db.row<{ lease_id: string }>(sql`select lease_id from sessions
        where id = ${sessionId} and pool_id = ${poolId} and lease_id is not null and deleted_at is null`);
      return row?.lease_id;
    },

    /** Whether the holder attached a profile, which ends with the lease. */
    async hasOwnProfile(sessionId: string): Promise<boolean> {
      const row = await db.row(sql`select from sessions where id = ${sessionId} and profile_attached`);
      return row !== undefined;
    },

    /** Ends a lease together with its browser. Undefined: the lease has ended before. */
    endLease(sessionId: string, leaseId: string): Promise<{ id: string } | undefined> {
      return db.row(sql`update sessions set deleted_at = now(), lease_node = null
        where id = ${sessionId} and lease_id = ${leaseId} and deleted_at is null returning id`);
    },

    /**
     * Puts a browser on the shelf: a new one, or one with a lease that ends with this. If it no longer fits the pool, it leaves
     * the pool instead. Undefined: it was not in that state any more.
     */
    async shelve(sessionId: string, leaseId: string | null = null): Promise<'shelved' | 'expelled' | undefined> {
      const row = await db.row<{ shelved: boolean }>(sql`with fit as (
          select s.id, p.deleted_at is null and s.pool_version = p.version
            and (select count(*) from sessions o where o.pool_id = p.id and o.deleted_at is null) <= p.size as fits,
            p.config->>'proxy_id' as proxy_id
          from sessions s join pools p on p.id = s.pool_id where s.id = ${sessionId}
        )
        update sessions s set lease_id = null, lease_node = null, name = null, tags = '{}', start_url = null, telemetry = '{}',
          proxy_id = fit.proxy_id, default_proxy_disabled = false,
          idle_since = case when fits then now() end, deleted_at = case when not fits then now() end
        from fit where s.id = fit.id and s.state = 'live' and s.deleted_at is null and s.idle_since is null
          and s.lease_id is not distinct from ${leaseId}
        returning fits as shelved`);
      return row && (row.shelved ? 'shelved' : 'expelled');
    },

    /** Takes idle browsers out of the pool, the oldest first: all, or `count` of them. */
    async clearShelf(poolId: string, count: number | null = null): Promise<string[]> {
      const rows = await db.rows<{
        id: string;
      }>(sql`update sessions set deleted_at = now(), idle_since = null where id in (
          select id from sessions where pool_id = ${poolId} and state = 'live' and lease_id is null and idle_since is not null
            and deleted_at is null order by pool_version, idle_since limit ${count} for update skip locked)
        returning id`);
      return rows.map(({ id }) => id);
    },

    /** Every browser of a pool that has not ended. */
    async browsers(poolId: string): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(
        sql`select id from sessions where pool_id = ${poolId} and state in ('starting', 'live', 'stopping')`,
      );
      return rows.map(({ id }) => id);
    },

    /** The node that runs a browser of a pool, until the browser has ended. */
    async ownerOf(sessionId: string): Promise<string | undefined> {
      const row = await db.row<{ node_id: string }>(
        sql`select node_id from sessions where id = ${sessionId} and state in ('starting', 'live', 'stopping')`,
      );
      return row?.node_id;
    },

    /** Browsers on this node that left their pool and still run. */
    async strays(nodeId: string): Promise<string[]> {
      const rows = await db.rows<{
        id: string;
      }>(sql`update sessions s set deleted_at = coalesce(s.deleted_at, now()), idle_since = null
        from pools p where p.id = s.pool_id and s.node_id = ${nodeId} and s.state = 'live'
          and (s.deleted_at is not null or p.deleted_at is not null) returning s.id`);
      return rows.map(({ id }) => id);
    },

    /** Leases on browsers of this node, once they are handed over. */
    async leasesOn(nodeId: string): Promise<{ id: string; poolId: string; leaseId: string }[]> {
      return db.rows(sql`select id, pool_id as "poolId", lease_id as "leaseId" from sessions where node_id = ${nodeId}
        and pool_id is not null and state = 'live' and lease_id is not null and lease_node is null and deleted_at is null`);
    },

    /** Live browsers on this node that are neither idle nor leased. */
    async unshelved(nodeId: string): Promise<{ id: string; poolId: string }[]> {
      return db.rows(sql`select id, pool_id as "poolId" from sessions where node_id = ${nodeId} and pool_id is not null
        and state = 'live' and lease_id is null and idle_since is null and deleted_at is null`);
    },
  };
}
