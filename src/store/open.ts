import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import type { Log } from '../lib/log.ts';
import { createOnce } from '../lib/files.ts';
import { newId } from '../lib/ids.ts';
import { undoOnFailure } from '../lib/undo.ts';
import { DataDirInUse, openAnchor, type Anchor } from './anchor.ts';
import { database, type Db } from './db.ts';
import { startEmbeddedPostgres } from './embedded.ts';
import { migrate, refuseUnlessCurrent } from './migrate.ts';
import { sql } from './sql.ts';
import { textArray } from './text-array.ts';

export interface Store {
  readonly db: Db;
  /** For rows that may be lost in a crash of the database server itself: commits without waiting for the disk. */
  readonly quick: Db;
  readonly anchor: Anchor;
  readonly nodeId: string;
  ping(): Promise<void>;
  /** Of PostgreSQL, such as 18.1. */
  serverVersion(): Promise<string>;
  close(): Promise<void>;
}

interface StoreOptions {
  dataDir: string;
  databaseUrl: string;
  /** The channels that rooms listen to; see the triggers in migrations/. */
  channels: string[];
  onLost: (error: Error) => void;
  /** The last chance to refuse before the tables change, which running nodes may not understand. */
  beforeMigrating?: (db: Db, nodeId: string) => Promise<void>;
  log: Log;
}

/** Opens the store for the one service on this data directory: embedded or the user's own, locked, migrated. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { dataDir, channels, onLost, log } = options;
  return undoOnFailure(async (undo, undoAll) => {
    const server = await connectionTo(options);
    let anothers = false;
    undo(() => (anothers ? undefined : server.stop()));
    const nodeId = await createOnce(join(dataDir, 'node-id'), () => newId('node_'));
    const { connection, recover } = server;
    const anchor = await openAnchor({ connection, channels, nodeId, dataDir, recover, onLost, log }).catch((error) => {
      anothers = error instanceof DataDirInUse;
      throw error;
    });
    undo(() => anchor.close());

    const pool = openPool(connection, 10, log);
    undo(() => pool.end());
    const quickPool = openPool({ ...connection, options: `${connection.options} -c synchronous_commit=off` }, 2, log);
    undo(() => quickPool.end());
    const db = database(pool, recover);
    await options.beforeMigrating?.(db, nodeId);
    await migrate(db, log);

    return {
      db,
      quick: database(quickPool, recover),
      anchor,
      nodeId,
      ping: async () => void (await db.rows(sql`select 1`)),
      async serverVersion() {
        const row = await db.row<{ version: string }>(sql`select current_setting('server_version') as version`);
        return row!.version;
      },
      close: undoAll,
    };
  });
}

/**
 * For the command line: the tables, with or without a running service, and without the lock. A database that a service
 * uses is never migrated here, because the service would continue with tables that it does not know.
 */
export async function visitStore(options: Omit<StoreOptions, 'channels' | 'onLost' | 'beforeMigrating'>) {
  const server = await connectionTo(options);
  const pool = openPool(server.connection, 2, options.log);
  const db = database(pool, server.recover);
  const close = async () => {
    const used = await isInUse(db);
    await pool.end();
    if (!used) await server.stop(); // no service needs the server that this process may have started
  };
  try {
    if (await isInUse(db)) await refuseUnlessCurrent(db);
    else await migrate(db, options.log);
    return { db, connection: server.connection as pg.ClientConfig, close };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

/** Whether a service holds the lock of its data directory in this database. */
async function isInUse(db: Db): Promise<boolean> {
  const row = await db.row<{ held: boolean }>(sql`select exists (
    select from pg_locks join pg_stat_activity using (pid)
    where locktype = 'advisory' and granted and objsubid = 1 and datname = current_database()
      and application_name like 'corral on %') as held`);
  return row?.held === true;
}

async function connectionTo({ dataDir, databaseUrl, log }: Pick<StoreOptions, 'dataDir' | 'databaseUrl' | 'log'>) {
  await mkdir(dataDir, { recursive: true });
  // A node that hangs in a transaction must not keep its locks, which would block all other nodes.
  const options = '-c search_path=corral -c idle_in_transaction_session_timeout=8s';
  if (databaseUrl) {
    const nothing = async () => {};
    return { connection: { connectionString: databaseUrl, options }, recover: nothing, stop: nothing };
  }
  const embedded = await startEmbeddedPostgres({ dataDir, log });
  return {
    connection: { ...embedded.connection, options },
    recover: () => embedded.ensureRunning(),
    stop: () => embedded.stop(),
  };
}

/** By the number of the type: `text[]`. */
const parsers = new Map<number, (text: string) => unknown>([[1009, textArray]]);

const types: pg.CustomTypesConfig = {
  getTypeParser: (type, format) =>
    (format === 'binary' ? undefined : parsers.get(type)) ?? pg.types.getTypeParser(type, format),
};

function openPool(connection: pg.PoolConfig, max: number, log: Log) {
  const pool = new pg.Pool({ ...connection, types, max, connectionTimeoutMillis: 10_000, idleTimeoutMillis: 60_000 });
  pool.on('error', (error) => log.warn({ error: error.message }, 'store.connection_error'));
  return pool;
}
