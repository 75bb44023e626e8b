import type { Db } from './db.ts';
import { sql, type Sql } from './sql.ts';

const atOnce = 1000;

/**
 * Deletes rows that ended or were deleted more than `days` days ago; returns how many. The tables of all rooms are
 * handled in one place, because they refer to each other: a row stays until nothing refers to it. A session with videos or events
 * stays until they have expired: the files of videos are deleted with their rows, and events are found by their session. Deletes in batches, so that no statement
 * locks many rows for long.
 */
export async function forgetHistory(db: Db, days: number): Promise<number> {
  let removed = 0;
  for (const step of steps(days)) {
    for (let portion = atOnce; portion === atOnce; removed += portion) portion = (await db.rows(step)).length;
  }
  return removed;
}

/** Referring tables come before the tables they refer to. */
const steps = (days: number): Sql[] => [
  sql`delete from auth_runs where id in (
    select id from auth_runs where ended_at < now() - make_interval(days => ${days}::integer) limit ${atOnce}) returning 1`,
  sql`delete from auth_connections where id in (
    select c.id from auth_connections c join profiles p on p.id = c.profile_id
    where p.deleted_at < now() - make_interval(days => ${days}::integer) limit ${atOnce}) returning 1`,
  sql`delete from invocations where id in (
    select id from invocations where finished_at < now() - make_interval(days => ${days}::integer) limit ${atOnce}) returning 1`,
  sql`delete from deployments where id in (
    select id from deployments d where updated_at < now() - make_interval(days => ${days}::integer)
      and status in ('stopped', 'failed')
      and not exists (select from apps where deployment_id = d.id)
      and not exists (select from invocations where deployment_id = d.id) limit ${atOnce}) returning 1`,
  sql`delete from sessions where id in (
    select id from sessions s where deleted_at < now() - make_interval(days => ${days}::integer)
      and state not in ('starting', 'live', 'stopping')
      and not exists (select from replays where session_id = s.id)
      and not exists (select from telemetry_chunks where session_id = s.id) limit ${atOnce}) returning 1`,
  sql`delete from pools where id in (
    select id from pools p where deleted_at < now() - make_interval(days => ${days}::integer)
      and not exists (select from sessions where pool_id = p.id)
      and not exists (select from pool_waiters where pool_id = p.id) limit ${atOnce}) returning 1`,
  sql`delete from profiles where id in (
    select id from profiles p where deleted_at < now() - make_interval(days => ${days}::integer)
      and not exists (select from sessions where profile_id = p.id)
      and not exists (select from pools where profile_id = p.id)
      and not exists (select from auth_connections where profile_id = p.id)
      and not exists (select from profile_versions where profile_id = p.id) limit ${atOnce}) returning 1`,
  sql`delete from extensions where id in (
    select id from extensions e where deleted_at < now() - make_interval(days => ${days}::integer)
      and not exists (select from extension_chunks where extension_id = e.id) limit ${atOnce}) returning 1`,
  sql`delete from proxies where id in (
    select id from proxies p where deleted_at < now() - make_interval(days => ${days}::integer)
      and not exists (select from auth_connections where proxy_id = p.id) limit ${atOnce}) returning 1`,
  sql`delete from api_keys where id in (
    select id from api_keys where deleted_at < now() - make_interval(days => ${days}::integer) limit ${atOnce}) returning 1`,
  sql`delete from projects where id in (
    select id from projects p where deleted_at < now() - make_interval(days => ${days}::integer)
      and not exists (select from sessions where project_id = p.id)
      and not exists (select from pools where project_id = p.id)
      and not exists (select from profiles where project_id = p.id)
      and not exists (select from extensions where project_id = p.id)
      and not exists (select from proxies where project_id = p.id)
      and not exists (select from auth_connections where project_id = p.id)
      and not exists (select from api_keys where project_id = p.id)
      and not exists (select from deployments where project_id = p.id)
      and not exists (select from invocations where project_id = p.id)
      and not exists (select from replays where project_id = p.id) limit ${atOnce}) returning 1`,
];
