import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../lib/log.ts';
import { claimCluster, clusterExists, initCluster, removeDrafts } from './cluster.ts';
import { findLauncher, type Launcher } from './launcher.ts';
import { endPostmaster, isPostmaster, mark, outlivedItsFiles, readPidFile } from './postmaster.ts';
import { lastLines, openLog, readTail } from './server-log.ts';
import { asksFor, readPassword, setPassword } from './password.ts';
import { settingsArgs } from './server-settings.ts';
import { serverUser, type ServerUser } from './server-user.ts';
import { answers, connectionAt, isInUse, openSocketDirectory, WrongPassword, type Connection } from './socket.ts';
import { withStartLock } from './start-lock.ts';

/** The PostgreSQL in the data directory, which the service starts, finds again after a crash, and stops. */
export interface EmbeddedPostgres {
  /** The host is the directory of the socket. Valid in this process only. */
  readonly connection: Connection;
  /** Starts the server again if it died. May be called often and concurrently; after `stop` it refuses. */
  ensureRunning(): Promise<void>;
  /** Ends the server, no matter which process started it, and resolves when it has exited. */
  stop(): Promise<void>;
}

/** Long enough for the recovery of a full write-ahead log on a slow disk. */
const START_SECONDS = 120;
/** The processes of a killed server end by themselves, but not at once. */
const LEFTOVERS_SECONDS = 30;
const LEAVING_SECONDS = 3;

export async function startEmbeddedPostgres({
  dataDir,
  log,
}: {
  dataDir: string;
  log: Log;
}): Promise<EmbeddedPostgres> {
  const home = resolve(dataDir);
  const cluster = join(home, 'postgres');
  await mkdir(home, { recursive: true });
  const exclusively = <T>(work: () => Promise<T>) => withStartLock(join(home, 'postgres.lock'), START_SECONDS, work);

  const { server, socket, connection } = await exclusively(async () => {
    const { launch, user } = await prepareCluster(home, cluster, log);
    const socket = openSocketDirectory(cluster);
    try {
      const connection = connectionAt(socket.host, await readPassword(home));
      const server = serverOf({ cluster, user, connection, launch, logFile: join(home, 'postgres.log'), log });
      await server.bringUp();
      return { server, socket, connection };
    } catch (error) {
      socket.close();
      throw error;
    }
  });

  let starting: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;

  async function restart(): Promise<void> {
    if (await answers(connection)) return;
    log.warn({ cluster }, 'PostgreSQL does not answer');
    await exclusively(server.bringUp);
  }

  async function end(): Promise<void> {
    await starting?.catch(() => {});
    await exclusively(server.end);
    socket.close();
  }

  return {
    connection,

    async ensureRunning() {
      // A pool that reconnects late must not restart the stopped server.
      if (stopping) throw new Error('The embedded PostgreSQL was stopped.');
      await (starting ??= restart().finally(() => (starting = undefined)));
    },

    async stop() {
      await (stopping ??= end());
    },
  };
}

/** Ensures a complete cluster owned by the server's user, and finds how to run programs on it. */
async function prepareCluster(dataDir: string, cluster: string, log: Log) {
  const user = await serverUser(cluster);
  await removeDrafts(cluster);
  const launcherFor = (directory: string) => findLauncher(dataDir, directory, user);
  if (await clusterExists(cluster)) {
    await claimCluster(cluster, user);
    return { user, launch: await launcherFor(cluster) };
  }
  log.info({ cluster, user: user?.name }, 'making the PostgreSQL data directory');
  return { user, launch: await initCluster(cluster, user, launcherFor) };
}

