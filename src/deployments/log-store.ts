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
/** What one reading returns, beside its last line. A line may have 64 KiB, and each reader of events holds what it has read. */
const mostBytes = 256 * 1024;

/** Every query on the lines that builds and invocations printed. */
export function logStore(db: Db) {
  return {
    async add(owner: string, lines: readonly { at: Date; message: string }[]): Promise<void> {
      await db.rows(sql`with added as (
          insert into run_logs (owner, at, message)
          select ${owner}, at, message from unnest(${lines.map(({ at }) => at)}::timestamptz[], ${lines.map(({ message }) => message)}::text[])
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

    async removeOlderThan(days: number): Promise<void> {
      for (let gone = atOnce; gone === atOnce;)
        gone = (
          await db.rows(sql`delete from run_logs where id in (select id from run_logs
            where at < now() - make_interval(days => ${days}::integer) limit ${atOnce}) returning 1`)
        ).length;
    },
  };
}
