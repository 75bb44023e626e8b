import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import { cutPage, mostPageBytes, type Cut } from '../store/pages.ts';
import type { AppList } from './schema.ts';

export interface AppRow {
  id: string;
  project_id: string;
  app_name: string;
  version: string;
  deployment_id: string;
  actions: { name: string }[];
  region: string;
  env_names: string[];
}

/** How much of the apps of a deployment is read at once, beside the last. A reader of events may keep it for long. */
const bytesAtOnce = 32 * 1024;

/**
 * A row of a list. The names of variables are the same for all apps of a deployment, and 5 MB for a hundred apps, so one row of each has
 * them.
 */
type Listed = Omit<AppRow, 'env_names'> & { env_names: string[] | null };

function withNames(rows: readonly Listed[]): AppRow[] {
  const names = new Map<string, string[]>();
  for (const { deployment_id: id, env_names: found } of rows) if (found) names.set(id, found);
  return rows.map((row) => ({ ...row, env_names: names.get(row.deployment_id) ?? [] }));
}

/** Every query on the apps that deployments serve. */
export function appStore(db: Db) {
  return {
    /** Serialises what decides which deployment has an app, until the transaction ends. */
    async lock(projectId: string): Promise<void> {
      await db.rows(sql`select pg_advisory_xact_lock(hashtextextended('corral apps of ' || ${projectId}, 0))`);
    },

    find(projectId: string, name: string, version: string): Promise<AppRow | undefined> {
      return db.row(sql`select a.*, d.region, d.env_names from apps a join deployments d on d.id = a.deployment_id
        where a.project_id = ${projectId} and a.app_name = ${name} and a.version = ${version}`);
    },

    /** Some of the apps of a deployment whose names follow; none when there are none. */
    async of(deploymentId: string, after = ''): Promise<AppRow[]> {
      return withNames(
        await db.rows<Listed>(sql`select a.*, d.region,
          case when row_number() over (order by a.app_name) = 1 then to_jsonb(d.env_names) end as env_names
        from (select *, sum(octet_length(actions::text)) over (order by app_name) - octet_length(actions::text) as before
          from apps where deployment_id = ${deploymentId} and app_name > ${after}) a
          join deployments d on d.id = a.deployment_id
        where a.before < ${bytesAtOnce} order by a.app_name`),
      );
    },

    /** A page, cut where it has many bytes. */
    async list(projectId: string, filter: AppList): Promise<Cut<AppRow>> {
      const { app_name: app = null, version = null, query = null } = filter;
      const rows = await db.page<Listed & { of_page: string }>(
        projectId,
        sql`select c.id, c.project_id, c.app_name, c.version, c.deployment_id, c.actions, c.of_page, d.region,
          case when row_number() over (partition by c.deployment_id order by c.created_at desc, c.id) = 1
            then to_jsonb(d.env_names) end as env_names
        from (
        select page.*, count(*) over () as of_page, sum(bytes) over (order by created_at desc, id) - bytes as before from (
        select a.*, octet_length(a.actions::text) + octet_length(d.env_names::text) as bytes
        from apps a join deployments d on d.id = a.deployment_id
        where a.project_id = ${projectId} and (${app}::text is null or a.app_name = ${app})
          and (${version}::text is null or a.version = ${version})
          and (${query}::text is null or position(lower(${query}) in lower(a.app_name)) > 0)
        order by a.created_at desc, a.id limit ${filter.limit + 1} offset ${filter.offset}) as page) as c
        join deployments d on d.id = c.deployment_id
        where c.before < ${mostPageBytes} order by c.created_at desc, c.id`,
      );
      const { cut } = cutPage(rows);
      return { rows: withNames(rows), cut };
    },

    /** Assigns an app to a deployment. */
    async give(app: Omit<AppRow, 'region' | 'env_names'>): Promise<void> {
      const { id, project_id, app_name, version, deployment_id, actions } = app;
      await db.rows(sql`insert into apps (id, project_id, app_name, version, deployment_id, actions)
        values (${id}, ${project_id}, ${app_name}, ${version}, ${deployment_id}, ${JSON.stringify(actions)}::jsonb)
        on conflict (project_id, app_name, version) do update set id = excluded.id,
          deployment_id = excluded.deployment_id, actions = excluded.actions, created_at = now()`);
      await db.rows(sql`insert into deployment_apps (deployment_id, app_name) values (${deployment_id}, ${app_name})
        on conflict do nothing`);
    },

    async removeOf(deploymentId: string): Promise<void> {
      await db.rows(sql`delete from apps where deployment_id = ${deploymentId}`);
    },
  };
}
