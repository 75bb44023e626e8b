import { once } from 'node:events';
import { access, chmod, chown, lchown, mkdtemp, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errorCode } from '../lib/error-code.ts';
import type { Launcher } from './launcher.ts';
import { lastLines } from './server-log.ts';
import type { ServerUser } from './server-user.ts';

const DRAFT = '.new-';

/** Whether a cluster exists. initdb only ever runs in another directory, so an existing cluster is complete. */
export function clusterExists(cluster: string): Promise<boolean> {
  return access(join(cluster, 'PG_VERSION')).then(
    () => true,
    // A cluster that this user may not read exists too.
    (error: unknown) => errorCode(error) !== 'ENOENT',
  );
}

/**
 * Makes the cluster beside its place and moves it in, so that a crash leaves nothing half made. `launcherFor` finds how
 * to run programs on a directory of the server's user; the result is valid for the cluster, too.
 */
export async function initCluster(
  cluster: string,
  user: ServerUser | undefined,
  launcherFor: (directory: string) => Promise<Launcher>,
): Promise<Launcher> {
  const draft = await mkdtemp(`${cluster}${DRAFT}`);
  try {
    if (user) await chown(draft, user.uid, user.gid);
    const launch = await launcherFor(draft);
    await initdb(launch, draft);
    await rename(draft, cluster).catch((error: unknown) => {
      if (!['ENOTEMPTY', 'EEXIST'].includes(errorCode(error) ?? '')) throw error;
      throw new Error(`${cluster} holds files but no PostgreSQL cluster. Move them away and start again.`);
    });
    await syncDirectory(dirname(cluster));
    return launch;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** A cluster restored from a backup may have lost its owner and mode, and PostgreSQL insists on both. */
export async function claimCluster(cluster: string, user: ServerUser | undefined): Promise<void> {
  const { uid } = await stat(cluster);
  const expected = user?.uid ?? process.getuid?.() ?? uid;
  if (uid !== expected && !user) {
    throw new Error(
      `${cluster} belongs to uid ${uid}, and this service runs as uid ${expected}. ` +
        `Start it as that user or as root, or run 'chown -R ${expected} ${cluster}' as root.`,
    );
  }
  if (user && uid !== expected) await chownTree(cluster, user);
  await chmod(cluster, 0o700);
}

async function chownTree(directory: string, user: ServerUser): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await chownTree(path, user);
    else await lchown(path, user.uid, user.gid);
  }
  // Last, so that after a crash half way the top still has its old owner and the next start does it again.
  await chown(directory, user.uid, user.gid);
}

async function initdb(launch: Launcher, directory: string): Promise<void> {
  const child = launch(
    'initdb',
    directory,
    [
      '--username=corral',
      '--encoding=UTF8',
      // ICU is part of the distribution, so text sorts the same on every machine.
      '--locale-provider=icu',
      '--icu-locale=und',
      '--locale=C',
      // No access until the password is set; see password.ts.
      '--auth-local=reject',
      '--auth-host=reject',
      '--no-instructions',
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let output = '';
  child.stdout?.on('data', (chunk) => (output += String(chunk)));
  child.stderr?.on('data', (chunk) => (output += String(chunk)));
  const [code]: unknown[] = await once(child, 'close');
  if (code !== 0) {
    throw new Error(`PostgreSQL could not create its data directory. The end of its log: ${lastLines(output)}`);
  }
}

/** Removes leftovers of a killed start. If a leftover initdb still writes there, the next start tries again. */
export async function removeDrafts(cluster: string): Promise<void> {
  const prefix = basename(cluster) + DRAFT;
  for (const name of await readdir(dirname(cluster))) {
    if (!name.startsWith(prefix)) continue;
    await rm(join(dirname(cluster), name), { recursive: true, force: true }).catch(() => {});
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
