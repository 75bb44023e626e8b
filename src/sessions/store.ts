import type { Db } from '../store/db.ts';
import { cutPage, type Cut } from '../store/pages.ts';
import { sql } from '../store/sql.ts';
import { mostPageOfPolicies } from './policy.ts';
import type { Switches } from './schema.ts';
import { sessionLife, type Ending, type SessionEvent, type SessionState } from './state.ts';

/** An ended session keeps a policy up to this many bytes: its row stays for a long time, and counts for no project. */
const mostKeptPolicy = 16 * 1024;

export interface SessionRow extends Switches {
  id: string;
  project_id: string;
  node_id: string;
  state: SessionState;
  name: string | null;
  tags: Record<string, string>;
  timeout_seconds: number;
  viewport_width: number;
  viewport_height: number;
  refresh_rate: number | null;
  start_url: string | null;
  policy: Record<string, unknown> | null;
  proxy_id: string | null;
  default_proxy_disabled: boolean;
  invocation_id: string | null;
  pool_id: string | null;
  pool_version: number | null;
  lease_id: string | null;
  profile_id: string | null;
  profile_saves: boolean;
  /** The categories that are captured. */
  telemetry: string[];
  /** Only in queries that select it. */
  pool_name?: string | null;
  /** Only in queries that select it; null without a profile. Its times are text. */
  profile?: {
    id: string;
    name: string | null;
    created_at: string;
    updated_at: string;
    last_used_at: string | null;
  } | null;
  /** A bigint, which arrives as text. Up to `awake_since`, if that is set. */
  uptime_ms: string;
  awake_since: Date | null;
  /** Up to now. Only in queries that select it. */
  uptime?: string;
  ended_reason: Ending | null;
  ended_detail: string | null;
  created_at: Date;
  deleted_at: Date | null;
}

export type NewSession = Omit<
  SessionRow,
  | 'state'
  | 'default_proxy_disabled'
  | 'lease_id'
  | 'pool_name'
  | 'profile'
  | 'uptime_ms'
  | 'awake_since'
  | 'uptime'
  | 'ended_reason'
  | 'ended_detail'
  | 'created_at'
  | 'deleted_at'
>;

/** The number of a project's browsers, and of the places that its pools reserve for browsers not yet started. */
interface Usage {
  active: number;
  kept: number;
}

export interface SessionFilter {
  projectId: string;
  status: 'active' | 'deleted' | 'all';
  query: string | null;
  tags: Record<string, string>;
  /** Only sessions that are older than the one of this id or name. */
  before?: string;
  /** Only sessions that failed, or only others. */
  failed?: boolean;
  limit: number;
  offset: number;
}

export type SessionStore = ReturnType<typeof sessionStore>;

/** Every query on `sessions`. */
export function sessionStore(db: Db) {
  return { ...admitting(db), ...finding(db), ...living(db) };
}

