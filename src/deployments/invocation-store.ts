import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import { lineBytes } from './log-store.ts';
import { cutPage, mostPageBytes, type Cut } from '../store/pages.ts';
import type { InvocationList } from './schema.ts';
import { invocationLife, type InvocationStatus } from './state.ts';

export interface InvocationRow {
  id: string;
  project_id: string;
  deployment_id: string;
  app_name: string;
  version: string;
  action_name: string;
  payload: string | null;
  status: InvocationStatus;
  status_reason: string | null;
  output: string | null;
  timeout_seconds: number;
  node_id: string | null;
  created_at: Date;
  started_at: Date | null;
  finished_at: Date | null;
  /** What it takes in the database, with its log. A bigint, which arrives as text. */
  kept_bytes: string;
}

/** What the answer to its request has. Reading a payload from the database takes long, so it is read only where it is used. */
export type InvocationOutcome = Pick<InvocationRow, 'id' | 'action_name' | 'status' | 'status_reason' | 'output'>;

/** Payload and output of a row are read with it if they have so many bytes together at most. Larger ones are read by `withTexts`. */
const smallTexts = 4096;

/** A row with its texts only if they are small. `bytes`: of both. */
export type Light<R> = R & { bytes: number };

/** An invocation that was ended. */
export type EndedInvocation = Pick<InvocationRow, 'id' | 'project_id' | 'status' | 'kept_bytes'>;

type NewInvocation = Pick<
  InvocationRow,
  'id' | 'project_id' | 'deployment_id' | 'app_name' | 'version' | 'action_name' | 'payload' | 'timeout_seconds'
>;

export type InvocationStore = ReturnType<typeof invocationStore>;

