import { sql, type Sql } from '../../src/store/sql.ts';

type Ask = <R>(query: Sql) => Promise<R[]>;

/**
 * Logs faults with triggers in the database, which see brief faults of all nodes: a lease that replaces another, a lease on a browser that
 * has left its pool, and a waiter that is served before an earlier one.
 */
export async function logLeases(ask: Ask): Promise<() => Promise<string[]>> {
  await ask(sql`create table if not exists lease_faults (fault text not null)`);
  await ask(sql`create or replace function watch_leases() returns trigger language plpgsql as $$
    begin
      if old.lease_id is not null and new.lease_id is not null and new.lease_id <> old.lease_id then
        insert into corral.lease_faults values (new.id || ' went from ' || old.lease_id || ' to ' || new.lease_id);
      end if;
      if old.deleted_at is not null and new.lease_id is distinct from old.lease_id and new.lease_id is not null then
        insert into corral.lease_faults values (new.id || ' was lent after it had left its pool');
      end if;
      return null;
    end $$`);
  // A stable function sees what the statement that serves sees. Who joins after that, also at a place that it had before, is not passed over.
  await ask(sql`create or replace function passed_over(pool text, at bigint) returns boolean language plpgsql stable as $$
    declare
      leases text;
    begin
      select string_agg(lease_id, ',') into leases from corral.pool_waiters
        where pool_id = pool and session_id is null and place < at;
      perform set_config('corral.passed_over', coalesce(leases, ''), true);
      return leases is not null;
    end $$`);
  // Of those, a concurrent statement may have served some, for which this one has waited.
  await ask(sql`create or replace function watch_line() returns trigger language plpgsql as $$
    begin
      if exists (select from corral.pool_waiters where session_id is null and place < new.place
          and lease_id = any (string_to_array(current_setting('corral.passed_over'), ','))) then
        insert into corral.lease_faults values (new.lease_id || ' was served out of turn');
      end if;
      return null;
    end $$`);
  await ask(
    sql`create or replace trigger watch_leases after update on sessions for each row execute function watch_leases()`,
  );
  await ask(
    sql`create or replace trigger watch_line after update on pool_waiters for each row
      when (old.session_id is null and new.session_id is not null and passed_over(new.pool_id, new.place)) execute function watch_line()`,
  );
  return async () => (await ask<{ fault: string }>(sql`select fault from lease_faults`)).map(({ fault }) => fault);
}