/** Inserts of rows, within caps, pools and profiles. */
function admitting(db: Db) {
  return {
    insert(row: NewSession, state: 'starting' | 'live'): Promise<SessionRow | undefined> {
      return db.row(sql`insert into sessions (id, project_id, node_id, state, name, tags, headless, stealth, gpu, kiosk_mode, timeout_seconds,
          viewport_width, viewport_height, refresh_rate, start_url, policy, proxy_id, invocation_id, pool_id, pool_version, profile_id, profile_saves, telemetry, awake_since)
        values (${row.id}, ${row.project_id}, ${row.node_id}, ${state}, ${row.name}, ${row.tags}, ${row.headless}, ${row.stealth}, ${row.gpu},
          ${row.kiosk_mode}, ${row.timeout_seconds}, ${row.viewport_width}, ${row.viewport_height}, ${row.refresh_rate},
          ${row.start_url}, ${row.policy}, ${row.proxy_id}, ${row.invocation_id}, ${row.pool_id}, ${row.pool_version}, ${row.profile_id}, ${row.profile_saves},
          ${row.telemetry}, case when ${state} = 'live' then now() end)
        returning *`);
    },

    /** Counts and inserts in one transaction, for projects with a cap: concurrent creates must not all see the last free place. */
    insertWithin(row: NewSession, state: 'starting' | 'live', cap: number): Promise<SessionRow | Usage> {
      return db.transaction(async (tx) => {
        const usage = await sessionStore(tx).lockUsage(row.project_id);
        return usage.active + usage.kept >= cap ? usage : (await sessionStore(tx).insert(row, state))!;
      });
    },

    /**
     * The same for a place in a pool, on whichever node it is created. Undefined: the pool is full or deleted. The pool's places were
     * counted when its size was set, so only running browsers count here: they exceed the cap if it was lowered since.
     */
    insertPooled(
      row: NewSession,
      state: 'starting' | 'live',
      poolId: string,
      cap: number | null,
    ): Promise<SessionRow | Usage | undefined> {
      return db.transaction(async (tx) => {
        const usage = cap === null ? undefined : await sessionStore(tx).lockUsage(row.project_id);
        if (usage && usage.active >= cap!) return { active: usage.active, kept: 0 };
        const pool = await tx.row<{ size: number; there: number }>(sql`select size,
            (select count(*)::integer from sessions where pool_id = ${poolId} and deleted_at is null) as there
          from pools where id = ${poolId} and deleted_at is null for update`);
        return pool && pool.there < pool.size ? sessionStore(tx).insert(row, state) : undefined;
      });
    },

    /**
     * What counts towards a project's cap: a pool of N counts N, however many of its browsers run. `except` is a pool that is left out.
     * The lock keeps other callers from changing the usage until the transaction ends.
     */
    async lockUsage(projectId: string, except: string | null = null): Promise<Usage> {
      await db.rows(sql`select pg_advisory_xact_lock(hashtextextended('corral sessions of ' || ${projectId}, 0))`);
      const row = await db.row<Usage>(sql`select
          (select count(*)::integer from sessions
            where project_id = ${projectId} and deleted_at is null and (${except}::text is null or pool_id is distinct from ${except})) as active,
          (select coalesce(sum(greatest(0, p.size - (select count(*) from sessions s where s.pool_id = p.id and s.deleted_at is null))), 0)::integer
            from pools p where p.project_id = ${projectId} and p.deleted_at is null and p.id is distinct from ${except}) as kept`);
      return row!;
    },

    /** Runs `write` in the same transaction if no other session saves to the profile; otherwise answers with that session. */
    asOnlyWriter<T>(
      { profileId, sessionId }: { profileId: string; sessionId: string },
      write: (within: Db) => Promise<T>,
    ): Promise<{ written: T } | { writer: string }> {
      return db.transaction(async (tx) => {
        await tx.rows(sql`select from profiles where id = ${profileId} for update`);
        const other = await tx.row<{ id: string }>(sql`select id from sessions
          where profile_id = ${profileId} and profile_saves and state in ('starting', 'live', 'stopping') and id <> ${sessionId} limit 1`);
        return other ? { writer: other.id } : { written: await write(tx) };
      });
    },

    /** Undefined: the session has a profile already, or has ended. */
    attachProfile(id: string, profileId: string, saves: boolean): Promise<SessionRow | undefined> {
      return db.row(sql`update sessions set profile_id = ${profileId}, profile_saves = ${saves}, profile_attached = true
        where id = ${id} and profile_id is null and deleted_at is null returning *, profile_of(sessions) as profile`);
    },

    /** The session saves its profile when it ends. Answers with the profile; undefined when the session has ended or has none. */
    async saveAfterAll(id: string): Promise<string | undefined> {
      const row = await db.row<{ profile_id: string }>(sql`update sessions set profile_saves = true
        where id = ${id} and profile_id is not null and deleted_at is null returning profile_id`);
      return row?.profile_id;
    },

    /**
     * The same, unless the save would overwrite another one: a session that saves to the profile runs, or the profile has changed since this
     * session began.
     */
    saveIfUndisturbed(id: string): Promise<string | undefined> {
      return db.transaction(async (tx) => {
        // The lock makes a session that is being started as a writer wait, or be seen.
        const profile = await tx.row<{
          id: string;
          changed: boolean;
        }>(sql`select p.id, p.updated_at > s.created_at as changed
          from profiles p join sessions s on s.profile_id = p.id where s.id = ${id} for update of p`);
        if (!profile || profile.changed) return undefined;
        const other = await tx.row(sql`select id from sessions
          where profile_id = ${profile.id} and profile_saves and state in ('starting', 'live', 'stopping') and id <> ${id} limit 1`);
        return other ? undefined : sessionStore(tx).saveAfterAll(id);
      });
    },

    async detachProfile(id: string): Promise<void> {
      await db.rows(
        sql`update sessions set profile_id = null, profile_saves = false, profile_attached = false where id = ${id}`,
      );
    },
  };
}

