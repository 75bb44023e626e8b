import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';

/** Every query on what projects store in total. */
export function storageStore(db: Db) {
  return {
    /** Serialises claims of a project until the transaction ends. */
    async lock(projectId: string): Promise<void> {
      await db.rows(sql`select pg_advisory_xact_lock(hashtextextended('corral storage of ' || ${projectId}, 0))`);
    },

    /** `all`: also caches. */
    async usedBytes(projectId: string, all: boolean): Promise<number> {
      const row = await db.row<{ bytes: string }>(sql`select (
          (select coalesce(sum(size_bytes), 0) from extensions where project_id = ${projectId} and deleted_at is null)
        + (select coalesce(sum(v.size_bytes), 0) from profile_versions v join profiles p on p.id = v.profile_id
            where p.project_id = ${projectId} and v.complete)
        + (select coalesce(sum(source_bytes + build_bytes), 0) from deployments where project_id = ${projectId})
        + (select coalesce(sum(bytes), 0) from replays where project_id = ${projectId})
        + (select coalesce(sum(bytes), 0) from storage_claims
            where project_id = ${projectId} and (${all} or not made_again)))::bigint as bytes`);
      return Number(row?.bytes ?? 0);
    },

    async grow(id: string, projectId: string, nodeId: string, bytes: number, madeAgain = false): Promise<void> {
      await db.rows(sql`insert into storage_claims (id, project_id, node_id, bytes, made_again)
        values (${id}, ${projectId}, ${nodeId}, ${bytes}, ${madeAgain})
        on conflict (id) do update set bytes = storage_claims.bytes + excluded.bytes`);
    },

    async release(id: string): Promise<void> {
      await db.rows(sql`delete from storage_claims where id = ${id}`);
    },

    async releaseOf(nodeId: string): Promise<void> {
      await db.rows(sql`delete from storage_claims where node_id = ${nodeId}`);
    },
  };
}
