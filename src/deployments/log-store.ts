import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';

export interface LogRow {
  /** A bigint, which arrives as text. */
  id: string;
  at: Date;
  message: string;
}

export type LogStore = ReturnType<typeof logStore>;

const atOnce = 5000;
/** What a line takes in the database beside its text: its row and its place in three indexes. Migration 0024 has the same number. */
export const lineBytes = 200;
/** What one reading returns, beside its last line. A line may have 64 KiB, and each reader of events holds what it has read. */
const mostBytes = 256 * 1024;

/** What lines take in the database. */
export const bytesOf = (lines: readonly { message: string }[]): number =>
  lines.reduce((sum, { message }) => sum + Buffer.byteLength(message) + lineBytes, 0);

/** Every query on the lines that builds and invocations printed. */
export function logStore(db: Db) {
  return {
    /**
     * The lines are one text, and not an array: the driver of the database escapes each quote in an array by itself, and 16 MiB of quotes
     * stopped the service for seconds. No line has a line break. A single empty line is no element of the array that the text becomes.
     */
    async add(owner: string, lines: readonly { at: Date; message: string }[]): Promise<void> {
      const text = lines.map(({ message }) => message).join('\n');
      await db.rows(sql`with added as (
          insert into run_logs (owner, at, message)
          select ${owner}, at, coalesce(message, '') from unnest(${lines.map(({ at }) => at)}::timestamptz[], string_to_array(${text}, chr(10)))
            with ordinality as line (at, message, place) order by place returning 1)
        select pg_notify('corral_runs', 'log ' || ${owner}) where exists (select from added)`);
    },

    /** Some of the lines that follow; none when there are none. */
    after(owner: string, id: string, since: Date | null, limit: number): Promise<LogRow[]> {
      return db.rows(sql`select id, at, message from (
          select id, at, message, sum(octet_length(message)) over (order by id) - octet_length(message) as before from (
            select id, at, message from run_logs where owner = ${owner} and id > ${id}::bigint
              and (${since}::timestamptz is null or at >= ${since}) order by id limit ${limit}) as next) as counted
        where before < ${mostBytes} order by id`);
    },

    /** Adds to what the log of an invocation or a deployment takes. */
    async count(owner: string, bytes: number): Promise<void> {
      await db.rows(sql`with invoked as (update invocations set log_bytes = log_bytes + ${bytes} where id = ${owner})
        update deployments set log_bytes = log_bytes + ${bytes} where id = ${owner}`);
    },

    /** An ended invocation has no newer lines than its end, and a deployment that runs or has ended none that are newer than its change. */
    async removeOlderThan(days: number): Promise<void> {
      const steps = [
        sql`delete from run_logs where id in (select id from run_logs
          where at < now() - make_interval(days => ${days}::integer) limit ${atOnce}) returning 1`,
        sql`update invocations set log_bytes = 0 where id in (select id from invocations
          where finished_at < now() - make_interval(days => ${days}::integer) and log_bytes > 0 limit ${atOnce}) returning 1`,
        sql`update deployments set log_bytes = 0 where id in (select id from deployments
          where updated_at < now() - make_interval(days => ${days}::integer) and status in ('running', 'stopped', 'failed')
            and log_bytes > 0 limit ${atOnce}) returning 1`,
      ];
      for (const step of steps) for (let removed = atOnce; removed === atOnce;) removed = (await db.rows(step)).length;
    },
  };
}
