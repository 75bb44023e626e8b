import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import type { ApiKeyList, ProjectList } from './schema.ts';

export interface ProjectRow {
  id: string;
  name: string;
  status: 'active' | 'archived';
  is_default: boolean;
  max_concurrent_sessions: number | null;
  max_concurrent_invocations: number | null;
  created_at: Date;
  updated_at: Date;
}

export interface ApiKeyRow {
  id: string;
  name: string;
  hash: Buffer;
  masked_key: string;
  project_id: string | null;
  project_name: string | null;
  /** Whether the key's project is active; true for keys of the whole organisation. */
  project_active: boolean;
  created_by: string;
  created_by_name: string | null;
  created_at: Date;
  expires_at: Date | null;
  deleted_at: Date | null;
  /** The key of something that the service runs; no request lists it. */
  hidden: boolean;
}

export type NewApiKey = Pick<
  ApiKeyRow,
  'id' | 'name' | 'hash' | 'masked_key' | 'project_id' | 'created_by' | 'created_by_name'
> & {
  lookup: string;
  days_to_expire: number | null;
  /** The latest time of expiry. */
  not_after: Date | null;
  hidden?: boolean;
};

/** Every query on projects, limits and keys. `scope` is the one project a caller may see; null for all. */
export const orgStore = (db: Db) => ({ ...projectsAndLimits(db), ...apiKeys(db) });

function projectsAndLimits(db: Db) {
  return {
    insertProject(id: string, name: string, isDefault = false): Promise<ProjectRow | undefined> {
      return db.row(sql`insert into projects (id, name, is_default) values (${id}, ${name}, ${isDefault}) returning *`);
    },

    /** On the first start; of several nodes that start at once, one creates it. */
    async ensureDefaultProject(id: string): Promise<void> {
      await db.rows(
        sql`insert into projects (id, name, is_default) values (${id}, 'Default', true) on conflict do nothing`,
      );
    },

    findProject(id: string): Promise<ProjectRow | undefined> {
      return db.row(sql`select * from projects where id = ${id} and deleted_at is null`);
    },

    /** An id takes precedence over an equal name. */
    findProjectByIdOrName(idOrName: string): Promise<ProjectRow | undefined> {
      return db.row(sql`select * from projects where (id = ${idOrName} or name = ${idOrName}) and deleted_at is null
        order by id = ${idOrName} desc limit 1`);
    },

    defaultProject(): Promise<ProjectRow | undefined> {
      return db.row(sql`select * from projects where is_default`);
    },

    listProjects(filter: ProjectList, scope: string | null): Promise<ProjectRow[]> {
      const { limit, offset } = filter;
      const [query, name] = [filter.query ?? null, filter.name ?? null];
      return db.rows(sql`select * from projects
        where deleted_at is null
          and (${scope}::text is null or id = ${scope})
          and (${name}::text is null or name = ${name})
          and (${query}::text is null or id = ${query}
            or strpos(lower(name collate "und-x-icu"), lower(${query} collate "und-x-icu")) > 0)
        order by created_at, id limit ${limit + 1} offset ${offset}`);
    },

    updateProject(
      id: string,
      name: string | null,
      status: ProjectRow['status'] | null,
    ): Promise<ProjectRow | undefined> {
      return db.row(sql`update projects set name = coalesce(${name}, name), status = coalesce(${status}, status), updated_at = now()
        where id = ${id} and deleted_at is null returning *`);
    },

    /** Taken before a project is deactivated, so that the last two projects cannot both be deactivated at once. */
    async lockProjects(): Promise<ProjectRow[]> {
      return db.rows(sql`select * from projects where deleted_at is null and status = 'active' order by id for update`);
    },

    async deleteProject(id: string): Promise<void> {
      await db.rows(
        sql`update projects set deleted_at = now(), updated_at = now() where id = ${id} and deleted_at is null`,
      );
      await db.rows(sql`update api_keys set deleted_at = now() where project_id = ${id} and deleted_at is null`);
    },

    updateLimits(
      id: string,
      sessions: number | null | undefined,
      invocations: number | null | undefined,
    ): Promise<ProjectRow | undefined> {
      return db.row(sql`update projects set
          max_concurrent_sessions = case when ${sessions === undefined} then max_concurrent_sessions else ${sessions ?? null}::integer end,
          max_concurrent_invocations = case when ${invocations === undefined} then max_concurrent_invocations else ${invocations ?? null}::integer end,
          updated_at = now()
        where id = ${id} and deleted_at is null returning *`);
    },

    async orgDefaultCap(): Promise<number | null> {
      const row = await db.row<{ cap: number | null }>(
        sql`select default_project_max_concurrent_sessions as cap from org_limits`,
      );
      return row?.cap ?? null;
    },

    async setOrgDefaultCap(cap: number | null): Promise<void> {
      await db.rows(sql`update org_limits set default_project_max_concurrent_sessions = ${cap}`);
    },
  };
}

