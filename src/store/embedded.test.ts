import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { silent } from '../lib/log.ts';
import { newDatabase } from '../../test/support/new-database.ts';
import { startEmbeddedPostgres, type EmbeddedPostgres } from './embedded.ts';
import { isPostmaster, readPidFile } from './postmaster.ts';

const asRoot = process.getuid?.() === 0;
const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Closed to all other users, as `mktemp -d` and a home are: root's server cannot walk in. */
async function closedDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'corral-pg-'));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function openDirectory(): Promise<string> {
  const directory = await closedDirectory();
  await chmod(directory, 0o755);
  return directory;
}

/** With a cluster already, for tests that are not about making one. */
async function usedDirectory(): Promise<string> {
  const directory = await openDirectory();
  await newDatabase(directory);
  return directory;
}

async function start(dataDir: string): Promise<EmbeddedPostgres> {
  const postgres = await startEmbeddedPostgres({ dataDir, log: silent });
  cleanups.push(() => postgres.stop());
  return postgres;
}

async function query(postgres: EmbeddedPostgres, ...statements: string[]): Promise<Record<string, unknown>[]> {
  const client = new Client(postgres.connection);
  await client.connect();
  try {
    let rows: Record<string, unknown>[] = [];
    for (const statement of statements) ({ rows } = await client.query(statement));
    return rows;
  } finally {
    await client.end();
  }
}

async function postmasterOf(dataDir: string): Promise<number> {
  const cluster = join(dataDir, 'postgres');
  const { pid } = (await readPidFile(cluster))!;
  expect(await isPostmaster(pid, cluster)).toBe(true);
  return pid;
}

/** Kills the postmaster like a crash, and waits until it has exited. Its children may still run. */
async function crash(dataDir: string): Promise<void> {
  const pid = await postmasterOf(dataDir);
  process.kill(pid, 'SIGKILL');
  await expect.poll(() => isPostmaster(pid, join(dataDir, 'postgres'))).toBe(false);
}

/** Every process on this machine that works in the cluster's directory. */
async function processesIn(cluster: string): Promise<number[]> {
  const { dev, ino } = await stat(cluster);
  const found: number[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const cwd = await stat(`/proc/${pid}/cwd`).catch(() => undefined);
    if (cwd?.dev === dev && cwd.ino === ino) found.push(Number(pid));
  }
  return found;
}

/** A process of the server's own user that has nothing to do with it. */
async function stranger(dataDir: string): Promise<number> {
  const { uid, gid } = await stat(join(dataDir, 'postgres'));
  const sleeper = spawn('sleep', ['600'], { cwd: '/', stdio: 'ignore', ...(asRoot && { uid, gid }) });
  await once(sleeper, 'spawn');
  cleanups.push(async () => {
    sleeper.kill('SIGKILL');
    await once(sleeper, 'exit');
  });
  return sleeper.pid!;
}

/** Runs statements of a module in a node process of its own. Node 20 cannot read TypeScript, so vite does. */
function inAnotherProcess(dataDir: string, then: string) {
  const script = `
    import { runnerImport } from 'vite';
    const file = ${JSON.stringify(resolve(import.meta.dirname, 'embedded.ts'))};
    const { module } = await runnerImport(file, { configFile: false, logLevel: 'error' });
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const postgres = await module.startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)}, log });
    ${then}`;
  return promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    cwd: resolve(import.meta.dirname, '../..'),
  });
}

test('starts on an empty directory, keeps written data, and leaves no process and no socket when stopped', async () => {
  const dataDir = await openDirectory();
  const first = await start(dataDir);
  await query(first, 'create table t (n int)', 'insert into t values (7)');
  const cluster = join(dataDir, 'postgres');
  expect((await stat(cluster)).mode & 0o777).toBe(0o700);
  await first.stop();

  expect(await processesIn(cluster)).toEqual([]);
  await expect(access(join(cluster, 'postmaster.pid'))).rejects.toThrow('ENOENT');
  await expect(access(join(cluster, '.s.PGSQL.5432'))).rejects.toThrow('ENOENT');
  await expect(first.ensureRunning()).rejects.toThrow('was stopped');

  const second = await start(dataDir);
  expect(await query(second, 'select n from t')).toEqual([{ n: 7 }]);
});

/** Changes the cluster to that of an earlier version: every process that reaches the socket may connect. */
async function trustEverybody(dataDir: string, postgres: EmbeddedPostgres): Promise<void> {
  await query(postgres, 'create table t (n int)', 'alter role corral password null');
  await writeFile(join(dataDir, 'postgres/pg_hba.conf'), 'local all all trust\n');
  await query(postgres, 'select pg_reload_conf()').catch(() => {}); // refused already, if it was quick
  await rm(join(dataDir, 'postgres-password'));
}

/** The result of a connection without the password. */
async function withoutPassword(postgres: EmbeddedPostgres): Promise<string> {
  const client = new Client({ ...postgres.connection, password: 'wrong' });
  try {
    await client.connect();
    return 'connected';
  } catch (error) {
    return (error as Error).message;
  } finally {
    await client.end().catch(() => {});
  }
}