/** Both functions need the start lock to be held. */
function serverOf({
  cluster,
  user,
  connection,
  launch,
  logFile,
  log,
}: {
  cluster: string;
  user: ServerUser | undefined;
  connection: Connection;
  launch: Launcher;
  logFile: string;
  log: Log;
}) {
  const { password } = connection;
  /** The server, if it is a child of this process. The direct child may be a wrapper (bwrap) that waits for its end. */
  let child: ChildProcess | undefined;

  /** Resolves when the server answers: a running, a starting or a new one. */
  async function bringUp(): Promise<void> {
    const began = Date.now();
    const passed = (seconds: number) => Date.now() - began > seconds * 1000;

    for (;;) {
      const claim = await readPidFile(cluster);
      if (claim && (await isPostmaster(claim.pid, cluster))) {
        if (claim.status === 'ready' && (await answers(connection).catch(says(claim.pid)))) {
          log.info({ pid: claim.pid }, 'found PostgreSQL running');
          // An installation after the service was killed replaced the files, or an earlier version started it without a password.
          const outdated = (await outlivedItsFiles(claim.pid)) || !(await asksFor(password, cluster));
          if (!outdated) return;
          // A server that another process uses is left running; otherwise it is restarted.
          if (!(await staysInUse(connection))) {
            await end();
            continue;
          }
          log.warn(
            { pid: claim.pid },
            'PostgreSQL is of an earlier version and in use: it is renewed at the next start',
          );
          return;
        }
        // It is starting or stopping, and its progress is not known: wait.
        if (passed(START_SECONDS)) {
          throw failed(`runs as process ${claim.pid} but does not answer`, await readTail(logFile));
        }
      } else {
        const ready = await asksFor(password, cluster);
        const words = await (ready ? launchServer(claim?.pid) : secure(claim?.pid));
        if (words === undefined && ready) return;
        if (words === undefined) continue;
        const leftovers = words.includes('pre-existing shared memory block');
        if (!leftovers || passed(LEFTOVERS_SECONDS)) throw failed('did not start', words);
      }
      await sleep(50);
    }
  }

  const secure = (stalePid: number | undefined) => setPassword(password, cluster, user, launch, overlook(stalePid));

  /** Undefined when the new server answers; otherwise its output before it exited. */
  async function launchServer(stalePid: number | undefined): Promise<string | undefined> {
    const began = Date.now();
    const output = await openLog(logFile);
    const { size } = await output.stat();
    const server = launch('postgres', cluster, [...settingsArgs, '-c', await mark(cluster)], {
      // Its own process group and a file for its output: the server outlives a service that is killed.
      detached: true,
      stdio: ['ignore', output.fd, output.fd],
      env: overlook(stalePid),
    });
    const over = once(server, 'exit').catch((error: unknown) => [error]);
    server.unref();
    await output.close();

    while (Date.now() - began < START_SECONDS * 1000) {
      const exit = await Promise.race([over, sleep(5)]);
      if (exit) return exit[0] instanceof Error ? exit[0].message : readTail(logFile, size);

      const claim = await readPidFile(cluster);
      // The old file says ready until it is replaced.
      if (claim?.status !== 'ready' || !(await isPostmaster(claim.pid, cluster))) continue;
      if (await answers(connection)) {
        child = server;
        log.info({ pid: claim.pid, ms: Date.now() - began }, 'started PostgreSQL');
        return undefined;
      }
    }
    return `${await readTail(logFile, size)}\n(it was not ready after ${START_SECONDS}s)`;
  }

  async function end(): Promise<void> {
    const claim = await readPidFile(cluster);
    if (!claim || !(await isPostmaster(claim.pid, cluster))) return;
    await endPostmaster(claim.pid, cluster, log);
    if (child && child.exitCode === null && child.signalCode === null) {
      child.ref();
      await once(child, 'exit');
    }
    log.info({ pid: claim.pid }, 'stopped PostgreSQL');
  }

  return { bringUp, end };
}

/**
 * The pid file of a killed server may name a process that has reused its pid. PostgreSQL would take that process for a
 * server and refuse to start; it ignores the pid in this variable, which pg_ctl uses for its caller. Deleting the file
 * instead would also delete what PostgreSQL needs to detect leftover processes of the old server.
 */
function overlook(stalePid: number | undefined): NodeJS.ProcessEnv {
  return stalePid === undefined ? {} : { PG_GRANDPARENT_PID: String(stalePid) };
}

/** The server takes some milliseconds to notice that the connections of a killed service are closed. */
async function staysInUse(connection: Connection): Promise<boolean> {
  for (const deadline = Date.now() + LEAVING_SECONDS * 1000; Date.now() < deadline; await sleep(50)) {
    if (!(await isInUse(connection))) return false;
  }
  return true;
}

/** Without its password, the server cannot be asked whether a service still uses it, so it is not ended here. */
function says(pid: number) {
  return (error: unknown): never => {
    if (!(error instanceof WrongPassword)) throw error;
    throw new Error(
      `The embedded PostgreSQL runs as process ${pid} with another password than the one in 'postgres-password' of the data ` +
        `directory. Stop the service that uses it; if there is none, run 'kill ${pid}'. Then start again.`,
    );
  };
}

function failed(what: string, words: string): Error {
  return new Error(`The embedded PostgreSQL ${what}. The end of its log: ${lastLines(words)}`);
}
