import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import type { CredentialList } from './schema.ts';

export interface CredentialRow {
  id: string;
  project_id: string;
  name: string;
  domain: string;
  sso_provider: string | null;
  value_keys: string[];
  /** The names of the values that a person typed at an identity provider and not at the site. */
  provider_keys: string[];
  has_totp_secret: boolean;
  created_at: Date;
  updated_at: Date;
}

type NewCredential = Omit<CredentialRow, 'created_at' | 'updated_at'>;
type CredentialChange = Pick<
  CredentialRow,
  'id' | 'name' | 'sso_provider' | 'value_keys' | 'provider_keys' | 'has_totp_secret'
>;

/** Every query on `credentials`. */
export function credentialStore(db: Db) {
  return {
    async insert(row: NewCredential): Promise<CredentialRow> {
      const inserted =
        await db.row<CredentialRow>(sql`insert into credentials (id, project_id, name, domain, sso_provider, value_keys, provider_keys, has_totp_secret)
        values (${row.id}, ${row.project_id}, ${row.name}, ${row.domain}, ${row.sso_provider}, ${row.value_keys}, ${row.provider_keys},
          ${row.has_totp_secret})
        returning *`);
      return inserted!;
    },

    /** An id takes precedence over an equal name. */
    findByIdOrName(projectId: string, idOrName: string): Promise<CredentialRow | undefined> {
      return db.row(sql`select * from credentials
        where project_id = ${projectId} and (id = ${idOrName} or name = ${idOrName})
        order by id = ${idOrName} desc limit 1`);
    },

    find(projectId: string, id: string): Promise<CredentialRow | undefined> {
      return db.row(sql`select * from credentials where project_id = ${projectId} and id = ${id}`);
    },

    findByName(projectId: string, name: string): Promise<CredentialRow | undefined> {
      return db.row(sql`select * from credentials where project_id = ${projectId} and name = ${name}`);
    },

    /** Changes of one credential wait for each other: each merges with what the one before has written. */
    lock(id: string): Promise<CredentialRow | undefined> {
      return db.row(sql`select * from credentials where id = ${id} for update`);
    },

    list(
      projectId: string,
      filter: Omit<CredentialList, 'domain'> & { domain: string | null },
    ): Promise<CredentialRow[]> {
      const { limit, offset, domain } = filter;
      const query = filter.query ?? null;
      return db.rows(sql`select * from credentials where project_id = ${projectId}
          and (${domain}::text is null or domain = ${domain})
          and (${query}::text is null or id = ${query}
            or strpos(lower(name collate "und-x-icu"), lower(${query} collate "und-x-icu")) > 0
            or strpos(domain, lower(${query})) > 0)
        order by created_at, id limit ${limit + 1} offset ${offset}`);
    },

    change(row: CredentialChange): Promise<CredentialRow | undefined> {
      return db.row(sql`update credentials set name = ${row.name}, sso_provider = ${row.sso_provider},
          value_keys = ${row.value_keys}, provider_keys = ${row.provider_keys}, has_totp_secret = ${row.has_totp_secret}, updated_at = now()
        where id = ${row.id} returning *`);
    },

    async remove(id: string): Promise<boolean> {
      return (await db.row(sql`delete from credentials where id = ${id} returning id`)) !== undefined;
    },

    async count(projectId: string): Promise<number> {
      const row = await db.row<{ count: number }>(
        sql`select count(*)::integer as count from credentials where project_id = ${projectId}`,
      );
      return row?.count ?? 0;
    },
  };
}