describe('a server that runs', () => {
  let dataDir: string;
  let postgres: EmbeddedPostgres;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'corral-pg-'));
    await newDatabase(dataDir);
    postgres = await startEmbeddedPostgres({ dataDir, log: silent });
  });
  afterAll(async () => {
    await postgres?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  test('listens on no TCP port, behind a directory that is closed to other users', async () => {
    expect(await query(postgres, 'show listen_addresses')).toEqual([{ listen_addresses: '' }]);
    expect((await stat(join(dataDir, 'postgres'))).mode & 0o777).toBe(0o700);
  });

  test('lets in no client without its password', async () => {
    expect(await withoutPassword(postgres)).toContain('password authentication failed');
  });

  test('puts every answered write on disk', async () => {
    expect(await query(postgres, 'show fsync')).toEqual([{ fsync: 'on' }]);
    expect(await query(postgres, 'show synchronous_commit')).toEqual([{ synchronous_commit: 'on' }]);
  });

  test('compares names without regard to case and accents by an ICU collation', async () => {
    const rows = await query(
      postgres,
      `create collation blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)`,
      `select 'CAFÉ' = 'café' collate blind as accents, 'cafe' = 'CAFÉ' collate blind as both, 'cafe' = 'cape' collate blind as other`,
    );
    expect(rows).toEqual([{ accents: true, both: true, other: false }]);
    expect(await query(postgres, 'show server_encoding')).toEqual([{ server_encoding: 'UTF8' }]);
  });
});

test('sets a password for a cluster of an earlier version without one at its next start', async () => {
  const dataDir = await usedDirectory();
  const first = await start(dataDir);
  await trustEverybody(dataDir, first);
  await first.stop();

  const second = await start(dataDir);
  expect(await withoutPassword(second)).toContain('password authentication failed');
  expect(await query(second, 'select * from t')).toEqual([]);
});

test('gives one to a running server that an earlier version left when it was killed', async () => {
  const dataDir = await usedDirectory();
  const kill = `process.kill(process.pid, 'SIGKILL'); await new Promise(() => setInterval(() => {}, 1000));`;
  const first = await start(dataDir);
  await trustEverybody(dataDir, first);
  await first.stop();
  // Started like that version did: without a password, and not ended with its parent.
  const hba = join(dataDir, 'postgres/pg_hba.conf');
  await expect(inAnotherProcess(dataDir, kill)).rejects.toMatchObject({ signal: 'SIGKILL' });
  const left = await postmasterOf(dataDir);
  await writeFile(hba, 'local all all trust\n');
  process.kill(left, 'SIGHUP');
  await rm(join(dataDir, 'postgres-password'));
  await expect.poll(() => withoutPassword(first), { timeout: 60_000 }).toBe('connected');

  const second = await start(dataDir);
  expect(await postmasterOf(dataDir)).not.toBe(left);
  expect(await withoutPassword(second)).toContain('password authentication failed');
  expect(await query(second, 'select * from t')).toEqual([]);
});

test('creates a new password when the file was lost, and names the remedy while a server runs with the old one', async () => {
  const dataDir = await usedDirectory();
  const first = await start(dataDir);
  await query(first, 'create table t (n int)');
  await rm(join(dataDir, 'postgres-password'));
  await expect(start(dataDir)).rejects.toThrow(/with another password .* run 'kill \d+'/);
  await first.stop();
  expect(await query(await start(dataDir), 'select * from t')).toEqual([]);
});

