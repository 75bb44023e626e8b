import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { newId } from '../../src/lib/ids.ts';
import { silent } from '../../src/lib/log.ts';
import { startEmbeddedPostgres } from '../../src/store/embedded.ts';
import { visitStore } from '../../src/store/open.ts';
import type { Connection } from '../../src/store/socket.ts';
import { madeOnce } from './new-database.ts';

/** New databases are copies of this one, which PostgreSQL allows while no client is connected to it. */
const TEMPLATE = 'migrated';

let server: ReturnType<typeof startEmbeddedPostgres> | undefined;

/**
 * The address of a new database, migrated and without rows, on a PostgreSQL server that the files of a run share: most of the work of a
 * store of its own is the start of a server. Undefined outside of a run of vitest (see vitest.setup.ts).
 */
export async function newSharedDatabase(): Promise<string | undefined> {
  const dataDir = await madeOnce('server', async (draft) => {
    const { connection, stop } = await startEmbeddedPostgres({ dataDir: draft, log: silent });
    await onServer(connection, `create database ${TEMPLATE}`);
    const store = await visitStore({ dataDir: draft, databaseUrl: addressOf(connection, TEMPLATE), log: silent });
    await store.close();
    await stop();
  });
  if (dataDir === undefined) return undefined;
  // The first worker that needs the server starts it, and the others find it.
  const { connection } = await (server ??= startEmbeddedPostgres({ dataDir, log: silent }));
  const name = newId('test_');
  await onServer(connection, `create database ${name} template ${TEMPLATE}`);
  return addressOf(connection, name);
}

/** Stops the server at the end of a run. */
export async function stopSharedServer(sharedDir: string): Promise<void> {
  const dataDir = join(sharedDir, 'server');
  if (existsSync(dataDir)) await (await startEmbeddedPostgres({ dataDir, log: silent })).stop();
}

const addressOf = ({ user, password, host }: Connection, database: string) =>
  `postgres://${user}:${password}@/${database}?host=${encodeURIComponent(host)}`;

async function onServer(connection: Connection, statement: string): Promise<void> {
  const client = new Client(connection);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
