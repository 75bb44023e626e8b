import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';

/** The most rows that one statement removes. */
const atOnce = 200;
/** One statement removes about this many bytes at most: a log has up to 50,000 rows, and they are locked until it ends. */
const bytesAtOnce = 64 * 2 ** 20;

export type RunHistoryStore = ReturnType<typeof runHistoryStore>;

/** Every query on what ended invocations, ended deployments and the logs of both take. */
export function runHistoryStore(db: Db) {
  return {
    /**
     * If the project has more than `most`, removes some of it, the oldest first, until `keep` is left: invocations that have ended,
     * deployments that have ended and to which no invocation refers, and logs of deployments that run. Resolves with whether it has
     * removed any. Nodes that trim the same project take turns, so that they do not remove the same excess twice.
     */
    trim(projectId: string, most: number, keep: number): Promise<boolean> {
      return db.transaction(async (tx) => {
        await tx.rows(sql`select pg_advisory_xact_lock(hashtextextended('corral run history of ' || ${projectId}, 0))`);
        const bytes = await bytesOf(tx, projectId);
        return bytes > most && removeOldest(tx, projectId, Math.min(bytes - keep, bytesAtOnce));
      });
    },

    bytesOf: (projectId: string) => bytesOf(db, projectId),

    /** The projects with more than `most`. */
    async above(most: number): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`select project_id as id from (
          select project_id, kept_bytes as bytes from invocations where finished_at is not null
          union all select project_id, log_bytes from deployments) as kept
        group by project_id having sum(bytes) > ${most}`);
      return rows.map(({ id }) => id);
    },
  };
}

async function bytesOf(db: Db, projectId: string): Promise<number> {
  const row = await db.row<{ bytes: string }>(sql`select
      (select coalesce(sum(kept_bytes), 0) from invocations where project_id = ${projectId} and finished_at is not null)
      + (select coalesce(sum(log_bytes + case when status in ('stopped', 'failed') then
            1024 + octet_length(env_names::text) + coalesce(octet_length(status_reason), 0) else 0 end), 0)
          from deployments where project_id = ${projectId}) as bytes`);
  return Number(row?.bytes ?? 0);
}

/** A deployment stays while it has a key or sealed values: these are found by its row. */
async function removeOldest(db: Db, projectId: string, excess: number): Promise<boolean> {
  const row = await db.row<{ removed: string }>(sql`with candidates as (
      (select id, finished_at as at, kept_bytes as bytes from invocations
        where project_id = ${projectId} and finished_at is not null order by finished_at, id limit ${atOnce})
      union all
      (select id, updated_at, log_bytes + octet_length(env_names::text) + coalesce(octet_length(status_reason), 0) + 1024
        from deployments d
        where project_id = ${projectId} and status in ('stopped', 'failed') and key_id is null
          and not exists (select from invocations where deployment_id = d.id)
          and not exists (select from apps where deployment_id = d.id)
          and not exists (select from secrets where owner = d.id
            and kind in ('deployment env', 'deployment key', 'deployment token'))
        order by updated_at, id limit ${atOnce})
      union all
      (select id, updated_at, log_bytes from deployments
        where project_id = ${projectId} and status = 'running' and log_bytes > 0 order by updated_at, id limit ${atOnce})),
    oldest as (
      select id from (select id, at, sum(bytes) over (order by at, id) - bytes as before from candidates) as counted
      where before < ${excess} order by at, id limit ${atOnce}),
    lines as (delete from run_logs where owner in (select id from oldest)),
    logless as (update deployments set log_bytes = 0 where id in (select id from oldest) and status = 'running'),
    deployed as (delete from deployments where id in (select id from oldest) and status in ('stopped', 'failed')),
    invoked as (delete from invocations where id in (select id from oldest) and finished_at is not null)
    select count(*) as removed from oldest`);
  return Number(row?.removed ?? 0) > 0;
}
