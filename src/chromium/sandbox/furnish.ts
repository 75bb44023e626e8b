import { appendFileSync, writeFileSync } from 'node:fs';
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  rmdir,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode } from '../../lib/error-code.ts';
import { makeDirectory, removeTree } from './outside.ts';
import type { Owner } from './owners.ts';
import { HOME, MOUNTED_ETC, UID } from './mounts.ts';

/**
 * A session's directory. The service owns it: under root the session's user may only walk through it, and a session sees
 * only its mounts. So the names in it can be trusted, and so can `etc`, which is read-only for sessions. outside.ts handles what a
 * session writes.
 */

/** Creates the directory and the home in it where missing. Returns the outermost directory it created for each. */
export async function makeDirectories(dir: string): Promise<string[]> {
  const made: string[] = [];
  for (const path of [dir, join(dir, 'home')]) {
    const first = await mkdir(path, { recursive: true, mode: 0o700 });
    if (first !== undefined) made.push(first);
  }
  return made;
}

/** Adds names to `etc/hosts` of a directory that is furnished. */
export function addHosts(dir: string, hosts: readonly { name: string; address: string }[]): void {
  for (const { name, address } of hosts) appendFileSync(join(dir, 'etc/hosts'), `${address} ${name}\n`);
}

/** Lets programs in a directory that is furnished ask this server for names that `etc/hosts` has not: over TCP, as all listeners of a namespace are. */
export function addNameServer(dir: string, address: string): void {
  writeFileSync(join(dir, 'etc/resolv.conf'), `nameserver ${address}\noptions use-vc timeout:5 attempts:1\n`);
  writeFileSync(join(dir, 'etc/nsswitch.conf'), switchedTo('files dns'));
}

const switchedTo = (hosts: string) => `passwd: files\ngroup: files\nhosts: ${hosts}\n`;

/** Creates a session's directories, each owned by the user that writes there. The content of `home` is kept, the rest is recreated. */
export async function furnish(dir: string, owner: Owner, policy: Record<string, unknown> | undefined): Promise<void> {
  const etc = join(dir, 'etc');
  const policies = join(etc, 'chromium/policies/managed');
  await Promise.all([rm(etc, { recursive: true, force: true }), ...WRITTEN.map((name) => removeTree(join(dir, name)))]);
  await mkdir(policies, { recursive: true });
  await mkdir(join(dir, 'extensions'), { recursive: true, mode: 0o755 });
  await keep(dir, owner);
  await Promise.all([
    ...MOUNTED_ETC.filter(({ exists }) => exists).map(async ({ name, isDirectory }) => {
      await mkdir(isDirectory ? join(etc, name) : dirname(join(etc, name)), { recursive: true });
      if (!isDirectory) await writeFile(join(etc, name), '');
    }),
    writeFile(
      join(etc, 'passwd'),
      `corral:x:${UID}:${UID}:Corral:${HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n`,
    ),
    writeFile(join(etc, 'group'), `corral:x:${UID}:\nnogroup:x:65534:\n`),
    writeFile(join(etc, 'hosts'), '127.0.0.1 localhost browser\n::1 localhost\n'),
    writeFile(join(etc, 'nsswitch.conf'), switchedTo('files')),
    // Constant: the real one would identify the machine to every session on it.
    writeFile(join(etc, 'machine-id'), `${'c0'.repeat(16)}\n`),
    mkdir(join(etc, 'opt')).then(() => symlink('../chromium', join(etc, 'opt/chrome'))), // where the branded build looks
    policy === undefined ? undefined : writeFile(join(policies, 'session.json'), JSON.stringify(policy)),
    makeDirectory(join(dir, 'home'), owner),
    ...['tools', 'app'].map((name) => mkdir(join(dir, name), { recursive: true })), // something is mounted over them
  ]);
}

/** Directories beside the home that sessions or their displays write to. */
const WRITTEN = ['run', 'display'];

/** For a session without a sandbox: its directory for temporary files. */
export const makeRun = (dir: string, owner: Owner) => makeDirectory(join(dir, 'run'), owner);

/** The service owns `display`, so that nothing in it can be replaced. Xvnc owns `display/x11` and `display/rfb`. */
export async function furnishDisplay(dir: string, owner: Owner): Promise<void> {
  const at = join(dir, 'display');
  await mkdir(at, { mode: 0o700 });
  await keep(at, owner);
  await Promise.all(['x11', 'rfb'].map((name) => makeDirectory(join(at, name), owner)));
}

/** Removes what `furnish` created, except the home: the profile in it may still be saved. */
export async function clear(dir: string): Promise<void> {
  await rmdir(join(dir, 'extensions')).catch(() => {}); // fails when there are extensions, which the next browser needs
  await Promise.all([
    ...WRITTEN.map((name) => removeTree(join(dir, name))),
    ...['etc', 'tools', 'app', 'process'].map((name) =>
      rm(join(dir, name), { recursive: true, force: true, maxRetries: 3 }),
    ),
  ]);
}

/** A home for a profile that is unpacked before a browser runs there. */
export async function makeHome(dir: string, owner: Owner): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await keep(dir, owner);
  await makeDirectory(join(dir, 'home'), owner);
}

/** Adds a directory to `extensions` atomically. False when the name is taken. */
export async function addExtension(
  dir: string,
  { name, owner }: { name: string; owner: Owner },
  fill: (to: string) => Promise<void>,
): Promise<boolean> {
  const draft = await mkdtemp(join(dir, 'incoming-'));
  try {
    await fill(draft);
    await makeDirectory(draft, owner);
    await rename(draft, join(dir, 'extensions', name));
    return true;
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(String(errorCode(error)))) return false;
    throw error;
  } finally {
    await removeTree(draft);
  }
}

/** Records a line for each process group before it runs: a service that starts after a kill reads them. */
export function record(dir: string, line: string): void {
  appendFileSync(join(dir, 'process'), `${line}\n`);
}

/** The recorded lines of all directories in `sessions`. */
export async function recorded(sessions: string): Promise<string[]> {
  const texts = (await readdir(sessions).catch(() => [])).map((name) =>
    readFile(join(sessions, name, 'process'), 'utf8').catch(() => ''),
  );
  return (await Promise.all(texts)).flatMap((text) => text.split('\n')).filter(Boolean);
}

/** The unprivileged user may walk through the directory but does not own it, so it cannot replace anything in it. */
async function keep(dir: string, owner: Owner): Promise<void> {
  if (process.getuid?.() === 0) await chown(dir, 0, owner.gid).then(() => chmod(dir, 0o710));
}
