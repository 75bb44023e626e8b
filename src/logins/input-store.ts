import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import type { RunRow } from './run-store.ts';

export type LockedRun = Pick<RunRow, 'id' | 'connection_id' | 'status' | 'step' | 'state' | 'revision' | 'expires_at'>;

/** Every query on `auth_inputs`. */
export function inputStore(db: Db) {
  return {
    /** Submits wait for each other: only one may answer what a page asks. */
    lock(id: string): Promise<LockedRun | undefined> {
      return db.row(sql`select id, connection_id, status, step, state, revision, expires_at
        from auth_runs where id = ${id} for update`);
    },

    /** The same for all logins of a connection: their submits and their ends wait until the transaction ends. */
    async lockAllOf(connectionId: string): Promise<void> {
      await db.rows(
        sql`select id from auth_runs where connection_id = ${connectionId} and status = 'IN_PROGRESS' for update`,
      );
    },

    async waitingInputs(runId: string, isCode: boolean): Promise<number> {
      const row = await db.row<{ count: number }>(
        sql`select count(*)::integer as count from auth_inputs where run_id = ${runId} and is_code = ${isCode}`,
      );
      return row?.count ?? 0;
    },

    async addInput(runId: string, isCode: boolean): Promise<string> {
      const row = await db.row<{ id: string }>(
        sql`insert into auth_inputs (run_id, is_code) values (${runId}, ${isCode}) returning id`,
      );
      return row!.id;
    },

    takeInput(runId: string, codes: boolean): Promise<{ id: string; is_code: boolean } | undefined> {
      return db.row(sql`delete from auth_inputs where id = (select id from auth_inputs
          where run_id = ${runId} and (${codes} or not is_code) order by id limit 1 for update skip locked)
        returning id, is_code`);
    },

    async inputsOfConnection(connectionId: string): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`delete from auth_inputs
        where run_id in (select id from auth_runs where connection_id = ${connectionId}) returning id`);
      return rows.map(({ id }) => id);
    },

    async inputsOf(runIds: string[]): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(
        sql`delete from auth_inputs where run_id = any (${runIds}) returning id`,
      );
      return rows.map(({ id }) => id);
    },
  };
}
