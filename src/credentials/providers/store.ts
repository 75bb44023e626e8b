import type { Db } from '../../store/db.ts';
import { sql } from '../../store/sql.ts';
import type { ProviderList, ProviderType } from './schema.ts';

export interface ProviderRow {
  id: string;
  provider_type: ProviderType;
  name: string;
  enabled: boolean;
  priority: number;
  cache_ttl_seconds: number;
  server_url: string | null;
  ca_bundle: string | null;
  namespace: string | null;
  mounts: string[] | null;
  /** The ids of the projects that may use it, or `*` alone for all. */
  projects: string[];
  /** Names of fields that logins may type besides those of every login. */
  fields: string[];
  created_at: Date;
  updated_at: Date;
  /** Another text after every change; finer than the dates. */
  revision: string;
}

export type NewProvider = Omit<ProviderRow, 'created_at' | 'updated_at' | 'revision'>;

export type ProviderStore = ReturnType<typeof providerStore>;

/** Every query on `credential_providers`. */
export function providerStore(db: Db) {
  return {
    async insert(row: NewProvider): Promise<ProviderRow> {
      const inserted = await db.row<ProviderRow>(sql`insert into credential_providers
          (id, provider_type, name, enabled, priority, cache_ttl_seconds, server_url, ca_bundle, namespace, mounts, projects, fields)
        values (${row.id}, ${row.provider_type}, ${row.name}, ${row.enabled}, ${row.priority}, ${row.cache_ttl_seconds},
          ${row.server_url}, ${row.ca_bundle}, ${row.namespace}, ${row.mounts}, ${row.projects}, ${row.fields})
        returning *, updated_at::text as revision`);
      return inserted!;
    },

    find(id: string): Promise<ProviderRow | undefined> {
      return db.row(sql`select *, updated_at::text as revision from credential_providers where id = ${id}`);
    },

    /** An id takes precedence over an equal name. */
    findByIdOrName(idOrName: string): Promise<ProviderRow | undefined> {
      return db.row(sql`select *, updated_at::text as revision from credential_providers
        where id = ${idOrName} or name = ${idOrName} order by id = ${idOrName} desc limit 1`);
    },

    lock(id: string): Promise<ProviderRow | undefined> {
      return db.row(sql`select *, updated_at::text as revision from credential_providers where id = ${id} for update`);
    },

    /** `projectId`: only those that this project may use. */
    list(filter: ProviderList, projectId: string | null): Promise<ProviderRow[]> {
      const { limit, offset } = filter;
      const query = filter.query ?? null;
      return db.rows(sql`select *, updated_at::text as revision from credential_providers
        where (${query}::text is null or id = ${query}
            or strpos(lower(name collate "und-x-icu"), lower(${query} collate "und-x-icu")) > 0)
          and (${projectId}::text is null or projects && array['*', ${projectId}])
        order by created_at, id limit ${limit + 1} offset ${offset}`);
    },

    /** Those that a project may use, in the order in which they are asked. */
    enabled(projectId: string): Promise<ProviderRow[]> {
      return db.rows(sql`select *, updated_at::text as revision from credential_providers
        where enabled and projects && array['*', ${projectId}] order by priority, created_at, id`);
    },

    change(row: NewProvider): Promise<ProviderRow | undefined> {
      return db.row(sql`update credential_providers set name = ${row.name}, enabled = ${row.enabled},
          priority = ${row.priority}, cache_ttl_seconds = ${row.cache_ttl_seconds}, server_url = ${row.server_url},
          ca_bundle = ${row.ca_bundle}, namespace = ${row.namespace}, mounts = ${row.mounts}, projects = ${row.projects}, fields = ${row.fields},
          updated_at = clock_timestamp()
        where id = ${row.id} returning *, updated_at::text as revision`);
    },

    async remove(id: string): Promise<boolean> {
      return (await db.row(sql`delete from credential_providers where id = ${id} returning id`)) !== undefined;
    },
  };
}
