import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';

/** The kind of the sealed values of sign-in links. */
export const linkKind = 'console link';

/** Sign-in links are sealed values: these are the queries that `Secrets` does not have. */
export function linkStore(db: Db) {
  return {
    /** Whether this call removed the link. Of two concurrent calls, on any nodes, only one does. */
    async take(owner: string): Promise<boolean> {
      const row = await db.row(sql`delete from secrets where kind = ${linkKind} and owner = ${owner} returning owner`);
      return row !== undefined;
    },

    /** The owners of all links. There are few: they are removed when they are used, and after a day. */
    async owners(): Promise<Set<string>> {
      const rows = await db.rows<{ owner: string }>(sql`select owner from secrets where kind = ${linkKind}`);
      return new Set(rows.map(({ owner }) => owner));
    },

    /** Removes the links that were never used, long after they stopped working. */
    async forgetOld(): Promise<void> {
      await db.rows(sql`delete from secrets where kind = ${linkKind} and updated_at < now() - interval '1 day'`);
    },
  };
}
