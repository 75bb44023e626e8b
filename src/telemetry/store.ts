import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import type { Chunk } from './chunks.ts';

/** A chunk with its session and project. */
export interface OwnedChunk extends Chunk {
  sessionId: string;
  projectId: string;
  /** Events of which a part is to come: the last chunk of a session that runs, and unseen until the session is lost with its node. */
  draft?: boolean;
}

export interface ChunkRow {
  /** bigints, which arrive as text. */
  first_seq: string;
  last_seq: string;
  packed: Buffer;
}

/** The chunks of a session that can have matching events. */
export interface ChunkFilter {
  sessionId: string;
  fromUs: number;
  untilUs: number;
  mask: number;
}

export type TelemetryStore = ReturnType<typeof telemetryStore>;

/** Every query on telemetry_chunks, but for those that settle lost sessions (sessions/store.ts) and forget old ones (store/history.ts). */
export function telemetryStore(db: Db) {
  return {
    /**
     * All or none. A chunk that is there already is left as it is: a write with an unknown outcome is repeated. The drafts of these
     * sessions are removed before: the new chunks have what became of them.
     */
    insert(chunks: readonly OwnedChunk[], undrafted: readonly string[] = []): Promise<void> {
      return db.transaction(async (tx) => {
        if (undrafted.length > 0)
          await tx.rows(sql`delete from telemetry_chunks where session_id = any (${undrafted}) and draft`);
        for (const chunk of chunks)
          await tx.rows(sql`insert into telemetry_chunks
              (session_id, first_seq, last_seq, project_id, from_us, to_us, categories, bytes, packed, draft)
            values (${chunk.sessionId}, ${chunk.firstSeq}, ${chunk.lastSeq}, ${chunk.projectId}, ${chunk.fromUs}, ${chunk.toUs},
              ${chunk.mask}, ${chunk.packed.length}, ${chunk.packed}, ${chunk.draft ?? false})
            on conflict (session_id, last_seq) do nothing`);
      });
    },

    /** Puts one chunk in the place of those that it was merged from. False: some of those have been removed, and stay so. */
    replace(merged: OwnedChunk, count: number): Promise<boolean> {
      return db.transaction(async (tx) => {
        const { sessionId, firstSeq, lastSeq } = merged;
        const gone = await tx.rows(sql`select from telemetry_chunks
          where session_id = ${sessionId} and last_seq between ${firstSeq} and ${lastSeq} for update`);
        if (gone.length !== count) return false;
        await tx.rows(sql`delete from telemetry_chunks
          where session_id = ${sessionId} and last_seq between ${firstSeq} and ${lastSeq}`);
        await telemetryStore(tx).insert([merged]);
        return true;
      });
    },

    /** Chunks with events after `seq`, the oldest first. */
    after({ sessionId, fromUs, untilUs, mask }: ChunkFilter, seq: number, limit: number): Promise<ChunkRow[]> {
      return db.rows(sql`select first_seq, last_seq, packed from telemetry_chunks
        where session_id = ${sessionId} and last_seq > ${seq} and to_us >= ${fromUs} and from_us < ${untilUs}
          and categories & ${mask}::integer <> 0 and not draft
        order by last_seq limit ${limit}`);
    },

    /** Chunks with events before `seq`, the newest first. */
    before({ sessionId, fromUs, untilUs, mask }: ChunkFilter, seq: number, limit: number): Promise<ChunkRow[]> {
      return db.rows(sql`select first_seq, last_seq, packed from telemetry_chunks
        where session_id = ${sessionId} and first_seq < ${seq} and to_us >= ${fromUs} and from_us < ${untilUs}
          and categories & ${mask}::integer <> 0 and not draft
        order by first_seq desc limit ${limit}`);
    },

    /** Removes the oldest chunks of a session until the rest fits. Resolves with the rest. */
    async trimSession(sessionId: string, mostBytes: number): Promise<number> {
      const row = await db.row<{ left: string }>(sql`with sized as (
          select last_seq, bytes, sum(bytes) over (order by last_seq desc) as kept from telemetry_chunks where session_id = ${sessionId}
        ), gone as (
          delete from telemetry_chunks c using sized s
          where c.session_id = ${sessionId} and c.last_seq = s.last_seq and s.kept > ${mostBytes} returning 1
        )
        select coalesce(sum(bytes) filter (where kept <= ${mostBytes}), 0) as left, (select count(*) from gone) from sized`);
      return Number(row?.left ?? 0);
    },

    async projectBytes(projectId: string): Promise<number> {
      const row = await db.row<{ sum: string | null }>(
        sql`select sum(bytes) from telemetry_chunks where project_id = ${projectId}`,
      );
      return Number(row?.sum ?? 0);
    },

    /** Removes the oldest chunks of a project until the rest fits. */
    async trimProject(projectId: string, mostBytes: number): Promise<void> {
      await db.rows(sql`with sized as (
          select session_id, last_seq, sum(bytes) over (order by written_at desc, session_id, last_seq desc) as kept
          from telemetry_chunks where project_id = ${projectId}
        )
        delete from telemetry_chunks c using sized s
        where c.session_id = s.session_id and c.last_seq = s.last_seq and s.kept > ${mostBytes}`);
    },

    /** Some at a time, so that no statement locks many rows for long. Resolves with how many were removed. */
    async removeOlderThan(days: number, limit: number): Promise<number> {
      const rows = await db.rows(sql`delete from telemetry_chunks where (session_id, last_seq) in (
          select session_id, last_seq from telemetry_chunks
          where written_at < now() - make_interval(days => ${days}::integer) limit ${limit}) returning 1`);
      return rows.length;
    },
  };
}