test('works below a path that is too long for a socket', async () => {
  const dataDir = join(await openDirectory(), 'x'.repeat(150), 'y'.repeat(150));
  const postgres = await start(dataDir);
  expect(await query(postgres, 'select 1 as one')).toEqual([{ one: 1 }]);
  await crash(dataDir);
  await postgres.ensureRunning();
  expect(await query(postgres, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('works below a directory that other users may not enter', async () => {
  const dataDir = join(await closedDirectory(), 'data');
  const postgres = await start(dataDir);
  expect(await query(postgres, 'select 1 as one')).toEqual([{ one: 1 }]);
  await postgres.stop();
  expect(await processesIn(join(dataDir, 'postgres'))).toEqual([]);
});

test.runIf(asRoot)('runs as an unprivileged user when the service is root', async () => {
  for (const dataDir of [await openDirectory(), await closedDirectory()]) {
    await newDatabase(dataDir); // initdb refuses root
    await start(dataDir);
    const status = await readFile(`/proc/${await postmasterOf(dataDir)}/status`, 'utf8');
    const ids = /^Uid:\s+(.*)$/m.exec(status)?.[1]?.split('\t');
    const { uid } = await stat(join(dataDir, 'postgres'));
    expect(uid).not.toBe(0);
    expect(ids).toEqual([uid, uid, uid, uid].map(String));
    expect(status).toMatch(/^CapEff:\s+0+$/m);
  }
});

test.runIf(asRoot)('takes a cluster back that a backup restored as root and open to all', async () => {
  const dataDir = await usedDirectory();
  const first = await start(dataDir);
  await query(first, 'create table t (n int)');
  await first.stop();
  await promisify(execFile)('chown', ['-R', '0:0', join(dataDir, 'postgres')]);
  await chmod(join(dataDir, 'postgres'), 0o755);

  expect(await query(await start(dataDir), 'select * from t')).toEqual([]);
});

test('finds the server that a killed service left running', async () => {
  const dataDir = await closedDirectory();
  await newDatabase(dataDir);
  const kill = `process.kill(process.pid, 'SIGKILL'); await new Promise(() => setInterval(() => {}, 1000));`;
  await expect(inAnotherProcess(dataDir, kill)).rejects.toMatchObject({ signal: 'SIGKILL' });
  const left = await postmasterOf(dataDir);

  const postgres = await start(dataDir);
  expect(await postmasterOf(dataDir)).toBe(left);
  expect(await query(postgres, 'select 1 as one')).toEqual([{ one: 1 }]);

  await postgres.stop();
  expect(await processesIn(join(dataDir, 'postgres'))).toEqual([]);
});

test('restarts the server after it was killed, once for concurrent callers', async () => {
  const dataDir = await usedDirectory();
  const postgres = await start(dataDir);
  await query(postgres, 'create table t (n int)', 'insert into t values (7)');

  // A connection of a pool that is in the middle of something when it happens.
  const client = new Client(postgres.connection);
  client.on('error', () => {});
  await client.connect();
  const interrupted = client.query('select pg_sleep(600)').catch(() => 'interrupted');

  const before = await postmasterOf(dataDir);
  await crash(dataDir);
  await Promise.all([postgres.ensureRunning(), postgres.ensureRunning(), postgres.ensureRunning()]);

  expect(await interrupted).toBe('interrupted');
  expect(await postmasterOf(dataDir)).not.toBe(before);
  expect(await query(postgres, 'select n from t')).toEqual([{ n: 7 }]);
});

test('starts over the pid file of a dead server if another process has its pid now, and does not signal that process', async () => {
  const dataDir = await usedDirectory();
  const cluster = join(dataDir, 'postgres');
  await start(dataDir);
  await crash(dataDir);
  const pid = await stranger(dataDir);
  for (const name of ['postmaster.pid', '.s.PGSQL.5432.lock']) {
    const text = await readFile(join(cluster, name), 'utf8');
    await writeFile(join(cluster, name), text.replace(/^\d+/, String(pid)));
  }

  const postgres = await start(dataDir);
  expect(await query(postgres, 'select 1 as one')).toEqual([{ one: 1 }]);
  await postgres.stop();
  expect(() => process.kill(pid, 0)).not.toThrow();
});

test('waits for a server that is shutting down, and then starts', async () => {
  const dataDir = await usedDirectory();
  await start(dataDir);
  const leaving = await postmasterOf(dataDir);
  process.kill(leaving, 'SIGINT');

  const postgres = await start(dataDir);
  expect(await postmasterOf(dataDir)).not.toBe(leaving);
  expect(await query(postgres, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('runs one server when several services start at once', async () => {
  const dataDir = await openDirectory();
  const report = `console.log(JSON.stringify(postgres.connection)); process.exit(0);`;
  const [first, second] = await Promise.all([
    start(dataDir),
    start(dataDir),
    inAnotherProcess(dataDir, report),
    inAnotherProcess(dataDir, report),
  ]);

  const servers = async () => {
    const found = [];
    for (const pid of await processesIn(join(dataDir, 'postgres'))) {
      if (await isPostmaster(pid, join(dataDir, 'postgres'))) found.push(pid);
    }
    return found;
  };
  // A process that the server has just started has its command line, too, until it takes a name of its own.
  await expect.poll(servers).toEqual([await postmasterOf(dataDir)]);
  expect(await query(first, 'select 1 as one')).toEqual(await query(second, 'select 1 as one'));
});

test('removes leftovers of a start that was killed during initdb', async () => {
  const dataDir = await openDirectory();
  await mkdir(join(dataDir, 'postgres.new-killed', 'base'), { recursive: true });
  await start(dataDir);
  expect((await readdir(dataDir)).sort()).toEqual(['postgres', 'postgres-password', 'postgres.lock', 'postgres.log']);
});

test('does not touch a directory that holds something else', async () => {
  const dataDir = await openDirectory();
  await mkdir(join(dataDir, 'postgres'));
  await writeFile(join(dataDir, 'postgres', 'thesis.txt'), 'ten years of work');
  await expect(start(dataDir)).rejects.toThrow('holds files but no PostgreSQL cluster');
  expect(await readdir(join(dataDir, 'postgres'))).toEqual(['thesis.txt']);
});

test('reports the server’s own message when it does not start', async () => {
  const dataDir = await usedDirectory();
  const postgres = await start(dataDir);
  await postgres.stop();
  await writeFile(join(dataDir, 'postgres', 'PG_VERSION'), '9.6\n');
  await expect(start(dataDir)).rejects.toThrow(
    /did not start\. The end of its log: [^]*initialized by PostgreSQL version 9\.6/,
  );
});
