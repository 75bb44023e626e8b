import { closeSync, constants, fstatSync, lstatSync, openSync, unlinkSync } from 'node:fs';
import { chmod, chown, lstat, mkdir, open, readdir, rename, rmdir, stat, statfs, unlink } from 'node:fs/promises';
import net from 'node:net';
import { basename, dirname, join } from 'node:path';
import { errorCode } from '../../lib/error-code.ts';
import type { Owner } from './owners.ts';
import { run } from './run.ts';
import { systemDirectories } from './mounts.ts';

/**
 * All operations of the service, from outside, on files that a session can change. The service owns the session's directory
 * and the names in it; a session may change the content of `home`, `run`, `display/*` and `extensions/*` at any moment. Below
 * those, no name is trusted: each directory is opened without following a link, and its content is reached by the descriptor. Whole
 * trees are left to programs that do the same, or that see nothing else.
 */

/** Linux only; Node has no constant for it. The descriptor identifies a file but cannot read it. */
const O_PATH = 0o10000000;
const DIRECTORY = O_PATH | constants.O_NOFOLLOW | constants.O_DIRECTORY;

/** Bounds of a tree of ordinary size. A browser that just started has 90 names in 40 directories. */
const MOST_NAMES = 2000;
const MOST_DIRECTORIES = 200;
/** Size of a directory itself, which grows with the number of names in it. */
const MOST_BYTES = 2 ** 18;

/** A unix socket that is connected to by descriptor, not by name. */
export interface PinnedSocket {
  /** After `close` the connection fails at once. */
  connect(): net.Socket;
  close(): void;
}

/** Replacing `path` by another socket or a link afterwards has no effect. */
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
    // Another session may have the number of a closed descriptor by now, so it is not used.
    connect: () =>
      pinned === undefined
        ? new net.Socket().destroy(new Error('The socket is closed.'))
        : net.connect({ path: `/proc/self/fd/${pinned}` }),
    close,
  };
}

/** Pins a file that may be there. The result removes it, unless another file has its name by then. Call it once. */
export function pinForRemoval(path: string): () => void {
  let pinned: number;
  try {
    pinned = openSync(path, O_PATH | constants.O_NOFOLLOW);
  } catch {
    return () => {};
  }
  return () => {
    const directory = openSync(dirname(path), DIRECTORY);
    try {
      const { dev, ino } = fstatSync(pinned);
      const at = join(`/proc/self/fd/${directory}`, basename(path));
      const now = lstatSync(at, { throwIfNoEntry: false });
      if (now?.dev === dev && now.ino === ino) unlinkSync(at);
    } finally {
      closeSync(directory);
      closeSync(pinned); // until here no other file can have its number
    }
  };
}

/** A name in a session's directory: `within` is the path to it from `dir`, which the service owns. */
interface Entry {
  readonly dir: string;
  readonly within: readonly string[];
  readonly name: string;
}

/** Removes files or links by these names. Missing ones are ignored; nothing is removed if the path contains a link. */
export async function removeFiles(dir: string, within: readonly string[], names: readonly string[]): Promise<void> {
  await inDirectory(dir, within, (at) =>
    Promise.all(names.map((name) => unlink(join(at, name)).catch(unlessCode('ENOENT', 'EISDIR', 'EPERM')))),
  ).catch(unlessCode('ENOENT', 'ENOTDIR', 'ELOOP'));
}

/** Renames an entry. A link is moved itself, not its target. False when the entry is missing. */
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

const TMPFS = 0x01021994;

/** The tmpfs that a process sees at an absolute path: its id, and the size of its files. Undefined: there is none. */
export async function memoryDisk(pid: number, path: string): Promise<{ dev: number; bytes: number } | undefined> {
  const [first = '', ...rest] = path.split('/').slice(1);
  return inDirectory(join(`/proc/${pid}/root`, first), rest, async (at) => {
    const { type, bsize, blocks, bfree } = await statfs(at);
    return type === TMPFS ? { dev: (await stat(at)).dev, bytes: (blocks - bfree) * bsize } : undefined;
  });
}

/** A larger file is left as it is. Chromium's preferences have some 100 kB. */
const MOST_REWRITTEN = 8 * 2 ** 20;

/**
 * Rewrites a small file atomically: `change` gets its text, or undefined where it is missing, and returns the new one, or
 * undefined to leave it. Missing directories are made. False when the file could not be rewritten: the session put something else there.
 */