function apiKeys(db: Db) {
  return {
    async insertKey(key: NewApiKey): Promise<void> {
      await db.rows(sql`insert into api_keys (id, name, hash, lookup, masked_key, project_id, created_by, created_by_name, hidden, expires_at)
        values (${key.id}, ${key.name}, ${key.hash}, ${key.lookup}, ${key.masked_key}, ${key.project_id}, ${key.created_by},
          ${key.created_by_name}, ${key.hidden ?? false}, least(now() + make_interval(days => ${key.days_to_expire}::integer), ${key.not_after}::timestamptz))`);
    },

    /** How many keys of a project are valid, without hidden ones. */
    async countKeys(projectId: string): Promise<number> {
      const row = await db.row<{ count: number }>(sql`select count(*)::integer as count from api_keys
        where project_id = ${projectId} and not hidden and deleted_at is null and (expires_at is null or expires_at > now())`);
      return row?.count ?? 0;
    },

    /** The lookups of all valid keys. */
    async keyLookups(): Promise<Set<string>> {
      const rows = await db.rows<{ lookup: string }>(sql`select lookup from api_keys
        where deleted_at is null and (expires_at is null or expires_at > now())`);
      return new Set(rows.map(({ lookup }) => lookup));
    },

    async anyKey(): Promise<boolean> {
      return (await db.row(sql`select 1 from api_keys limit 1`)) !== undefined;
    },

    findKeyByLookup(lookup: string): Promise<ApiKeyRow | undefined> {
      return db.row(sql`select k.*, p.name as project_name, (k.project_id is null or (p.status = 'active' and p.deleted_at is null)) as project_active
        from api_keys k left join projects p on p.id = k.project_id where k.lookup = ${lookup}`);
    },

    findKey(id: string, scope: string | null): Promise<ApiKeyRow | undefined> {
      return db.row(sql`select k.*, p.name as project_name from api_keys k left join projects p on p.id = k.project_id
        where k.id = ${id} and (${scope}::text is null or k.project_id = ${scope})`);
    },

    listKeys(filter: ApiKeyList, scope: string | null): Promise<ApiKeyRow[]> {
      const { limit, offset, sort_by, sort_direction } = filter;
      const [query, name] = [filter.query ?? null, filter.name ?? null];
      const status = filter.include_deleted ? 'all' : filter.status;
      const order = `${sort_by} ${sort_direction}`;
      return db.rows(sql`select k.*, p.name as project_name from api_keys k left join projects p on p.id = k.project_id
        where not k.hidden and (${scope}::text is null or k.project_id = ${scope})
          and (${status} = 'all' or (${status} = 'deleted') = (k.deleted_at is not null))
          and (${name}::text is null or k.name = ${name})
          and (${query}::text is null or k.id = ${query}
            or strpos(lower(k.name collate "und-x-icu"), lower(${query} collate "und-x-icu")) > 0)
        order by
          case when ${order} = 'created_at asc' then k.created_at end asc,
          case when ${order} = 'created_at desc' then k.created_at end desc,
          case when ${order} = 'name asc' then k.name end asc,
          case when ${order} = 'name desc' then k.name end desc,
          case when ${order} = 'expires_at asc' then k.expires_at end asc nulls last,
          case when ${order} = 'expires_at desc' then k.expires_at end desc nulls last,
          k.id
        limit ${limit + 1} offset ${offset}`);
    },

    async renameKey(id: string, name: string): Promise<void> {
      await db.rows(sql`update api_keys set name = ${name} where id = ${id} and deleted_at is null`);
    },

    async deleteKey(id: string): Promise<boolean> {
      return (
        (await db.row(
          sql`update api_keys set deleted_at = now() where id = ${id} and deleted_at is null returning id`,
        )) !== undefined
      );
    },

    /** Never extends the life of a key. */
    async endKeyInDays(id: string, days: number): Promise<void> {
      await db.rows(
        sql`update api_keys set expires_at = least(expires_at, now() + make_interval(days => ${days}::integer)) where id = ${id}`,
      );
    },
  };
}
