import type { Db } from '../store/db.ts';
import { errors } from '../errors.ts';
import { storable, storableJson } from '../lib/text.ts';
import { missingReference, uniqueViolation } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import type { Explained, FlowErrorCode, FlowState } from './flow/types.ts';
import type { TimelineList } from './schema.ts';
import { loginLife, type ConnectionStatus, type FlowStatus } from './state.ts';
import type { FlowStep } from './api-enums.ts';

/** The channel on which nodes notify each other that a login has changed, has input, or is to end. */
export const loginChannel = 'corral_logins';

/** What a page asked for is of no use after the login, and is not kept with the history. */
const nothingAsked = JSON.stringify({ fields: [], choices: [] });

/** Every answer about a running login has another code, so those that were used are counted. */
const mostCodes = 200;

export interface RunRow {
  id: string;
  connection_id: string;
  profile_id: string;
  kind: 'login' | 'reauth' | 'health_check';
  status: FlowStatus | ConnectionStatus;
  step: FlowStep | null;
  previous_status: ConnectionStatus | null;
  node_id: string;
  key_id: string | null;
  session_id: string | null;
  replay_id: string | null;
  telemetry_captured: boolean;
  state: FlowState | null;
  website_error: string | null;
  error_code: FlowErrorCode | null;
  error_message: string | null;
  used_codes: string[];
  revision: number;
  started_at: Date;
  updated_at: Date;
  expires_at: Date | null;
  ended_at: Date | null;
}

/** How a login ended. */
export type EndedRun = Pick<RunRow, 'id' | 'connection_id' | 'status' | 'error_code'>;

interface NewFlow {
  id: string;
  connectionId: string;
  profileId: string;
  kind: 'login' | 'reauth';
  previousStatus: ConnectionStatus;
  nodeId: string;
  keyId: string | null;
  seconds: number;
}

export interface FlowEnd {
  status: Exclude<FlowStatus, 'IN_PROGRESS'>;
  errorCode?: FlowErrorCode | undefined;
  errorMessage?: string | undefined;
  websiteError?: string | undefined;
}

/** The event that ends a login with a status. */
const loginEnds = {
  SUCCESS: 'succeeded',
  FAILED: 'failed',
  EXPIRED: 'expired',
  CANCELED: 'canceled',
} as const satisfies Record<Exclude<FlowStatus, 'IN_PROGRESS'>, keyof typeof loginLife.events>;

interface CheckEntry {
  id: string;
  connectionId: string;
  profileId: string;
  nodeId: string;
  status: ConnectionStatus;
  previousStatus: ConnectionStatus;
  sessionId: string | null;
  startedAt: Date;
  errorCode: FlowErrorCode | null;
  errorMessage: string | null;
}

/** Of the timeline of a connection. A check every five minutes adds 100,000 a year. */
const mostEntries = 1000;

/** A text that may have parts of a page. */
const stored = (text: string | undefined) => (text === undefined ? null : storable(text));

/** Deletes what is older than the newest entries of a connection, except for its newest login. Rows that another query deletes are left to it. */
const forgetOldest = (db: Db, connectionId: string) =>
  db.rows(sql`delete from auth_runs where id in (
    select id from auth_runs
    where id in (
        select id from auth_runs where connection_id = ${connectionId} order by started_at desc, id desc offset ${mostEntries})
      and status <> 'IN_PROGRESS'
      and id is distinct from (
        select id from auth_runs where connection_id = ${connectionId} and kind <> 'health_check'
        order by started_at desc, id desc limit 1)
    for update skip locked)`);

