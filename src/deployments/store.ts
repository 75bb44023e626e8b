import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import { lineBytes } from './log-store.ts';
import { cutPage, mostPageBytes, type Cut } from '../store/pages.ts';
import type { DeploymentList } from './schema.ts';
import { deploymentLife, type DeploymentEvent, type DeploymentStatus } from './state.ts';

export interface DeploymentRow {
  id: string;
  project_id: string;
  status: DeploymentStatus;
  status_reason: string | null;
  version: string;
  region: string;
  force: boolean;
  entrypoint: string;
  entry: string | null;
  env_names: string[];
  source_type: 'file' | 'github';
  source_url: string | null;
  source_ref: string | null;
  source_path: string | null;
  source_checksum: string | null;
  key_id: string | null;
  node_id: string | null;
  attempts: number;
  replaced: boolean;
  created_at: Date;
  updated_at: Date;
}

export type NewDeployment = Pick<
  DeploymentRow,
  | 'id'
  | 'project_id'
  | 'version'
  | 'region'
  | 'force'
  | 'entrypoint'
  | 'env_names'
  | 'source_type'
  | 'source_url'
  | 'source_ref'
  | 'source_path'
  | 'source_checksum'
> & { source_bytes: number };

export type FileKind = 'source' | 'build';
export type DeploymentStore = ReturnType<typeof deploymentStore>;

/** Every query on deployments and their files. */
export function deploymentStore(db: Db) {
  return {
    ...filesOf(db),
    ...queueOf(db),

    async insert(row: NewDeployment): Promise<DeploymentRow> {
      const made =
        await db.row<DeploymentRow>(sql`insert into deployments (id, project_id, version, region, force, entrypoint, env_names,
          source_type, source_url, source_ref, source_path, source_checksum, source_bytes)
        values (${row.id}, ${row.project_id}, ${row.version}, ${row.region}, ${row.force}, ${row.entrypoint}, ${row.env_names},
          ${row.source_type}, ${row.source_url}, ${row.source_ref}, ${row.source_path}, ${row.source_checksum}, ${row.source_bytes})
        returning *`);
      return made!;
    },

    find(id: string): Promise<DeploymentRow | undefined> {
      return db.row(sql`select * from deployments where id = ${id}`);
    },

    findIn(projectId: string, id: string): Promise<DeploymentRow | undefined> {
      return db.row(sql`select * from deployments where project_id = ${projectId} and id = ${id}`);
    },

    /** A page, cut where it has many bytes. */
    async list(projectId: string, filter: DeploymentList): Promise<Cut<DeploymentRow>> {
      const { app_name: app = null, app_version: version = null, query = null } = filter;
      const rows = await db.page<DeploymentRow & { of_page: string }>(
        projectId,
        sql`select * from (
        select page.*, count(*) over () as of_page, sum(bytes) over (order by created_at desc, id) - bytes as before from (
        select d.*, octet_length(d.env_names::text) + coalesce(octet_length(d.status_reason), 0) as bytes from deployments d where d.project_id = ${projectId}
        and (${app}::text is null or exists (select from deployment_apps a where a.deployment_id = d.id and a.app_name = ${app}))
        and (${version}::text is null or d.version = ${version})
        and (${query}::text is null or d.id = ${query} or exists (select from deployment_apps a where a.deployment_id = d.id
          and position(lower(${query}) in lower(a.app_name)) > 0))
        order by d.created_at desc, d.id limit ${filter.limit + 1} offset ${filter.offset}) as page) as counted
        where before < ${mostPageBytes} order by created_at desc, id`,
      );
      return cutPage(rows);
    },

    /** Moves a deployment along its life. Undefined: it was no longer in a state that the event leaves. */
    async apply(
      id: string,
      event: DeploymentEvent,
      changes: { reason?: string | null; entry?: string; keyId?: string } = {},
    ): Promise<DeploymentRow | undefined> {
      const { from, to } = deploymentLife.move(event);
      return db.row<DeploymentRow>(sql`with moved as (
          update deployments set status = ${to}, updated_at = now(), node_id = null,
            status_reason = ${changes.reason ?? null}, entry = coalesce(${changes.entry ?? null}, entry),
            key_id = coalesce(${changes.keyId ?? null}, key_id)
          where id = ${id} and status = any (${from}) returning *)
        select moved.*, pg_notify('corral_runs', 'state ' || moved.id)::text from moved`);
    },

    /**
     * A queued deployment for this node to build: the oldest of the project with the earliest last turn, so that no project's queue keeps
     * the others waiting. Rows that another node is taking are skipped. `not`: projects that have to wait.
     */
    claim(nodeId: string, not: string[] = []): Promise<DeploymentRow | undefined> {
      const { from, to } = deploymentLife.move('build_started');
      return db.row<DeploymentRow>(sql`with turns as (
          select project_id, max(updated_at) as last from deployments
          where status <> 'queued' and project_id in (select project_id from deployments where status = 'queued') group by 1),
        taken as (
          update deployments set status = ${to}, updated_at = now(), node_id = ${nodeId}, attempts = attempts + 1
          where id = (select d.id from deployments d left join turns on turns.project_id = d.project_id where d.status = 'queued'
              and d.project_id <> all (${not}::text[])
            order by turns.last nulls first, d.created_at limit 1 for update of d skip locked)
            and status = any (${from})
          returning *)
        select taken.*, pg_notify('corral_runs', 'state ' || taken.id)::text from taken`);
    },

    /** Builds of a lost node return to the queue; a build that was started too often has failed. */
    async releaseBuilds(nodeId: string, mostAttempts: number): Promise<string[]> {
      const { from, to } = deploymentLife.move('build_lost');
      const failed = deploymentLife.move('build_failed').to;
      const rows = await db.rows<{ id: string }>(sql`update deployments set updated_at = now(), node_id = null,
          log_bytes = (select coalesce(sum(octet_length(message) + ${lineBytes}::integer), 0) from run_logs where owner = deployments.id),
          status = case when attempts >= ${mostAttempts} then ${failed} else ${to} end,
          status_reason = case when attempts >= ${mostAttempts} then 'The service ended while it built this, several times. Deploy it again.' end
        where node_id = ${nodeId} and status = 'in_progress' and status = any (${from}) returning id`);
      return rows.map(({ id }) => id);
    },

    /** Statuses, by id, of those that exist. */
    async statuses(ids: string[]): Promise<Map<string, DeploymentStatus>> {
      const rows = await db.rows<{ id: string; status: DeploymentStatus }>(
        sql`select id, status from deployments where id = any(${ids}::text[])`,
      );
      return new Map(rows.map(({ id, status }) => [id, status]));
    },

    tell(message: string): Promise<unknown> {
      return db.rows(sql`select pg_notify('corral_runs', ${message})`);
    },

    /** The key was removed. */
    async dropKey(id: string): Promise<void> {
      await db.rows(sql`update deployments set key_id = null where id = ${id} and key_id is not null`);
    },

    /** Those that have ended within these days and still have a key, sealed values or files. */
    untidy(days: number): Promise<Pick<DeploymentRow, 'id' | 'key_id'>[]> {
      return db.rows(sql`select id, key_id from deployments d
        where status in ('stopped', 'failed') and updated_at > now() - make_interval(days => ${days}::integer)
          and (key_id is not null or exists (select from deployment_chunks c where c.deployment_id = d.id)
            or exists (select from secrets s where s.owner = d.id
              and s.kind in ('deployment env', 'deployment key', 'deployment token')))`);
    },

    /** Marks deployments among these that have no app left. Returns them. */
    async markReplaced(ids: string[]): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`update deployments d set replaced = true
        where id = any(${ids}::text[]) and status = 'running'
          and not exists (select from apps where deployment_id = d.id) returning id`);
      return rows.map(({ id }) => id);
    },

    /** Replaced deployments that nothing runs or waits on. */
    async replacedAndIdle(): Promise<DeploymentRow[]> {
      return db.rows(sql`select * from deployments d where replaced and status = 'running'
        and not exists (select from invocations i where i.deployment_id = d.id and i.status in ('queued', 'running'))`);
    },

    async ofProject(projectId: string): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`select id from deployments
        where project_id = ${projectId} and status in ('queued', 'in_progress', 'running')`);
      return rows.map(({ id }) => id);
    },

    /** Those among these projects that are not there any more, or are archived. */
    closedAmong(projectIds: string[]): Promise<{ id: string }[]> {
      return db.rows(sql`select asked.id from unnest(${projectIds}::text[]) as asked (id)
        where not exists (select from projects p where p.id = asked.id and p.status = 'active' and p.deleted_at is null)`);
    },

    /** Those of projects that were archived or deleted. */
    async ofClosedProjects(): Promise<string[]> {
      const rows = await db.rows<{
        id: string;
      }>(sql`select d.id from deployments d join projects p on p.id = d.project_id
        where d.status in ('queued', 'in_progress', 'running') and p.status <> 'active'`);
      return rows.map(({ id }) => id);
    },
  };
}

