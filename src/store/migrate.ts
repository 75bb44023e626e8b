import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { Log } from '../lib/log.ts';
import type { Db } from './db.ts';
import { sql, type Sql } from './sql.ts';

const folder = new URL('./migrations/', import.meta.url);

interface Migration {
  version: number;
  name: string;
  text: string;
  checksum: string;
}

/** Applies new migrations in order, each in its own transaction under one lock: several nodes may start at the same time. */
export async function migrate(db: Db, log: Log): Promise<void> {
  const known = await readMigrations();
  for (const migration of known) {
    await db.transaction(async (tx) => {
      await tx.rows(sql`select pg_advisory_xact_lock(hashtextextended('corral migrations', 0))`);
      await tx.rows(sql`create schema if not exists corral`);
      await tx.rows(sql`create table if not exists schema_migrations (
        version integer primary key, name text not null, checksum text not null, applied_at timestamptz not null default now())`);
      const applied = await tx.rows<Migration>(
        sql`select version, name, checksum from schema_migrations order by version`,
      );
      refuseWhatDoesNotFit(applied, known);
      if (applied.some(({ version }) => version === migration.version)) return;
      await tx.rows(unprepared(migration.text));
      await tx.rows(sql`insert into schema_migrations (version, name, checksum)
        values (${migration.version}, ${migration.name}, ${migration.checksum})`);
      log.info({ migration: migration.name }, 'store.migrated');
    });
  }
}

/** For the command line, which does not migrate a database that a service uses. */
export async function refuseUnlessCurrent(db: Db): Promise<void> {
  const known = await readMigrations();
  const applied = await db.rows<Migration>(sql`select version, name, checksum from schema_migrations order by version`);
  refuseWhatDoesNotFit(applied, known);
  const missing = known.filter(({ version }) => !applied.some((one) => one.version === version));
  if (missing.length > 0)
    throw new Error(
      `The database is used by a running service of an older version: it has no ${missing[0]!.name} yet. Use that version's command line, or stop the service first.`,
    );
}

function refuseWhatDoesNotFit(applied: Migration[], known: Migration[]) {
  for (const { version, name, checksum } of applied) {
    const ours = known.find((migration) => migration.version === version);
    if (!ours) {
      throw new Error(
        `The database has migration ${name}, which this version of Corral does not know: it was used by a newer one. Start that one.`,
      );
    }
    if (ours.checksum !== checksum) {
      throw new Error(
        `Migration ${name} was changed after it was applied. Put the old text back and write a new migration instead.`,
      );
    }
  }
}

async function readMigrations(): Promise<Migration[]> {
  const files = (await readdir(folder)).filter((file) => /^\d{4}_\w+\.sql$/.test(file)).sort();
  return Promise.all(
    files.map(async (file) => {
      const text = await readFile(new URL(file, folder), 'utf8');
      return {
        version: Number(file.slice(0, 4)),
        name: file.slice(0, -4),
        text,
        checksum: createHash('sha256').update(text).digest('hex'),
      };
    }),
  );
}

/** A file of several statements. Without name and values, which `Sql` always has, PostgreSQL accepts it as a whole. */
function unprepared(text: string): Sql {
  return { name: undefined as unknown as string, text, values: undefined as unknown as [] };
}
