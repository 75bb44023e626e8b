import { sql, type Sql } from '../../src/store/sql.ts';

type Ask = <R>(query: Sql) => Promise<R[]>;

/**
 * Has the database itself write down what would be wrong, whoever does it and however briefly: a lease that takes the place of
 * another, one on a browser that has left its pool, and somebody in the line who is served before those who came first.
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
  await ask(sql`create or replace function watch_line() returns trigger language plpgsql as $$
    begin
      if old.session_id is null and new.session_id is not null and exists (select from corral.pool_waiters
          where pool_id = new.pool_id and session_id is null and place < new.place) then
        insert into corral.lease_faults values (new.lease_id || ' was served out of turn');
      end if;
      return null;
    end $$`);
  await ask(
    sql`create or replace trigger watch_leases after update on sessions for each row execute function watch_leases()`,
  );
  await ask(
    sql`create or replace trigger watch_line after update on pool_waiters for each row execute function watch_line()`,
  );
  return async () => (await ask<{ fault: string }>(sql`select fault from lease_faults`)).map(({ fault }) => fault);
}
