import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterEach, expect, test } from 'vitest';
import { silent } from '../lib/log.ts';
import { newDatabase } from '../../test/support/new-database.ts';
import { copyCluster } from './backup.ts';
import { startEmbeddedPostgres, type EmbeddedPostgres } from './embedded.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function directory(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'corral-backup-'));
  cleanups.push(() => rm(made, { recursive: true, force: true }));
  return made;
}

async function start(dataDir: string): Promise<{ server: EmbeddedPostgres; client: Client }> {
  const server = await startEmbeddedPostgres({ dataDir, log: silent });
  cleanups.push(() => server.stop());
  const client = new Client(server.connection);
  await client.connect();
  cleanups.push(() => client.end());
  return { server, client };
}

test('a server that is written to is copied, and the copy has everything that was committed before', async () => {
  const [from, into] = [await directory(), await directory()];
  await newDatabase(from);
  const { server, client } = await start(from);
  await client.query('create table public.written (n int primary key, filler text)');
  const cluster = join(from, 'postgres');
  let over = false;
  let written = 0;
  const writing = (async () => {
    for (; !over; written++)
      await client.query('insert into public.written values ($1::int, repeat(md5($1::int::text), 200))', [written]);
  })();
  const count = () => written;
  await expect.poll(count).toBeGreaterThan(20);
  const before = written;
  let bytes = 0;
  await copyCluster({
    connection: server.connection,
    cluster,
    into: join(into, 'postgres'),
    copied: (more) => (bytes += more),
    signal: new AbortController().signal,
  });
  over = true;
  await writing;
  expect(bytes).toBeGreaterThan(1_000_000);
  expect((await client.query('select from pg_replication_slots')).rowCount).toBe(0);
  await copyFile(join(from, 'postgres-password'), join(into, 'postgres-password'));

  const copy = await start(into);
  const { rows } = await copy.client.query('select count(*)::int as count, max(n) as last from public.written');
  expect(rows[0].count).toBeGreaterThanOrEqual(before);
  expect(rows[0].last).toBe(rows[0].count - 1); // no gap: the state of one moment
  await copy.client.query('insert into public.written values (-1)');
});

test('an interrupted copy ends, and the server keeps no slot', async () => {
  const [from, into] = [await directory(), await directory()];
  await newDatabase(from);
  const { server, client } = await start(from);
  const over = new AbortController();
  const copying = copyCluster({
    connection: server.connection,
    cluster: join(from, 'postgres'),
    into: join(into, 'postgres'),
    copied: () => over.abort(),
    signal: over.signal,
  });
  await expect(copying).rejects.toThrow('abort');
  await expect.poll(async () => (await client.query('select from pg_replication_slots')).rowCount).toBe(0);
});
