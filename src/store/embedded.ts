import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdir, open, rename, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { errorCode } from '../lib/error-code.ts';
import type { Log } from '../lib/log.ts';
import { claimCluster, clusterExists, initCluster, lastLines } from './cluster.ts';
import { findLauncher, type Launcher } from './launcher.ts';
import { findPostmaster, isPostmaster, mark, readPidFile } from './postmaster.ts';
import { serverUser } from './server-user.ts';
import { withStartLock } from './start-lock.ts';

/** The PostgreSQL in the data directory, which we start, find again after a crash, and stop. */
export interface EmbeddedPostgres {
  /** What `pg` needs to connect: the host is the directory of the socket. Good in this process only. */
  readonly connection: { host: string; port: number; user: string; database: string };
  /** Starts the server again if it died. Safe to call often and at once; after `stop` it refuses. */
  ensureRunning(): Promise<void>;
  /** Ends the server, whoever started it, and resolves when its processes are gone. */
  stop(): Promise<void>;
}

/** Long enough for the recovery of a full write-ahead log on a slow disk. */
const START_SECONDS = 120;
/** How long each way of asking gets: clients are cut off, then memory is given up, then there is no asking. */
const STOP_SIGNALS = [
  { signal: 'SIGINT', seconds: 20 },
  { signal: 'SIGQUIT', seconds: 5 },
  { signal: 'SIGKILL', seconds: 5 },
] as const;
/** The only number a socket in a directory of its own needs; nothing listens on TCP. */
const PORT = 5432;
const LOG_BYTES = 8 * 1024 * 1024;

const SETTINGS = {
  // Only a socket, in the directory that only the server's user and root may enter. PostgreSQL works in its data
  // directory, so '.' is that directory, however long its path.
  listen_addresses: '',
  port: String(PORT),
  unix_socket_directories: '.',
  unix_socket_permissions: '0700',
  // An answered write is on disk.
  fsync: 'on',
  synchronous_commit: 'on',
  // Small: one service on one machine.
  max_connections: '100',
  shared_buffers: '32MB',
  max_wal_size: '256MB',
  io_method: 'sync',
  max_logical_replication_workers: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // What the server does, but not the statements it refuses: the client is told those, and they may hold secrets.
  log_min_messages: 'log',
  log_checkpoints: 'off',
};