/** The source and the build of each, in pieces. */
function filesOf(db: Db) {
  return {
    async addChunk(id: string, kind: FileKind, position: number, bytes: Buffer): Promise<void> {
      await db.rows(sql`insert into deployment_chunks (deployment_id, kind, position, bytes)
        values (${id}, ${kind}, ${position}, ${bytes})`);
    },

    async chunk(id: string, kind: FileKind, position: number): Promise<Buffer | undefined> {
      const row = await db.row<{ bytes: Buffer }>(sql`select bytes from deployment_chunks
        where deployment_id = ${id} and kind = ${kind} and position = ${position}`);
      return row?.bytes;
    },

    async setBytes(id: string, bytes: number, kind: FileKind): Promise<void> {
      if (kind === 'build') await db.rows(sql`update deployments set build_bytes = ${bytes} where id = ${id}`);
      else await db.rows(sql`update deployments set source_bytes = ${bytes} where id = ${id}`);
    },

    /** The size of a build. Not set if the deployment was stopped: then it has no build. */
    async setBuilt(id: string, bytes: number): Promise<void> {
      await db.rows(sql`update deployments set build_bytes = ${bytes} where id = ${id} and status = 'in_progress'`);
    },

    async removeFiles(id: string, kind: FileKind): Promise<void> {
      await db.rows(sql`delete from deployment_chunks where deployment_id = ${id} and kind = ${kind}`);
    },
  };
}

/** What waits of a project. */
function queueOf(db: Db) {
  return {
    /** Serialises what adds to the queue of a project, until the transaction ends. */
    async lockQueue(projectId: string): Promise<void> {
      await db.rows(sql`select pg_advisory_xact_lock(hashtextextended('corral deployments of ' || ${projectId}, 0))`);
    },

    async countWaiting(projectId: string): Promise<number> {
      const row = await db.row<{ count: string }>(
        sql`select count(*) from deployments where project_id = ${projectId} and status = 'queued'`,
      );
      return Number(row?.count ?? 0);
    },
  };
}
