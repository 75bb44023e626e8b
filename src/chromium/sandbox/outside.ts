import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { chmod, chown, lstat, mkdir, open, readdir, rename, rmdir, unlink } from 'node:fs/promises';
import net from 'node:net';
import { join } from 'node:path';
import { errorCode } from '../../lib/error-code.ts';
import type { Owner } from './owners.ts';
import { run } from './run.ts';
import { systemDirectories } from './mounts.ts';

/**
 * What the service does, from outside, with things that a session can change: all of it is here. The session's directory is the
 * service's, and so are the names in it; what is in `home`, `run`, `display/*` and `extensions/*` is the session's, at any moment. Below
 * those, no name is trusted: each directory is opened without following a link, and what is in it is reached by the descriptor. What is
 * worked on as a whole is left to programs that do the same, or that see nothing else.
 */

/** Linux; Node has no name for it. The descriptor stands for the thing and cannot be read. */
const O_PATH = 0o10000000;
const DIRECTORY = O_PATH | constants.O_NOFOLLOW | constants.O_DIRECTORY;

/** What a tree of ordinary size has. A browser that just started has 90 names in 40 directories. */
const MOST_NAMES = 2000;
const MOST_DIRECTORIES = 200;
/** Of a directory itself, which grows with the names in it. */
const MOST_BYTES = 2 ** 18;

/** A unix socket that is connected to by what it is, not by what it is called. */
export interface PinnedSocket {
  /** After `close` the connection fails at once. */
  connect(): net.Socket;
  close(): void;
}

/** Whoever puts another socket or a link in the place of `path` after this changes nothing. */
export function pinSocket(path: string): PinnedSocket {
  let pinned: number | undefined = openSync(path, O_PATH | constants.O_NOFOLLOW);
  const close = () => {
    if (pinned !== undefined) closeSync(pinned);
    pinned = undefined;
  };
  if (!fstatSync(pinned).isSocket()) {
    close();
    throw new Error(`${path} is not a socket.`);
  }
  return {
    // The number of a closed descriptor may be another session's by now, so it is not used any more.
    connect: () =>
      pinned === undefined
        ? new net.Socket().destroy(new Error('The socket is closed.'))
        : net.connect({ path: `/proc/self/fd/${pinned}` }),
    close,
  };
}

/** A name in a directory of a session's: `within` is the way there from `dir`, which is the service's. */
export interface Entry {
  readonly dir: string;
  readonly within: readonly string[];
  readonly name: string;
}

/** Removes files, or links, by these names. Those that are not there are gone already; a link on the way there is left alone. */
export async function removeFiles(dir: string, within: readonly string[], names: readonly string[]): Promise<void> {
  await inDirectory(dir, within, (at) =>
    Promise.all(names.map((name) => unlink(join(at, name)).catch(unlessCode('ENOENT', 'EISDIR', 'EPERM')))),
  ).catch(unlessCode('ENOENT', 'ENOTDIR', 'ELOOP'));
}

/** Gives a thing another name. What is moved may be a link: it is not looked at. Answers false when it is not there. */
export async function move(from: Entry, to: Entry): Promise<boolean> {
  try {
    await inDirectory(from.dir, from.within, (source) =>
      inDirectory(to.dir, to.within, (target) => rename(join(source, from.name), join(target, to.name))),
    );
    return true;
  } catch (error) {
    unlessCode('ENOENT')(error);
    return false;
  }
}

/**
 * Makes a directory that only its owner enters, by a name in a directory of the service's. What was in it already, a restored profile,
 * becomes theirs too.
 */
export async function makeDirectory(path: string, { uid, gid }: Owner): Promise<void> {
  const made = await mkdir(path, { recursive: true, mode: 0o700 });
  await inDirectory(path, [], async (at, before) => {
    await chmod(at, 0o700);
    if (process.getuid?.() !== 0) return;
    await chown(at, uid, gid);
    if (made !== undefined || before === uid || (await readdir(at)).length === 0) return;
    await run('chown', ['-R', '-P', '-h', `${uid}:${gid}`, '--', path]); // goes down by open directories
  });
}

/**
 * Removes a directory whose content is a session's, even while that runs. Node's `rm` walks by names, and a link that is put in its way
 * leads it out of the directory; this goes down by open directories, and so does the program that takes over what is larger.
 *
 * What the session has locked against its own user, who is ours where the service is not root, is unlocked first. `chmod` can be led
 * astray by a link that comes at the wrong moment, so it sees nothing but the directory.
 */
export async function removeTree(path: string, { sandboxed = true } = {}): Promise<void> {
  if (!(await lstat(path).catch(unlessCode('ENOENT')))) return;
  if (await removeSmall(path)) return;
  await removeByProgram(path).catch(async (error: unknown) => {
    if (process.getuid?.() === 0) throw error;
    const [file, ...args] = [...(sandboxed ? seeingOnly(path) : []), 'chmod', '-R', 'u+rwX', sandboxed ? TREE : path];
    await run(file, args).catch(() => {}); // it goes as far as it can
    await removeByProgram(path);
  });
}

/**
 * Removes a tree of ordinary size without a program: starting one blocks the service for some 15 ms. Its directories are open at the same
 * time, so a tree of many is left to the program. Answers whether all of it is gone: what still runs may write on.
 */
async function removeSmall(path: string): Promise<boolean> {
  let [names, directories] = [MOST_NAMES, MOST_DIRECTORIES];
  async function empty(dir: string): Promise<void> {
    if (directories-- === 0) throw new Error('too many directories');
    const handle = await open(dir, DIRECTORY);
    const at = `/proc/self/fd/${handle.fd}`;
    try {
      if ((await handle.stat()).size > MOST_BYTES) throw new Error('too many names in a directory');
      const entries = await readdir(at, { withFileTypes: true });
      names -= entries.length;
      if (names < 0) throw new Error('too many names');
      // Also after a failure all are waited for: a closed descriptor's number soon means another directory.
      const removals = entries.map((entry) => remove(join(at, entry.name), entry.isDirectory()));
      const failed = (await Promise.allSettled(removals)).find(({ status }) => status === 'rejected');
      if (failed) throw new Error('not empty');
    } finally {
      await handle.close();
    }
  }
  async function remove(path: string, isDirectory: boolean): Promise<void> {
    if (isDirectory) await empty(path);
    await (isDirectory ? rmdir(path) : unlink(path)).catch(unlessCode('ENOENT'));
  }
  return remove(path, true).then(yes, no);
}

const yes = () => true;
const no = () => false;

const removeByProgram = (path: string) => run('rm', ['-rf', '--', path]);

const TREE = '/tree';

function seeingOnly(path: string): string[] {
  return ['bwrap', '--unshare-all', '--die-with-parent', ...systemDirectories(), '--bind', path, TREE, '--'];
}

/** `use` gets a path that means the directory itself, whatever happens to its names, and whose it was. */
async function inDirectory<T>(
  dir: string,
  within: readonly string[],
  use: (at: string, owner: number) => Promise<T>,
): Promise<T> {
  const [next, ...rest] = within;
  const handle = await open(dir, DIRECTORY);
  const at = `/proc/self/fd/${handle.fd}`;
  try {
    return next === undefined ? await use(at, (await handle.stat()).uid) : await inDirectory(join(at, next), rest, use);
  } finally {
    await handle.close();
  }
}

function unlessCode(...fine: string[]) {
  return (error: unknown): undefined => {
    if (!fine.includes(String(errorCode(error)))) throw error;
  };
}
