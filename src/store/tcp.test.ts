import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../test/support/listen.ts';
import { newDatabase } from '../../test/support/new-database.ts';
import { silent } from '../lib/log.ts';
import { startEmbeddedPostgres } from './embedded.ts';
import { findLauncher } from './launcher.ts';
import { openStore, type Store } from './open.ts';
import { serverUser } from './server-user.ts';
import { sql } from './sql.ts';

/** A database server as operators have one: on TCP, with a password that a URL has to escape, and without the service's help. */
let dir: string;
let port: number;
let server: Awaited<ReturnType<typeof startServer>>;
const password = 'p@ss:w/rd?%&#';
const url = (secret = password) => `postgres://corral:${encodeURIComponent(secret)}@127.0.0.1:${port}/postgres`;

async function startServer() {
  const cluster = join(dir, 'postgres');
  const launch = await findLauncher(dir, cluster, await serverUser(cluster));
  const settings = ['-c', 'listen_addresses=127.0.0.1', '-c', `port=${port}`, '-c', 'unix_socket_directories='];
  const child = launch('postgres', cluster, settings, { stdio: ['ignore', 'pipe', 'pipe'] });
  const over = once(child, 'exit');
  let said = '';
  const ready = new Promise<void>((resolve, reject) => {
    child.stderr!.on('data', (chunk) => {
      said += String(chunk);
      if (said.includes('ready to accept connections')) resolve();
    });
    void over.then(() => reject(new Error(`PostgreSQL did not start:\n${said}`)));
  });
  await ready;
  return {
    async stop() {
      // The child may be a wrapper around the server; the pid file names the server.
      const pid = Number((await readFile(join(cluster, 'postmaster.pid'), 'utf8')).split('\n')[0]);
      process.kill(pid, 'SIGINT');
      await over;
    },
  };
}

const open = (databaseUrl: string, home: string): Promise<Store> =>
  openStore({ dataDir: join(dir, home), databaseUrl, channels: ['corral_org'], onLost: () => {}, log: silent });

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'corral-tcp-'));
  await newDatabase(dir);
  const own = await startEmbeddedPostgres({ dataDir: dir, log: silent });
  const client = new Client(own.connection);
  await client.connect();
  await client.query(`alter role corral password '${password}'`);
  await client.end();
  await own.stop();
  await writeFile(join(dir, 'postgres/pg_hba.conf'), 'host all all 127.0.0.1/32 scram-sha-256\n');
  port = await freePort();
  server = await startServer();
});
afterAll(async () => {
  await server?.stop();
  await rm(dir, { recursive: true, force: true });
});

test('a database on TCP with a password is used, with its notifications', async () => {
  const store = await open(url(), 'node');
  try {
    expect(
      await store.db.row(sql`select host(inet_server_addr()) as at, current_setting('password_encryption') as how`),
    ).toEqual({ at: '127.0.0.1', how: 'scram-sha-256' });
    const heard = new Promise<string>((resolve) => store.anchor.on('corral_org', resolve));
    await store.db.rows(sql`select pg_notify('corral_org', 'over TCP')`);
    expect(await heard).toBe('over TCP');
  } finally {
    await store.close();
  }
});

test('a wrong password is an error that names neither password', async () => {
  const refused = await open(url('not the one'), 'wrong').then(
    () => 'connected',
    (error: Error) => `${error.message}\n${error.stack}\n${String(error.cause)}`,
  );
  expect(refused).toContain('password authentication failed');
  expect(refused).not.toContain('not the one');
  expect(refused).not.toContain(password);
});

test('a server that goes away and comes back is used again', async () => {
  const store = await open(url(), 'again');
  try {
    await server.stop();
    const state = () =>
      store.ping().then(
        () => 'there',
        (error: { code?: string }) => error.code,
      );
    await expect.poll(state).toBe('store_unavailable');
    server = await startServer();
    await expect.poll(state).toBe('there');
  } finally {
    await store.close();
  }
});