/** Queries that find sessions. */
function finding(db: Db) {
  return {
    async countActive(projectId: string): Promise<number> {
      const row = await db.row<{ count: number }>(
        sql`select count(*)::integer as count from sessions where project_id = ${projectId} and deleted_at is null`,
      );
      return row?.count ?? 0;
    },

    find(id: string): Promise<SessionRow | undefined> {
      return db.row(
        sql`select *, (select name from pools where id = pool_id) as pool_name, profile_of(sessions) as profile, uptime_of(sessions) as uptime from sessions where id = ${id}`,
      );
    },

    /**
     * Sessions with a holder: idle browsers of a pool are left out. An id wins over a name; a name means the active session that has it,
     * else the newest that had it.
     */
    findByIdOrName(projectId: string, idOrName: string, includeDeleted: boolean): Promise<SessionRow | undefined> {
      return db.row(sql`select *, (select name from pools where id = pool_id) as pool_name, profile_of(sessions) as profile, uptime_of(sessions) as uptime from sessions
        where project_id = ${projectId} and (id = ${idOrName} or name = ${idOrName}) and (${includeDeleted} or deleted_at is null)
          and (pool_id is null or lease_id is not null)
        order by id = ${idOrName} desc, deleted_at is null desc, created_at desc limit 1`);
    },

    /** A page, cut where its policies have many bytes. */
    async list(filter: SessionFilter): Promise<Cut<SessionRow>> {
      const { projectId, status, query, tags, before, failed, limit, offset } = filter;
      const rows = await db.page<SessionRow & { of_page: string }>(
        projectId,
        sql`select * from (
        select page.*, count(*) over () as of_page,
          sum(coalesce(policy_bytes, 0)) over (order by created_at desc, id) - coalesce(policy_bytes, 0) as before from (
        select s.*, p.name as pool_name, profile_of(s) as profile, uptime_of(s) as uptime from sessions s left join pools p on p.id = s.pool_id
        where s.project_id = ${projectId} and (s.pool_id is null or s.lease_id is not null)
          and (${status} = 'all' or (${status} = 'deleted') = (s.deleted_at is not null))
          and s.tags @> ${tags}
          and (${failed ?? null}::boolean is null or (s.state = 'failed') = ${failed ?? null})
          and (${before ?? null}::text is null or not exists (select from sessions b
            where b.project_id = ${projectId} and (b.id = ${before ?? null} or b.name = ${before ?? null})
              and (s.created_at > b.created_at or (s.created_at = b.created_at and s.id <= b.id))))
          and (${query}::text is null or s.id = ${query} or s.profile_id = ${query} or s.proxy_id = ${query}
            or strpos(lower(s.name collate "und-x-icu"), lower(${query} collate "und-x-icu")) > 0
            or strpos(lower(p.name collate "und-x-icu"), lower(${query} collate "und-x-icu")) > 0
            or exists (select from profiles f where f.id = s.profile_id
              and strpos(lower(f.name collate "und-x-icu"), lower(${query} collate "und-x-icu")) > 0))
        order by s.created_at desc, s.id limit ${limit + 1} offset ${offset}) as page) as counted
        where before < ${mostPageOfPolicies} order by created_at desc, id`,
      );
      return cutPage(rows);
    },
  };
}