export async function rewrite(
  { dir, within, name }: Entry,
  owner: Owner,
  change: (text: string | undefined) => string | undefined,
): Promise<boolean> {
  const [first = '', ...rest] = within;
  try {
    return await inDirectory(dir, [first], (at) => rewriteIn(at, rest, name, owner, change));
  } catch (error) {
    unlessCode('ENOTDIR', 'ELOOP', 'EISDIR', 'EEXIST', 'ENOENT', 'EACCES')(error);
    return false;
  }
}

async function rewriteIn(
  at: string,
  [next, ...rest]: readonly string[],
  name: string,
  owner: Owner,
  change: (text: string | undefined) => string | undefined,
): Promise<boolean> {
  if (next !== undefined) {
    const made = await mkdir(join(at, next), { mode: 0o700 }).then(yes, unlessCode('EEXIST'));
    return inDirectory(join(at, next), [], async (below) => {
      if (made) await give(below, owner);
      return rewriteIn(below, rest, name, owner, change);
    });
  }
  const text = await readSmall(join(at, name));
  const changed = text === null ? undefined : change(text);
  if (changed === undefined) return text !== null;
  const draft = join(at, `.${name}.corral`);
  await unlink(draft).catch(unlessCode('ENOENT'));
  const file = await open(
    draft,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    await file.writeFile(changed);
    if (process.getuid?.() === 0) await file.chown(owner.uid, owner.gid);
  } finally {
    await file.close();
  }
  await rename(draft, join(at, name));
  return true;
}

/** Undefined when there is no such file, null when it is not a small file. */
async function readSmall(path: string): Promise<string | undefined | null> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK; // a pipe without a writer would wait
  const file = await open(path, flags).catch(unlessCode('ENOENT'));
  if (!file) return undefined;
  try {
    const stat = await file.stat();
    if (!stat.isFile() || stat.size > MOST_REWRITTEN) return null;
    const { buffer, bytesRead } = await file.read(Buffer.alloc(stat.size), 0, stat.size, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

/** By the path of a descriptor, which no link replaces. */
async function give(at: string, { uid, gid }: Owner): Promise<void> {
  if (process.getuid?.() === 0) await chown(at, uid, gid);
}

/**
 * Creates a directory that only its owner may enter, in a directory that the service owns. Existing content, such as a restored profile,
 * is given to the owner too.
 */
export async function makeDirectory(path: string, { uid, gid }: Owner): Promise<void> {
  const made = await mkdir(path, { recursive: true, mode: 0o700 });
  await inDirectory(path, [], async (at, before) => {
    await chmod(at, 0o700);
    if (process.getuid?.() !== 0) return;
    await chown(at, uid, gid);
    if (made !== undefined || before === uid || (await readdir(at)).length === 0) return;
    await run('chown', ['-R', '-P', '-h', `${uid}:${gid}`, '--', path]); // walks by open directories
  });
}

/**
 * Removes a directory with content that a session owns, even while the session runs. Node's `rm` walks by names, and a link put in its path
 * leads it out of the directory: in a test it removed 2912 of 3000 files elsewhere. This function walks by open
 * directories, and so does the program that removes larger trees.
 *
 * Where the service is not root, it is the session's user, and files that deny access to that user get it back first. A link that appears
 * at the wrong moment can mislead `chmod`, so `chmod` sees only the directory.
 */
export async function removeTree(path: string, { sandboxed = true } = {}): Promise<void> {
  if (!(await lstat(path).catch(unlessCode('ENOENT')))) return;
  if (await removeSmall(path)) return;
  await removeByProgram(path).catch(async (error: unknown) => {
    if (process.getuid?.() === 0) throw error;
    const [file, ...args] = [...(sandboxed ? seeingOnly(path) : []), 'chmod', '-R', 'u+rwX', sandboxed ? TREE : path];
    await run(file, args).catch(() => {}); // it changes as much as it can
    await removeByProgram(path);
  });
}

/**
 * Removes a tree of ordinary size without a program: starting one blocks the service for some 15 ms. All directories are open at the same
 * time, so a tree with many is left to the program. Returns whether all of it is removed: running processes may still write.
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
      // Wait for all removals even after a failure: a closed descriptor's number soon means another directory.
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

/** `use` gets a path that stays valid when the directory is renamed, and the directory's owner. */
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