/** Every query on `auth_runs` and `auth_inputs`. */
export function runStore(db: Db) {
  const tell = (connectionId: string, runId: string, what: 'state' | 'input' | 'cancel') =>
    db.rows(sql`select pg_notify(${loginChannel}, ${JSON.stringify({ connectionId, runId, what })})`);

  return {
    tell,

    /** Undefined: another login runs with this profile. The unique index is the lock. */
    async begin(flow: NewFlow): Promise<RunRow | undefined> {
      try {
        return await db.transaction(async (tx) => {
          const row =
            await tx.row<RunRow>(sql`insert into auth_runs (id, connection_id, profile_id, kind, status, step, previous_status,
              node_id, key_id, expires_at)
            values (${flow.id}, ${flow.connectionId}, ${flow.profileId}, ${flow.kind}, 'IN_PROGRESS', 'DISCOVERING',
              ${flow.previousStatus}, ${flow.nodeId}, ${flow.keyId}, now() + make_interval(secs => ${flow.seconds}::float8)) returning *`);
          // After the insert, which waits for a deletion of the connection: with the changes first, the two would wait for each other.
          await tx.rows(
            sql`update auth_runs set explained = null where connection_id = ${flow.connectionId} and explained is not null`,
          );
          await forgetOldest(tx, flow.connectionId);
          await runStore(tx).tell(flow.connectionId, flow.id, 'state');
          return row;
        });
      } catch (error) {
        if (uniqueViolation(error) === 'auth_runs_under_way') return undefined;
        if (missingReference(error) !== undefined) throw errors.connection_not_found({ connection: flow.connectionId }); // deleted just now
        throw error;
      }
    },

    find(id: string): Promise<RunRow | undefined> {
      return db.row(sql`select id, connection_id, profile_id, kind, status, step, previous_status, node_id, key_id, session_id, replay_id,
          telemetry_captured, state, website_error, error_code, error_message, used_codes, revision, started_at, updated_at, expires_at,
          ended_at
        from auth_runs where id = ${id}`);
    },

    /** The newest login of each connection. */
    async latest(connectionIds: string[]): Promise<Map<string, RunRow>> {
      const rows =
        await db.rows<RunRow>(sql`select distinct on (connection_id) id, connection_id, profile_id, kind, status, step,
          previous_status, node_id, key_id, session_id, replay_id, telemetry_captured, state, website_error, error_code, error_message,
          used_codes, revision, started_at, updated_at, expires_at, ended_at
        from auth_runs where connection_id = any (${connectionIds}) and kind <> 'health_check'
        order by connection_id, started_at desc, id desc`);
      return new Map(rows.map((row) => [row.connection_id, row]));
    },

    underWayWith(profileId: string): Promise<{ id: string; connection_id: string; over: boolean } | undefined> {
      return db.row(sql`select id, connection_id, expires_at <= now() as over from auth_runs
        where profile_id = ${profileId} and status = 'IN_PROGRESS'`);
    },

    async browserStarted(
      id: string,
      found: { sessionId: string; replayId: string | null; captured: boolean },
    ): Promise<boolean> {
      const row =
        await db.row<EndedRun>(sql`update auth_runs set session_id = ${found.sessionId}, replay_id = ${found.replayId},
          telemetry_captured = ${found.captured}, revision = revision + 1, updated_at = now()
        where id = ${id} and status = 'IN_PROGRESS' returning id, connection_id, status, error_code`);
      if (row) await tell(row.connection_id, id, 'state');
      return row !== undefined;
    },

    /** False: the login is over. */
    async report(id: string, state: FlowState): Promise<boolean> {
      const row =
        await db.row<EndedRun>(sql`update auth_runs set step = ${state.step}, state = ${storableJson(state)}::jsonb,
          website_error = ${stored(state.websiteError)}, revision = revision + 1, updated_at = now()
        where id = ${id} and status = 'IN_PROGRESS' returning id, connection_id, status, error_code`);
      if (row) await tell(row.connection_id, id, 'state');
      return row !== undefined;
    },

    async explain(id: string, explained: Explained[]): Promise<void> {
      await db.rows(sql`update auth_runs set explained = ${storableJson(explained)}::jsonb where id = ${id}`);
    },

    async explained(connectionId: string): Promise<{ run: RunRow; explained: Explained[] } | undefined> {
      const row = await db.row<RunRow & { explained: Explained[] | null }>(sql`select * from auth_runs
        where connection_id = ${connectionId} and kind <> 'health_check' order by started_at desc, id desc limit 1`);
      return row && { run: row, explained: row.explained ?? [] };
    },

    /** Undefined: it was over already. */
    async end(id: string, { status, errorCode, errorMessage, websiteError }: FlowEnd): Promise<EndedRun | undefined> {
      const { from, to } = loginLife.move(loginEnds[status]);
      const row = await db.row<EndedRun>(sql`update auth_runs set status = ${to},
          step = case when ${to} = 'SUCCESS' then 'COMPLETED' else step end,
          error_code = ${errorCode ?? null}, error_message = ${stored(errorMessage)},
          website_error = coalesce(${stored(websiteError)}, website_error), state = state || ${nothingAsked}::jsonb,
          revision = revision + 1, updated_at = now(), ended_at = now()
        where id = ${id} and status = any (${from}) returning id, connection_id, status, error_code`);
      if (row) await tell(row.connection_id, id, 'state');
      return row;
    },

    /** Ends the logins of a lost node. */
    endAllOf(nodeId: string, errorMessage: string): Promise<{ id: string }[]> {
      const { from, to } = loginLife.move('failed');
      return db.rows(sql`with over as (update auth_runs set status = ${to}, error_code = 'browser_error',
          error_message = ${errorMessage}, state = state || ${nothingAsked}::jsonb, revision = revision + 1, updated_at = now(),
          ended_at = now()
        where node_id = ${nodeId} and status = 'IN_PROGRESS' and status = any (${from}) returning id, connection_id)
        select id, pg_notify(${loginChannel}, json_build_object('connectionId', connection_id, 'runId', id, 'what', 'state')::text)::text
        from over`);
    },

    /** Logins that their node should have ended long ago. */
    overdue(graceSeconds: number): Promise<{ id: string }[]> {
      return db.rows(sql`select id from auth_runs
        where status = 'IN_PROGRESS' and expires_at < now() - make_interval(secs => ${graceSeconds}::float8)`);
    },

    /** Of these, the ones that are not over; and whether the hosted page of each was open lately. */
    async underWayAmong(ids: string[]): Promise<Map<string, { attended: boolean }>> {
      const rows = await db.rows<{ id: string; attended: boolean }>(sql`select id,
          coalesce(attended_at > now() - interval '40 seconds', false) as attended
        from auth_runs where id = any (${ids}) and status = 'IN_PROGRESS'`);
      return new Map(rows.map(({ id, attended }) => [id, { attended }]));
    },

    async attend(id: string): Promise<void> {
      await db.rows(sql`update auth_runs set attended_at = now() where id = ${id} and status = 'IN_PROGRESS'`);
    },

    /** Writes down a check that is done. */
    async addCheck(entry: CheckEntry): Promise<void> {
      await db.rows(sql`insert into auth_runs (id, connection_id, profile_id, kind, status, previous_status, node_id, session_id,
          started_at, ended_at, error_code, error_message)
        select ${entry.id}, id, ${entry.profileId}, 'health_check', ${entry.status}, ${entry.previousStatus}, ${entry.nodeId},
          ${entry.sessionId}, ${entry.startedAt}, now(), ${entry.errorCode}, ${entry.errorMessage}
        from auth_connections where id = ${entry.connectionId}`);
      await forgetOldest(db, entry.connectionId);
    },

    timeline(connectionId: string, { limit, offset, type }: TimelineList): Promise<RunRow[]> {
      return db.rows(sql`select id, connection_id, profile_id, kind, status, step, previous_status, node_id, key_id, session_id, replay_id,
          telemetry_captured, website_error, error_code, error_message, started_at, updated_at, expires_at, ended_at
        from auth_runs where connection_id = ${connectionId} and (${type ?? null}::text is null or kind = ${type ?? null})
        order by started_at desc, id desc limit ${limit + 1} offset ${offset}`);
    },

    /** False: the code was used before, the login is over, or more codes of it were used than people take part in a login. */
    async useCode(id: string, codeId: string): Promise<boolean> {
      const row = await db.row(sql`update auth_runs set used_codes = array_append(used_codes, ${codeId})
        where id = ${id} and status = 'IN_PROGRESS' and expires_at > now() and not ${codeId} = any (used_codes)
          and cardinality(used_codes) < ${mostCodes} returning id`);
      return row !== undefined;
    },
  };
}