/** Updates of a session during its life. */
function living(db: Db) {
  return {
    /**
     * Moves a session along its life. Undefined means that the session was no longer in a state this event leaves: a concurrent event
     * moved it first. The WHERE clause is the lock.
     */
    apply(
      id: string,
      event: SessionEvent,
      ending: { reason?: Ending; detail?: string; uptimeMs?: number } = {},
    ): Promise<SessionRow | undefined> {
      const { from, to } = sessionLife.move(event);
      const over = event !== 'launched';
      return db.row(sql`update sessions set state = ${to},
          ended_reason = coalesce(ended_reason, ${ending.reason ?? null}),
          ended_detail = coalesce(ended_detail, ${ending.detail ?? null}),
          uptime_ms = coalesce(${ending.uptimeMs ?? null}::bigint, uptime_of(sessions)),
          awake_since = case when ${over} then null else now() end,
          policy = case when ${sessionLife.isFinal(to)} and policy_bytes > ${mostKeptPolicy}::integer then null else policy end,
          deleted_at = case when ${over} then coalesce(deleted_at, now()) else deleted_at end
        where id = ${id} and state = any (${from}) returning *, profile_of(sessions) as profile`);
    },

    /** Fields left undefined keep their value. Undefined: the session has ended, or that lease of it has. */
    update(
      { id, lease_id }: Pick<SessionRow, 'id' | 'lease_id'>,
      changes: {
        name?: string | null;
        tags?: Record<string, string>;
        viewport?: { width: number; height: number; rate: number | null };
        proxy?: { id: string | null; defaultDisabled: boolean };
        telemetry?: string[];
      },
    ): Promise<SessionRow | undefined> {
      const { name, tags, viewport, proxy, telemetry } = changes;
      return db.row(sql`update sessions set
          name = case when ${name === undefined} then name else ${name ?? null} end,
          tags = coalesce(${tags ?? null}::jsonb, tags),
          viewport_width = coalesce(${viewport?.width ?? null}::integer, viewport_width),
          viewport_height = coalesce(${viewport?.height ?? null}::integer, viewport_height),
          refresh_rate = case when ${viewport === undefined} then refresh_rate else ${viewport?.rate ?? null}::integer end,
          proxy_id = case when ${proxy === undefined} then proxy_id else ${proxy?.id ?? null} end,
          default_proxy_disabled = coalesce(${proxy?.defaultDisabled ?? null}::boolean, default_proxy_disabled),
          telemetry = coalesce(${telemetry ?? null}::text[], telemetry)
        where id = ${id} and lease_id is not distinct from ${lease_id} and deleted_at is null
        returning *, profile_of(sessions) as profile`);
    },

    /** The session fell asleep or woke up. */
    async setClock(id: string, { uptimeMs, awake }: { uptimeMs: number; awake: boolean }): Promise<void> {
      await db.rows(sql`update sessions set uptime_ms = ${uptimeMs}, awake_since = case when ${awake} then now() end
        where id = ${id} and state = 'live'`);
    },

    /**
     * Settles the unfinished sessions of a lost node. They ran until its last heartbeat, which was `silentMs` ago; when left out,
     * the node's own row is asked. Their responses that waited for a body stay in the archive as they are (telemetry/drafts.ts).
     */
    settleAll(
      nodeId: string,
      reason: Ending,
      silentMs?: number,
    ): Promise<Pick<SessionRow, 'id' | 'project_id' | 'pool_id'>[]> {
      const { from, to } = sessionLife.move('lost');
      return db.rows(sql`with lost as (update sessions set state = ${to},
          uptime_ms = uptime_of(sessions, coalesce(now() - make_interval(secs => ${silentMs === undefined ? null : silentMs / 1000}::float8),
            (select least(now(), heartbeat_at) from nodes where id = ${nodeId}), now())),
          policy = case when policy_bytes > ${mostKeptPolicy}::integer then null else policy end,
          awake_since = null, ended_reason = coalesce(ended_reason, ${reason}), deleted_at = coalesce(deleted_at, now())
        where node_id = ${nodeId} and state in ('starting', 'live', 'stopping') and state = any (${from}) returning id, project_id, pool_id),
        kept as (update telemetry_chunks set draft = false where draft and session_id in (select id from lost))
        select * from lost`);
    },

    /** Active sessions of this invocation. Policies are left out: the list has no pages. */
    ofInvocation(id: string): Promise<SessionRow[]> {
      return db.rows(sql`select slim.* from sessions s cross join lateral jsonb_populate_record(s, '{"policy": null}') as slim
        where s.invocation_id = ${id} and s.deleted_at is null order by s.created_at, s.id`);
    },

    /** Active sessions of this invocation, or of any. */
    tied(id: string | null): Promise<{ id: string; invocationId: string }[]> {
      return db.rows(sql`select id, invocation_id as "invocationId" from sessions
        where invocation_id is not null and deleted_at is null and (${id}::text is null or invocation_id = ${id})`);
    },

    /** Nodes that have unsettled sessions. */
    async nodesInUse(): Promise<string[]> {
      const rows = await db.rows<{ node_id: string }>(
        sql`select distinct node_id from sessions where state in ('starting', 'live', 'stopping')`,
      );
      return rows.map(({ node_id }) => node_id);
    },

    async ofClosedProjects(ids: string[]): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`select s.id from sessions s join projects p on p.id = s.project_id
        where s.id = any (${ids}) and (p.status <> 'active' or p.deleted_at is not null)`);
      return rows.map(({ id }) => id);
    },

    /** Sessions that another node may have settled. A launch that fails settles its own row a moment before it is over: it is not among them. */
    async settledAmong(ids: string[]): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(
        sql`select id from sessions where id = any (${ids}) and state not in ('starting', 'live', 'stopping')
          and ended_reason is distinct from 'did_not_start'`,
      );
      return rows.map(({ id }) => id);
    },
  };
}
