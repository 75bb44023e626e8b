import type { Db } from '../../store/db.ts';
import { sql } from '../../store/sql.ts';
import { replayLife, type ReplayEnding, type ReplayEvent, type ReplayState } from './state.ts';

export interface ReplayRow {
  id: string;
  session_id: string;
  project_id: string;
  node_id: string;
  state: ReplayState;
  framerate: number;
  ended_reason: ReplayEnding | null;
  /** A bigint, which arrives as text. */
  bytes: string;
  started_at: Date;
  finished_at: Date | null;
}

export type ReplayStore = ReturnType<typeof replayStore>;

/** Every query on `replays`. */
export function replayStore(db: Db) {
  return {
    insert(row: {
      id: string;
      sessionId: string;
      projectId: string;
      nodeId: string;
      framerate: number;
      startedAt: Date;
    }): Promise<ReplayRow | undefined> {
      return db.row(sql`insert into replays (id, session_id, project_id, node_id, framerate, started_at)
        values (${row.id}, ${row.sessionId}, ${row.projectId}, ${row.nodeId}, ${row.framerate}, ${row.startedAt}) returning *`);
    },

    find(sessionId: string, id: string): Promise<ReplayRow | undefined> {
      return db.row(sql`select * from replays where session_id = ${sessionId} and id = ${id}`);
    },

    list(sessionId: string): Promise<ReplayRow[]> {
      return db.rows(sql`select * from replays where session_id = ${sessionId} order by started_at, id limit 1000`);
    },

    /** Undefined: the replay was no longer in a state that this event leaves. */
    apply(
      id: string,
      event: ReplayEvent,
      facts: { reason?: ReplayEnding; bytes?: number } = {},
    ): Promise<ReplayRow | undefined> {
      const { from, to } = replayLife.move(event);
      return db.row(sql`update replays set state = ${to},
          ended_reason = coalesce(ended_reason, ${facts.reason ?? null}),
          bytes = coalesce(${facts.bytes ?? null}::bigint, bytes),
          finished_at = coalesce(finished_at, now())
        where id = ${id} and state = any (${from}) returning *`);
    },

    /** The unfinished replays of a node, and those that other nodes settled when they took it for lost. */
    unfinished(nodeId: string): Promise<ReplayRow[]> {
      return db.rows(sql`select * from replays where node_id = ${nodeId}
        and (state in ('recording', 'processing') or (state = 'failed' and ended_reason = 'node_lost'))`);
    },

    loseAll(nodeId: string): Promise<unknown> {
      const { from, to } = replayLife.move('lost');
      return db.rows(sql`update replays set state = ${to}, ended_reason = 'node_lost', finished_at = coalesce(finished_at, now())
        where node_id = ${nodeId} and state = any (${from})`);
    },

    async idsOf(nodeId: string): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`select id from replays where node_id = ${nodeId}`);
      return rows.map(({ id }) => id);
    },

    /** Deletes replays past their retention, and answers their ids. */
    async expire(nodeId: string, days: number): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`delete from replays where node_id = ${nodeId}
        and state in ('available', 'failed') and finished_at < now() - make_interval(days => ${days}) returning id`);
      return rows.map(({ id }) => id);
    },
  };
}