export async function startEmbeddedPostgres(options: { dataDir: string; log: Log }): Promise<EmbeddedPostgres> {
  const { log } = options;
  const dataDir = resolve(options.dataDir);
  const cluster = join(dataDir, 'postgres');
  const lockFile = join(dataDir, 'postgres.lock');
  const logFile = join(dataDir, 'postgres.log');
  await mkdir(dataDir, { recursive: true });

  /** The server as our child, when it is: behind it may stand a process that only waits for its end. */
  let child: ChildProcess | undefined;
  let stopped = false;

  const { launch, host } = await withStartLock(lockFile, START_SECONDS, async () => {
    const launch = await prepare();
    const host = socketDirectory(cluster);
    await bringUp(launch, host.path).catch((error: unknown) => {
      host.close();
      throw error;
    });
    return { launch, host };
  });
  const connection = { host: host.path, port: PORT, user: 'corral', database: 'postgres' };

  /** A whole cluster that belongs to the server's user, and the way to run programs on it. */
  async function prepare(): Promise<Launcher> {
    const user = await serverUser(cluster);
    const launcherFor = (directory: string) => findLauncher(dataDir, directory, user);
    if (await clusterExists(cluster)) {
      await claimCluster(cluster, user);
      return launcherFor(cluster);
    }
    log.info({ cluster, user: user?.name }, 'making the PostgreSQL data directory');
    return initCluster(cluster, user, launcherFor);
  }

  /** Resolves when the server answers: one that is there, one that is on its way up, or a new one. */
  async function bringUp(launch: Launcher, host: string): Promise<void> {
    const deadline = Date.now() + START_SECONDS * 1000;
    for (;;) {
      const running = await findPostmaster(cluster);
      if (running?.status === 'ready' && (await answers(host))) {
        log.info({ pid: running.pid }, 'found PostgreSQL running');
        return;
      }
      if (!running) {
        const failure = await startServer(launch, host, deadline);
        if (!failure) return;
        // The processes of a killed server end by themselves, but not at once.
        if (!failure.includes('pre-existing shared memory block')) throw didNotStart(failure);
      }
      if (Date.now() > deadline) {
        throw running
          ? new Error(
              `PostgreSQL runs as process ${running.pid} but did not answer within ${START_SECONDS}s. ` +
                `Its last words: ${lastLines(await readTail(logFile))}`,
            )
          : didNotStart(await readTail(logFile));
      }
      await sleep(50);
    }
  }

  /** Undefined when the new server answers; otherwise what it said before it went. */
  async function startServer(launch: Launcher, host: string, deadline: number): Promise<string | undefined> {
    const began = Date.now();
    const output = await openLog(logFile);
    const before = (await output.stat()).size;
    const server = launch('postgres', cluster, [...settingsArgs(), '-c', await mark(cluster)], {
      // Its own process group and a file for its words: the server outlives a service that is killed.
      detached: true,
      stdio: ['ignore', output.fd, output.fd],
      env: await ignoringStranger(),
    });
    const exited = once(server, 'exit').catch((error: unknown) => error);
    const end = new AbortController();
    void exited.then(() => end.abort());
    await output.close();
    server.unref();

    while (!end.signal.aborted && Date.now() < deadline) {
      const running = await findPostmaster(cluster);
      if (running?.status === 'ready' && (await answers(host))) {
        child = server;
        log.info({ pid: running.pid, ms: Date.now() - began }, 'started PostgreSQL');
        return undefined;
      }
      await sleep(5);
    }
    if (!end.signal.aborted) return `${await readTail(logFile, before)}\n(not ready after ${START_SECONDS}s)`;
    const outcome = await exited;
    return outcome instanceof Error ? outcome.message : readTail(logFile, before);
  }

  /**
   * A killed server's pid file may name a process that has the number now. PostgreSQL would take it for a server
   * and refuse. It overlooks the number in this variable (meant for pg_ctl's caller), and still checks that no
   * process of the old server is left, which deleting the file would prevent.
   */
  async function ignoringStranger(): Promise<NodeJS.ProcessEnv> {
    const stale = await readPidFile(cluster);
    return stale ? { PG_GRANDPARENT_PID: String(stale.pid) } : {};
  }

  let starting: Promise<void> | undefined;
  async function ensureRunning(): Promise<void> {
    if (stopped) throw new Error('The embedded PostgreSQL was stopped.');
    starting ??= restart().finally(() => (starting = undefined));
    return starting;
  }

  async function restart(): Promise<void> {
    if (await answers(connection.host)) return;
    log.warn({ cluster }, 'PostgreSQL does not answer; starting it');
    await withStartLock(lockFile, START_SECONDS, () => bringUp(launch, connection.host));
  }

  let stopping: Promise<void> | undefined;
  async function stop(): Promise<void> {
    stopped = true;
    stopping ??= end();
    return stopping;
  }

  async function end(): Promise<void> {
    await starting?.catch(() => {});
    await withStartLock(lockFile, START_SECONDS, async () => {
      const running = await findPostmaster(cluster);
      if (running) await endServer(running.pid);
    });
    host.close();
  }

  async function endServer(pid: number): Promise<void> {
    for (const { signal, seconds } of STOP_SIGNALS) {
      const deadline = Date.now() + seconds * 1000;
      process.kill(pid, signal);
      while (await isPostmaster(pid, cluster)) {
        if (Date.now() > deadline) break;
        await sleep(10);
      }
      if (!(await isPostmaster(pid, cluster))) {
        if (child?.exitCode === null && child.signalCode === null) await once(child, 'exit');
        log.info({ pid, signal }, 'stopped PostgreSQL');
        return;
      }
      log.warn({ pid, signal, seconds }, 'PostgreSQL did not stop in time');
    }
    throw new Error(`PostgreSQL, process ${pid}, could not be stopped.`);
  }

  return { connection, ensureRunning, stop };
}

function settingsArgs(): string[] {
  return Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** Whoever answers on the socket is the cluster's server: nobody else may enter its directory. */
async function answers(host: string): Promise<boolean> {
  const client = new Client({
    host,
    port: PORT,
    user: 'corral',
    database: 'postgres',
    ssl: false,
    connectionTimeoutMillis: 5000,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch (error) {
    // Too many connections is an answer too.
    return errorCode(error) === '53300';
  } finally {
    await client.end().catch(() => {});
  }
}

/**
 * A socket's path has room for about a hundred bytes, and a data directory may be deeper than that. Linux reaches
 * an open directory by its number, however long its name.
 */
function socketDirectory(cluster: string): { path: string; close(): void } {
  const room = process.platform === 'linux' ? 107 : 103;
  if (Buffer.byteLength(join(cluster, `.s.PGSQL.${PORT}`)) <= room) return { path: cluster, close() {} };
  if (process.platform !== 'linux') {
    throw new Error(`The path ${cluster} is too long for a socket. Set CORRAL_DATA_DIR to a shorter one.`);
  }
  const fd = openSync(cluster, 'r');
  return { path: `/proc/self/fd/${fd}`, close: () => closeSync(fd) };
}

/** Beside the cluster, not in it: root must not open a file where the server's user could have put a link. */
async function openLog(path: string) {
  const size = await stat(path).then(
    (file) => file.size,
    () => 0,
  );
  if (size > LOG_BYTES) await rename(path, `${path}.1`);
  return open(path, 'a', 0o600);
}

async function readTail(path: string, from = 0): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const start = Math.max(from, size - 4096);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4096), 0, 4096, start);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

function didNotStart(words: string): Error {
  return new Error(`PostgreSQL did not start. Its last words: ${lastLines(words)}`);
}
