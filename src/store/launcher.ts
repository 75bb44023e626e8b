import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { copyBinaries, installedBinaries, linkLibraries, type Binaries } from './binaries.ts';
import type { ServerUser } from './server-user.ts';

/** Runs a program of the distribution on a cluster directory, as the required user. */
export type Launcher = (
  program: 'initdb' | 'postgres',
  cluster: string,
  args: string[],
  options: { stdio: StdioOptions; detached?: boolean; env?: NodeJS.ProcessEnv },
) => ChildProcess;

/** A way to run a command that sees the distribution and the cluster at these paths. */
interface Stage {
  native: string;
  at(cluster: string): string;
  wrap(cluster: string, argv: string[]): string[];
  user?: ServerUser;
}

/** `cluster` is a directory that the server's user owns. How programs run depends on whether that user can reach it. */
export async function findLauncher(dataDir: string, cluster: string, user: ServerUser | undefined): Promise<Launcher> {
  const installed = await installedBinaries();
  if (await linkLibraries(installed)) {
    const stage = await reachable(installed, cluster, user);
    if (stage) return launcherOn(stage);
  }
  const copied = await copyBinaries(installed, dataDir);
  const stage = await reachable(copied, cluster, user);
  if (stage) return launcherOn(stage);

  const obstacle = (await closedDirectory(cluster)) ?? (await closedDirectory(copied.native)) ?? cluster;
  throw new Error(
    `PostgreSQL refuses root and so runs as ${user?.name}, which cannot work in ${obstacle}, and bubblewrap could not ` +
      `get around that. Run 'chmod o+x ${obstacle}', or set CORRAL_DATA_DIR to a directory that is open to that user.`,
  );
}

async function reachable({ native }: Binaries, cluster: string, user?: ServerUser): Promise<Stage | undefined> {
  const inPlace: Stage = { native, at: (path) => path, wrap: (_, argv) => argv, ...(user && { user }) };
  if (!user || (await canWork(inPlace, cluster))) return inPlace;

  // A home directory or `mktemp -d` is closed to other users. A mount namespace shows the server the two directories it
  // needs at a place it can enter, and opens nothing to other users.
  const mounted: Stage = {
    native: '/mnt/pg',
    at: () => '/mnt/data',
    wrap: (path, argv) => [
      'bwrap',
      ...'--dev-bind / / --tmpfs /mnt --chdir / --cap-add CAP_SETUID --cap-add CAP_SETGID'.split(' '),
      '--ro-bind',
      native,
      '/mnt/pg',
      '--bind',
      path,
      '/mnt/data',
      ...`setpriv --reuid ${user.uid} --regid ${user.gid} --clear-groups`.split(' '),
      ...argv,
    ],
  };
  return (await canWork(mounted, cluster)) ? mounted : undefined;
}

/** Tests access as that user: access lists and security modules also apply, and mode bits do not show them. */
async function canWork(stage: Stage, cluster: string): Promise<boolean> {
  const question = 'test -x "$1/bin/postgres" && test -r "$1/share/postgresql/postgres.bki" && cd "$2" && test -w .';
  const argv = ['sh', '-c', question, 'sh', stage.native, stage.at(cluster)];
  const child = run(stage, cluster, argv, { stdio: 'ignore' });
  return once(child, 'exit').then(
    ([code]) => code === 0,
    () => false,
  );
}

function launcherOn(stage: Stage): Launcher {
  return (program, cluster, args, options) => {
    const mode = args[0] === '--single' ? args.slice(0, 1) : []; // PostgreSQL requires it first
    const argv = [join(stage.native, 'bin', program), ...mode, '-D', stage.at(cluster), ...args.slice(mode.length)];
    return run(stage, cluster, argv, options);
  };
}

function run(stage: Stage, cluster: string, argv: string[], options: Parameters<Launcher>[3]): ChildProcess {
  const [file = '', ...args] = stage.wrap(cluster, argv);
  return spawn(file, args, {
    ...options,
    ...(stage.user && { uid: stage.user.uid, gid: stage.user.gid }),
    // The service's own directory may be closed to that user.
    cwd: '/',
    // Not the service's environment: it holds keys, and PG* variables that would change the server.
    env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', ...options.env },
  });
}

async function closedDirectory(path: string): Promise<string | undefined> {
  const parent = dirname(path);
  if (parent === path) return undefined;
  const above = await closedDirectory(parent);
  return above ?? ((await stat(parent)).mode & 0o001 ? undefined : parent);
}
