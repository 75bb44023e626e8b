import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import type { ExtensionList } from './schema.ts';

export interface ExtensionRow {
  id: string;
  project_id: string;
  name: string | null;
  size_bytes: number;
  checksum: string;
  created_at: Date;
  last_used_at: Date | null;
}

type NewExtension = Pick<ExtensionRow, 'id' | 'project_id' | 'name' | 'size_bytes' | 'checksum'>;

/** Every query on extensions and their contents. */
export function extensionStore(db: Db) {
  return {
    insert(row: NewExtension): Promise<ExtensionRow | undefined> {
      return db.row(sql`insert into extensions (id, project_id, name, size_bytes, checksum)
        values (${row.id}, ${row.project_id}, ${row.name}, ${row.size_bytes}, ${row.checksum}) returning *`);
    },

    async addChunk(id: string, position: number, bytes: Buffer): Promise<void> {
      await db.rows(
        sql`insert into extension_chunks (extension_id, position, bytes) values (${id}, ${position}, ${bytes})`,
      );
    },

    async chunk(id: string, position: number): Promise<Buffer | undefined> {
      const row = await db.row<{ bytes: Buffer }>(
        sql`select bytes from extension_chunks where extension_id = ${id} and position = ${position}`,
      );
      return row?.bytes;
    },

    /** An id takes precedence over an equal name. */
    findByIdOrName(projectId: string, idOrName: string): Promise<ExtensionRow | undefined> {
      return db.row(sql`select * from extensions
        where project_id = ${projectId} and (id = ${idOrName} or name = ${idOrName}) and deleted_at is null
        order by id = ${idOrName} desc limit 1`);
    },

    /** By a selector: an id never matches a name, and a name never matches an id. */
    findBy(projectId: string, id: string | null, name: string | null): Promise<ExtensionRow | undefined> {
      return db.row(sql`select * from extensions
        where project_id = ${projectId} and (id = ${id} or name = ${name}) and deleted_at is null`);
    },

    list(projectId: string, filter: ExtensionList): Promise<ExtensionRow[]> {
      const { limit, offset } = filter;
      const [query, name] = [filter.query ?? null, filter.name ?? null];
      return db.rows(sql`select * from extensions
        where project_id = ${projectId} and deleted_at is null
          and (${name}::text is null or name = ${name})
          and (${query}::text is null or id = ${query}
            or strpos(lower(name collate "und-x-icu"), lower(${query} collate "und-x-icu")) > 0)
        order by created_at, id limit ${limit + 1} offset ${offset}`);
    },

    async touch(id: string): Promise<void> {
      await db.rows(sql`update extensions set last_used_at = now() where id = ${id}`);
    },

    async remove(id: string): Promise<boolean> {
      const row = await db.row(sql`with gone as (
          update extensions set deleted_at = now() where id = ${id} and deleted_at is null returning id
        ), bytes as (delete from extension_chunks where extension_id in (select id from gone))
        select id from gone`);
      return row !== undefined;
    },

    async count(projectId: string): Promise<number> {
      const row = await db.row<{ count: number }>(
        sql`select count(*)::integer as count from extensions where project_id = ${projectId} and deleted_at is null`,
      );
      return row?.count ?? 0;
    },
  };
}
