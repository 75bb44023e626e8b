import type { Db } from '../../store/db.ts';
import { sql } from '../../store/sql.ts';

export type KeptLogStore = ReturnType<typeof keptLogStore>;

/** Every query on `session_logs`. */
export function keptLogStore(db: Db) {
  return {
    /** Nothing is written for a session that has no row. */
    async insert(sessionId: string, packed: Buffer): Promise<void> {
      await db.rows(sql`insert into session_logs (session_id, project_id, bytes, packed)
        select id, project_id, ${packed.length}, ${packed} from sessions where id = ${sessionId}
        on conflict (session_id) do nothing`);
    },

    find(sessionId: string): Promise<{ kept_at: Date; packed: Buffer } | undefined> {
      return db.row(sql`select kept_at, packed from session_logs where session_id = ${sessionId}`);
    },

    /** Removes the oldest of each project that has more than so many bytes. */
    async prune(mostBytes: number): Promise<void> {
      await db.rows(sql`delete from session_logs where session_id in (
        select session_id from (
          select session_id, sum(bytes) over (partition by project_id order by kept_at desc, session_id) as up_to from session_logs) as counted
        where up_to > ${mostBytes})`);
    },
  };
}
