import type { Db } from '../../store/db.ts';
import { sql } from '../../store/sql.ts';

/** What is stored of a mailbox, beside the sealed password. */
export interface MailboxSettings {
  host: string;
  port: number;
  security: 'tls' | 'starttls';
  username: string;
  mailbox: string;
  from?: string | undefined;
  to?: string | undefined;
  subject?: string | undefined;
  delete_after_use: boolean;
  ca_bundle?: string | undefined;
}

interface SourceRowOf<T, S> {
  id: string;
  credential_id: string;
  position: number;
  type: T;
  settings: S;
  token_hash: Buffer | null;
}
export type MailboxRow = SourceRowOf<'imap', MailboxSettings>;
export type SourceRow = MailboxRow | SourceRowOf<'webhook', Record<string, never>>;

/** Every query on the sources of one-time codes, and on what came from them. */
export function codeSourceStore(db: Db) {
  return {
    of(credentialId: string): Promise<SourceRow[]> {
      return db.rows(sql`select id, credential_id, position, type, settings, token_hash from one_time_code_sources
        where credential_id = ${credentialId} order by position`);
    },

    /** `null` as the hash keeps the stored one. */
    async put(row: SourceRow): Promise<void> {
      await db.rows(sql`insert into one_time_code_sources (id, credential_id, position, type, settings, token_hash)
        values (${row.id}, ${row.credential_id}, ${row.position}, ${row.type}, ${JSON.stringify(row.settings)}::jsonb, ${row.token_hash})
        on conflict (id) do update set position = excluded.position, settings = excluded.settings,
          token_hash = coalesce(excluded.token_hash, one_time_code_sources.token_hash)`);
    },

    async remove(ids: string[]): Promise<void> {
      await db.rows(sql`delete from one_time_code_sources where id = any (${ids})`);
    },

    async byToken(hash: Buffer): Promise<string | undefined> {
      const row = await db.row<{ id: string }>(sql`select id from one_time_code_sources where token_hash = ${hash}`);
      return row?.id;
    },

    /** Codes of a source are added one after the other, so that their number is known. False: the source was removed. */
    async lock(id: string): Promise<boolean> {
      return (await db.row(sql`select id from one_time_code_sources where id = ${id} for update`)) !== undefined;
    },

    async addCode(sourceId: string): Promise<string> {
      const row = await db.row<{ id: string }>(
        sql`insert into posted_codes (source_id) values (${sourceId}) returning id`,
      );
      return row!.id;
    },

    /** Removes the newest code that was posted within the time. Two logins never get the same. */
    async takeCode(sourceIds: string[], seconds: number): Promise<string | undefined> {
      const row = await db.row<{ id: string }>(sql`delete from posted_codes where id = (select id from posted_codes
          where source_id = any (${sourceIds}) and received_at > now() - make_interval(secs => ${seconds}::float8)
          order by id desc limit 1 for update skip locked)
        returning id`);
      return row?.id;
    },

    /** Removes the codes of a source but for the newest; all codes of sources with `keep` 0. */
    async forgetCodes(sourceIds: string[], keep: number): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`delete from posted_codes where source_id = any (${sourceIds})
          and id not in (select id from posted_codes where source_id = any (${sourceIds}) order by id desc limit ${keep})
        returning id`);
      return rows.map(({ id }) => id);
    },

    async forgetOldCodes(seconds: number): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`delete from posted_codes
        where received_at < now() - make_interval(secs => ${seconds}::float8) returning id`);
      return rows.map(({ id }) => id);
    },

    /** Marks a mail as used. False: it was used before, in any login of the installation. */
    async useMail(mail: Buffer): Promise<boolean> {
      const row = await db.row(sql`insert into used_code_mails (mail) values (${mail})
        on conflict (mail) do nothing returning mail`);
      return row !== undefined;
    },

    async forgetOldMails(days: number): Promise<void> {
      await db.rows(sql`delete from used_code_mails where used_at < now() - make_interval(days => ${days}::integer)`);
    },
  };
}