/** Every query on invocations. */
export function invocationStore(db: Db) {
  return {
    async insert(row: NewInvocation): Promise<InvocationOutcome> {
      const made = await db.row<InvocationOutcome>(sql`with made as (
          insert into invocations (id, project_id, deployment_id, app_name, version, action_name, payload, timeout_seconds)
          values (${row.id}, ${row.project_id}, ${row.deployment_id}, ${row.app_name}, ${row.version}, ${row.action_name},
            ${row.payload}, ${row.timeout_seconds}) returning id, action_name, status, status_reason, output)
        select made.*, pg_notify('corral_runs', 'queue')::text from made`);
      return made!;
    },

    /** `projectId`: only if it is of that project. */
    find(id: string, projectId: string | null = null): Promise<Light<InvocationRow> | undefined> {
      return db.row(sql`select id, project_id, deployment_id, app_name, version, action_name, bytes,
          case when bytes <= ${smallTexts} then payload end as payload, case when bytes <= ${smallTexts} then output end as output,
          status, status_reason, timeout_seconds, node_id, created_at, started_at, finished_at, kept_bytes
        from (select *, coalesce(octet_length(payload), 0) + coalesce(octet_length(output), 0) as bytes from invocations
          where id = ${id} and (${projectId}::text is null or project_id = ${projectId})) as sized`);
    },

    outcomeOf(id: string): Promise<Light<InvocationOutcome> | undefined> {
      return db.row(sql`select id, action_name, status, status_reason, coalesce(octet_length(output), 0) as bytes,
          case when octet_length(output) <= ${smallTexts} then output end as output
        from invocations where id = ${id}`);
    },

    /**
     * Reads the texts that a row does not have. There are two queries: a payload and an output of the largest size in one answer of the
     * database would stop the service for 100 ms.
     */
    async withTexts<R extends { id: string; output: string | null; payload?: string | null }>(
      row: Light<R>,
    ): Promise<R> {
      if (row.bytes <= smallTexts) return row;
      const output = await db.row<R>(sql`select output from invocations where id = ${row.id}`);
      if (row.payload === undefined) return { ...row, ...output };
      const payload = await db.row<R>(sql`select payload from invocations where id = ${row.id}`);
      return { ...row, ...output, ...payload };
    },

    /** For waiting requests: a whole row may have megabytes. */
    async statusOf(id: string): Promise<InvocationStatus | undefined> {
      const row = await db.row<{ status: InvocationStatus }>(sql`select status from invocations where id = ${id}`);
      return row?.status;
    },

    /** A page, cut where it has many bytes: each row may have nine megabytes. `cut`: rows of this page were left out. */
    async list(projectId: string, filter: InvocationList, since: Date | null): Promise<Cut<Light<InvocationRow>>> {
      const { app_name: app = null, version = null, action_name: action = null, status = null } = filter;
      const { deployment_id: deployment = null, query = null } = filter;
      const rows = await db.page<Light<InvocationRow> & { of_page: string }>(
        projectId,
        sql`select id, project_id, deployment_id, app_name, version, action_name, bytes, of_page,
          case when bytes <= ${smallTexts} then payload end as payload, case when bytes <= ${smallTexts} then output end as output,
          status, status_reason, timeout_seconds, node_id, created_at, started_at, finished_at, kept_bytes
        from (
        select page.*, count(*) over () as of_page, sum(bytes) over (order by created_at desc, id) - bytes as before from (
        select *, coalesce(octet_length(payload), 0) + coalesce(octet_length(output), 0) as bytes from invocations where project_id = ${projectId}
        and (${app}::text is null or app_name = ${app}) and (${version}::text is null or version = ${version})
        and (${action}::text is null or action_name = ${action}) and (${status}::text is null or status = ${status})
        and (${deployment}::text is null or deployment_id = ${deployment})
        and (${since}::timestamptz is null or coalesce(started_at, created_at) >= ${since})
        and (${query}::text is null or id = ${query} or position(lower(${query}) in lower(app_name)) > 0
          or position(lower(${query}) in lower(action_name)) > 0)
        order by created_at desc, id limit ${filter.limit + 1} offset ${filter.offset}) as page) as counted
        where before < ${mostPageBytes} order by created_at desc, id`,
      );
      return cutPage(rows);
    },

    /** How many of a project run and wait, and the bytes that wait. */
    async counts(projectId: string): Promise<{ running: number; queued: number; bytes: number }> {
      const row = await db.row<{ running: string; queued: string; bytes: string | null }>(sql`select
          count(*) filter (where status = 'running') as running, count(*) filter (where status = 'queued') as queued,
          sum(octet_length(payload)) filter (where status = 'queued') as bytes
        from invocations where project_id = ${projectId} and status in ('queued', 'running')`);
      return { running: Number(row?.running ?? 0), queued: Number(row?.queued ?? 0), bytes: Number(row?.bytes ?? 0) };
    },

    /**
     * Takes a queued invocation that may run on this node: its project and its app run fewer than they may. The project that runs the fewest comes first, so
     * that a long queue of one does not keep the others waiting, and of a project the oldest. `not`: projects that have to wait. Claims of all nodes come one after the other,
     * since two that counted at the same time could both take the last place of a project.
     */
    claim(nodeId: string, mostOfApp: number, not: string[] = []): Promise<InvocationRow | undefined> {
      return db.transaction(async (tx) => {
        await tx.rows(sql`select pg_advisory_xact_lock(hashtextextended('corral invocations', 0))`);
        const { from, to } = invocationLife.move('claimed');
        return tx.row<InvocationRow>(sql`with busy as (
            select project_id, deployment_id, count(*) as running from invocations where status = 'running' group by 1, 2),
          of_project as (select project_id, sum(running) as running from busy group by 1),
          next as (
            select i.id from invocations i join projects p on p.id = i.project_id
              left join of_project on of_project.project_id = i.project_id
              left join busy on busy.project_id = i.project_id and busy.deployment_id = i.deployment_id
            where i.status = 'queued' and i.project_id <> all (${not}::text[])
              and coalesce(of_project.running, 0) < coalesce(p.max_concurrent_invocations, 2147483647)
              and coalesce(busy.running, 0) < ${mostOfApp}
            order by coalesce(of_project.running, 0), i.created_at, i.id limit 1 for update of i skip locked),
          taken as (
            update invocations set status = ${to}, node_id = ${nodeId}, started_at = clock_timestamp()
            where id = (select id from next) and status = any (${from}) returning *)
          select taken.*, pg_notify('corral_runs', 'begun ' || taken.id)::text from taken`);
      });
    },

    /**
     * Ends an invocation, unless it has ended. Undefined: it had. `nodeId`: only if that node still runs it. `replaced`: its deployment stops
     * with its last invocation.
     */
    finish(
      id: string,
      end: { status: 'succeeded' | 'failed'; output?: string | null; reason?: string | null },
      nodeId: string | null = null,
    ): Promise<(EndedInvocation & { replaced: boolean }) | undefined> {
      const { from, to } = invocationLife.move(end.status);
      return db.row(sql`with over as (
          update invocations set status = ${to}, output = ${end.output ?? null}, status_reason = ${end.reason ?? null},
            finished_at = clock_timestamp()
          where id = ${id} and status = any (${from}) and (${nodeId}::text is null or node_id = ${nodeId})
          returning id, project_id, status, kept_bytes, deployment_id)
        select over.*, (select replaced from deployments where id = over.deployment_id), pg_notify('corral_runs', 'state ' || over.id)::text from over`);
    },

    /** Fails all that wait for a deployment or run there. Their payloads are not read: together they may have 256 MiB. */
    failOf(deploymentId: string, reason: string): Promise<EndedInvocation[]> {
      const { from, to } = invocationLife.move('failed');
      return db.rows<EndedInvocation>(sql`with over as (
          update invocations set status = ${to}, status_reason = ${reason}, finished_at = clock_timestamp()
          where deployment_id = ${deploymentId} and status in ('queued', 'running') and status = any (${from})
          returning id, project_id, status, kept_bytes)
        select over.*, pg_notify('corral_runs', 'state ' || over.id)::text from over`);
    },

    /** Fails the invocations of a lost node: an action may have had effects, so it is not run again. The node has not counted the log. */
    failOn(nodeId: string, reason: string): Promise<EndedInvocation[]> {
      const { from, to } = invocationLife.move('node_lost');
      return db.rows<EndedInvocation>(sql`with over as (
          update invocations set status = ${to}, status_reason = ${reason}, finished_at = clock_timestamp(),
            log_bytes = (select coalesce(sum(octet_length(message) + ${lineBytes}::integer), 0) from run_logs where owner = invocations.id)
          where node_id = ${nodeId} and status = 'running' and status = any (${from})
          returning id, project_id, status, kept_bytes)
        select over.*, pg_notify('corral_runs', 'state ' || over.id)::text from over`);
    },

    /** Those that wait for the app get the deployment that has it now. */
    async moveQueue(from: string, to: string, app: string): Promise<void> {
      await db.rows(sql`update invocations set deployment_id = ${to}
        where deployment_id = ${from} and app_name = ${app} and status = 'queued'`);
    },

    /** Those among the ids that do not run any more. */
    async overAmong(ids: string[]): Promise<string[]> {
      if (ids.length === 0) return [];
      const rows = await db.rows<{ id: string }>(
        sql`select id from unnest(${ids}::text[]) as asked (id) where not exists
          (select from invocations i where i.id = asked.id and i.status in ('queued', 'running'))`,
      );
      return rows.map(({ id }) => id);
    },

    async nodesInUse(): Promise<string[]> {
      const rows = await db.rows<{
        node_id: string;
      }>(sql`select distinct node_id from invocations where status = 'running'
        union select node_id from deployments where status = 'in_progress' and node_id is not null`);
      return rows.map(({ node_id }) => node_id);
    },
  };
}
