import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import type { PoolConfig, PoolList } from './schema.ts';

export interface PoolRow {
  id: string;
  project_id: string;
  name: string | null;
  size: number;
  config: Omit<PoolConfig, 'size' | 'name'>;
  version: number;
  filled_once: boolean;
  next_fill_at: Date;
  failures: number;
  retry_at: Date;
  last_error: string | null;
  last_error_at: Date | null;
  created_at: Date;
  deleted_at: Date | null;
}

/** A pool with what it holds, counted in the same statement so that the figures fit each other. */
export interface CountedPool extends PoolRow {
  available: number;
  acquired: number;
  warming: number;
  waiting: number;
}

export type PoolStore = ReturnType<typeof poolStore>;

/**
 * Every query on `pools` and on the line of their waiters. The columns of `sessions` that say who holds a pool's browser
 * (pool_id, lease_id, idle_since) are this room's, too: a lease is taken with one statement over both tables.
 */
export function poolStore(db: Db) {
  return {
    async insert(pool: Pick<PoolRow, 'id' | 'project_id' | 'name' | 'size' | 'config'>): Promise<void> {
      await db.rows(sql`insert into pools (id, project_id, name, size, config)
        values (${pool.id}, ${pool.project_id}, ${pool.name}, ${pool.size}, ${pool.config})`);
    },

    find(id: string): Promise<PoolRow | undefined> {
      return db.row(sql`select * from pools where id = ${id} and deleted_at is null`);
    },

    findByIdOrName(projectId: string, idOrName: string): Promise<PoolRow | undefined> {
      return db.row(sql`select * from pools where project_id = ${projectId} and deleted_at is null and (id = ${idOrName} or name = ${idOrName})
        order by id = ${idOrName} desc limit 1`);
    },

    count(id: string): Promise<Pick<CountedPool, 'available' | 'acquired' | 'warming' | 'waiting'> | undefined> {
      return db.row(sql`select
          count(*) filter (where state = 'live' and lease_id is null and idle_since is not null)::integer as available,
          count(*) filter (where lease_id is not null)::integer as acquired,
          count(*) filter (where lease_id is null and idle_since is null)::integer as warming,
          (select count(*) from pool_waiters where pool_id = ${id} and session_id is null)::integer as waiting
        from sessions where pool_id = ${id} and deleted_at is null`);
    },

    list(projectId: string, filter: PoolList): Promise<CountedPool[]> {
      const { limit, offset } = filter;
      const [query, name] = [filter.query ?? null, filter.name ?? null];
      return db.rows(sql`select p.*, c.* from pools p cross join lateral (select
            count(*) filter (where state = 'live' and lease_id is null and idle_since is not null)::integer as available,
            count(*) filter (where lease_id is not null)::integer as acquired,
            count(*) filter (where lease_id is null and idle_since is null)::integer as warming,
            (select count(*) from pool_waiters w where w.pool_id = p.id and w.session_id is null)::integer as waiting
          from sessions s where s.pool_id = p.id and s.deleted_at is null) c
        where p.project_id = ${projectId} and p.deleted_at is null
          and (${name}::text is null or p.name = ${name})
          and (${query}::text is null or p.id = ${query}
            or strpos(lower(p.name collate "und-x-icu"), lower(${query} collate "und-x-icu")) > 0)
        order by p.created_at, p.id limit ${limit + 1} offset ${offset}`);
    },

    async ids(): Promise<string[]> {
      return (await db.rows<{ id: string }>(sql`select id from pools where deleted_at is null`)).map(({ id }) => id);
    },

    async sizesOtherThan(id: string | null): Promise<number> {
      const row = await db.row<{ sum: number }>(
        sql`select coalesce(sum(size), 0)::integer as sum from pools where deleted_at is null and id is distinct from ${id}`,
      );
      return row?.sum ?? 0;
    },

    /** Fresh: whether browsers made before are out of date, and whether it is to be filled without pacing again. */
    update(
      id: string,
      change: { name: string | null; size: number; config: PoolRow['config']; stale: boolean; larger: boolean },
    ): Promise<PoolRow | undefined> {
      return db.row(sql`update pools set name = ${change.name}, size = ${change.size}, config = ${change.config},
          version = version + ${change.stale ? 1 : 0}, filled_once = filled_once and not ${change.larger}
        where id = ${id} and deleted_at is null returning *`);
    },

    remove(id: string): Promise<PoolRow | undefined> {
      return db.row(sql`update pools set deleted_at = now() where id = ${id} and deleted_at is null returning *`);
    },

    /** Only one node at a time decides what a pool needs; the others will be told of the outcome. */
    async lock(id: string): Promise<void> {
      await db.rows(sql`select pg_advisory_xact_lock(hashtextextended('corral pool ' || ${id}, 0))`);
    },

    /** Whether background filling may make one now; if so, the next may be made `seconds` later. */
    async takeFill(id: string, seconds: number): Promise<boolean> {
      const row = await db.row(sql`update pools set next_fill_at = now() + make_interval(secs => ${seconds})
        where id = ${id} and next_fill_at <= now() returning id`);
      return row !== undefined;
    },

    /** Milliseconds until background filling, and until a launch at all, may happen. */
    async pauses(id: string): Promise<{ fillMs: number; retryMs: number }> {
      const row = await db.row<{ fill: number; retry: number }>(sql`select
          greatest(0, extract(epoch from next_fill_at - now()) * 1000)::float as fill,
          greatest(0, extract(epoch from retry_at - now()) * 1000)::float as retry
        from pools where id = ${id}`);
      return { fillMs: row?.fill ?? 0, retryMs: row?.retry ?? 0 };
    },

    async setFilled(id: string): Promise<void> {
      await db.rows(sql`update pools set filled_once = true where id = ${id} and not filled_once`);
    },

    async recordFailure(id: string, message: string): Promise<void> {
      await db.rows(sql`update pools set failures = failures + 1, last_error = ${message}, last_error_at = now(),
          retry_at = now() + make_interval(secs => least(60, power(2, least(failures, 6))))
        where id = ${id}`);
    },

    async recordSuccess(id: string): Promise<void> {
      await db.rows(sql`update pools set failures = 0, retry_at = now(), last_error = null, last_error_at = null
        where id = ${id} and (failures > 0 or last_error is not null)`);
    },

    // The line

    async join(poolId: string, nodeId: string, leaseId: string): Promise<void> {
      await db.rows(
        sql`insert into pool_waiters (pool_id, node_id, lease_id) values (${poolId}, ${nodeId}, ${leaseId})`,
      );
    },

    /** Leaves the line. What it was given meanwhile, if anything, is the caller's to use or to put back. */
    async leave(leaseId: string): Promise<{ sessionId: string | null; ahead: number } | undefined> {
      return db.row(sql`delete from pool_waiters w where lease_id = ${leaseId} returning session_id as "sessionId",
        (select count(*)::integer from pool_waiters o where o.pool_id = w.pool_id and o.session_id is null and o.place < w.place) as ahead`);
    },

    /** Gives the browser that has been on the shelf longest to whoever has waited longest, as one. Undefined: one of the two was missing. */
    serve(poolId: string): Promise<{ leaseId: string; nodeId: string; sessionId: string } | undefined> {
      return db.row(sql`with waiter as (
          select place from pool_waiters where pool_id = ${poolId} and session_id is null order by place limit 1 for update skip locked
        ), browser as (
          select id from sessions where pool_id = ${poolId} and state = 'live' and lease_id is null and idle_since is not null
            and exists (select from waiter) order by idle_since limit 1 for update skip locked
        ), given as (
          update pool_waiters w set session_id = (select id from browser) from waiter
          where w.place = waiter.place and exists (select from browser) returning w.lease_id, w.node_id, w.session_id
        )
        update sessions s set lease_id = given.lease_id, idle_since = null from given where s.id = given.session_id
        returning given.lease_id as "leaseId", given.node_id as "nodeId", s.id as "sessionId"`);
    },

    /** The browser that has been on the shelf longest, if there is one and nobody stands in line for it. */
    leaseNow(poolId: string, leaseId: string): Promise<{ id: string } | undefined> {
      return db.row(sql`update sessions set lease_id = ${leaseId}, idle_since = null
        where id = (select id from sessions where pool_id = ${poolId} and state = 'live' and lease_id is null and idle_since is not null
            and not exists (select from pool_waiters where pool_id = ${poolId} and session_id is null)
          order by idle_since limit 1 for update skip locked)
        returning id`);
    },

    /** What the holder wants it to be called, for this lease only. */
    describeLease(
      sessionId: string,
      leaseId: string,
      lease: { name: string | null; tags: Record<string, string>; timeoutSeconds: number },
    ): Promise<{ id: string } | undefined> {
      return db.row(sql`update sessions set name = ${lease.name}, tags = ${lease.tags}, timeout_seconds = ${lease.timeoutSeconds}
        where id = ${sessionId} and lease_id = ${leaseId} and deleted_at is null returning id`);
    },

    /**
     * Ends a lease, and all that was its own; unless it is kept, the browser is no longer the pool's from then on. Undefined: it
     * was not leased from this pool, or not any more.
     */
    endLease(poolId: string, sessionId: string, keep: boolean): Promise<{ id: string } | undefined> {
      return db.row(sql`update sessions set lease_id = null, idle_since = null, name = null, tags = '{}',
          proxy_id = (select config->>'proxy_id' from pools where id = ${poolId}), default_proxy_disabled = false,
          pool_id = case when ${keep} then pool_id end
        where id = ${sessionId} and pool_id = ${poolId} and lease_id is not null and deleted_at is null returning id`);
    },

    /** It is no longer the pool's, if nobody holds it. */
    async expel(sessionId: string): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`update sessions set pool_id = null, idle_since = null
        where id = ${sessionId} and lease_id is null and deleted_at is null returning id`);
      return rows.map(({ id }) => id);
    },

    /** Puts a browser that nobody holds on the shelf, unless the pool has moved on from it. */
    async shelve(sessionId: string): Promise<boolean> {
      const row = await db.row(sql`update sessions s set idle_since = now() from pools p
        where s.id = ${sessionId} and s.state = 'live' and s.lease_id is null and p.id = s.pool_id and p.deleted_at is null
          and s.pool_version = p.version
          and (select count(*) from sessions o where o.pool_id = p.id and o.deleted_at is null) <= p.size
        returning s.id`);
      return row !== undefined;
    },

    /** Takes browsers off the shelf, for good: they are no longer the pool's. At most `count` of them, or only those of an older version. */
    async clearShelf(
      poolId: string,
      { count = null, olderThan = null }: { count?: number | null; olderThan?: number | null } = {},
    ): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`update sessions set idle_since = null, pool_id = null where id in (
          select id from sessions where pool_id = ${poolId} and state = 'live' and lease_id is null and idle_since is not null
            and (${olderThan}::integer is null or pool_version < ${olderThan})
          order by pool_version, idle_since limit ${count} for update skip locked)
        returning id`);
      return rows.map(({ id }) => id);
    },

    /** Every browser of a pool that is not gone yet. */
    async browsers(poolId: string): Promise<{ id: string; lease_id: string | null }[]> {
      return db.rows(sql`select id, lease_id from sessions where pool_id = ${poolId} and deleted_at is null`);
    },

    async waiting(poolId: string): Promise<number> {
      const row = await db.row<{ count: number }>(
        sql`select count(*)::integer as count from pool_waiters where pool_id = ${poolId} and session_id is null`,
      );
      return row?.count ?? 0;
    },

    /** Whoever waited on this node hung up with it. What they had been given and not taken is on the shelf again; those pools. */
    async forgetWaiters(nodeId: string): Promise<string[]> {
      const gone = await db.rows<{ pool_id: string; session_id: string | null }>(
        sql`delete from pool_waiters where node_id = ${nodeId} returning pool_id, session_id`,
      );
      const given = gone.map(({ session_id }) => session_id).filter((id) => id !== null);
      await db.rows(
        sql`update sessions set lease_id = null, idle_since = now() where id = any (${given}) and deleted_at is null`,
      );
      return [...new Set(gone.map(({ pool_id }) => pool_id))];
    },

    async tell(message: object): Promise<void> {
      await db.rows(sql`select pg_notify('corral_pools', ${JSON.stringify(message)})`);
    },
  };
}
