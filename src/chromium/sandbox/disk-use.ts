import { spawn } from 'node:child_process';
import { readFile, readdir, readlink, stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { andNoOther } from './descriptors.ts';

/** A session's disk usage. */
export interface DiskUse {
  readonly bytes: number;
  /** Strictly speaking names: a file with two names counts twice. */
  readonly inodes: number;
}

/** Something that has files on the disk and can be ended for them. */
export interface DiskTaker {
  readonly projectId: string;
  use(): Promise<DiskUse>;
  /** Resolves when its files are removed. */
  end(detail: string): Promise<void>;
}

/** A walk that takes longer is aborted and counts as over the limit: the session caused it. */
const WALK_MS = 30_000;
const BLOCK = 512;
const PATH = '/usr/local/bin:/usr/bin:/bin';

/**
 * Counts the files in a session's directory, and unlinked files that one of its processes keeps open or mapped.
 *
 * `find` walks the directory by open directory descriptors and follows no link: a session that renames entries during the walk
 * cannot lead it elsewhere. No file's blocks are counted twice; holes are not counted. The walk ends early when it exceeds `most`.
 * Files that are only in transit in a unix socket are not seen; the reserve of the disk covers them.
 */
export async function diskUse(dir: string, pids: readonly number[], most: DiskUse): Promise<DiskUse> {
  const { dev } = await stat(dir);
  const named = await walk(dir, most);
  if (named.bytes > most.bytes || named.inodes > most.inodes) return named;
  return { ...named, bytes: named.bytes + (await unnamed(pids, dev)) };
}

/**
 * The files in a directory that no process changes any more, each by the larger of its blocks and its length: a file with holes
 * takes nothing here, and everything once it is copied.
 */
export function fullUse(dir: string, most: DiskUse): Promise<DiskUse> {
  return walk(dir, most, Math.max);
}

/** Blocks, size, number of links, and the file's device and inode. */
const FORMAT = String.raw`%b %s %n %D:%i\n`;
/** A session may remove its own user's read permission. Root reads such files; a service that is not root becomes root of a user namespace. */
const AS_OWNER = ['unshare', '--user', '--map-root-user', '--'];

async function walk(
  dir: string,
  most: DiskUse,
  weigh: (taken: number, size: number) => number = (taken) => taken,
): Promise<DiskUse> {
  const find = ['find', '-P', dir, '-printf', FORMAT];
  const [file, ...args] = process.getuid?.() === 0 ? find : [...AS_OWNER, ...find];
  const child = spawn(file!, args, { stdio: andNoOther('ignore', 'pipe', 'ignore'), cwd: '/', env: { PATH } });
  const failed = new Promise<never>((_, reject) => child.once('error', reject));
  const late = setTimeout(() => child.kill('SIGKILL'), WALK_MS);
  const links = new Set<string>();
  let [bytes, inodes] = [0, 0];
  const read = async () => {
    for await (const line of createInterface({ input: child.stdout! })) {
      const [blocks, size, names, which = ''] = line.split(' ');
      inodes++;
      const again = names !== '1' && links.has(which);
      if (names !== '1') links.add(which);
      if (!again) bytes += weigh(Number(blocks) * BLOCK, Number(size));
      if (bytes > most.bytes || inodes > most.inodes) break;
    }
  };
  try {
    await Promise.race([read(), failed]);
    if (child.signalCode) inodes = Math.max(inodes, most.inodes + 1); // cancelled
    return { bytes, inodes };
  } finally {
    clearTimeout(late);
    child.kill('SIGKILL');
  }
}

/** Bytes of unlinked files on this device that are open or mapped in one of these processes. */
async function unnamed(pids: readonly number[], dev: number): Promise<number> {
  const found = new Map<number, number>();
  for (const pid of pids) {
    await openFiles(pid, dev, found).catch(() => {}); // the process has exited
    await mappedFiles(pid, dev, found).catch(() => {});
  }
  return [...found.values()].reduce((sum, bytes) => sum + bytes, 0);
}

async function openFiles(pid: number, dev: number, found: Map<number, number>): Promise<void> {
  for (const descriptor of await readdir(`/proc/${pid}/fd`)) {
    const path = `/proc/${pid}/fd/${descriptor}`;
    if ((await readlink(path).catch(() => '')).endsWith(' (deleted)')) await weigh(path, dev, found);
  }
}

async function weigh(path: string, dev: number, found: Map<number, number>): Promise<boolean> {
  const file = await stat(path).catch(() => undefined);
  if (!file) return false;
  if (file.dev === dev && file.nlink === 0 && file.isFile()) found.set(file.ino, file.blocks * BLOCK);
  return true;
}

/** Only root may stat mapped files. Otherwise the end of the mapping counts as the size, which overestimates it. */
async function mappedFiles(pid: number, dev: number, found: Map<number, number>): Promise<void> {
  const device = `${hex(major(dev))}:${hex(minor(dev))}`;
  for (const line of (await readFile(`/proc/${pid}/maps`, 'latin1')).split('\n')) {
    if (!line.endsWith(' (deleted)')) continue;
    const [range = '', , offset = '', on, inode] = line.split(/ +/, 5);
    if (on !== device || found.has(Number(inode))) continue;
    if (await weigh(`/proc/${pid}/map_files/${range}`, dev, found)) continue;
    const [from = 0, to = 0] = range.split('-').map((address) => Number.parseInt(address, 16));
    found.set(Number(inode), to - from + Number.parseInt(offset, 16));
  }
}

const hex = (number: number) => number.toString(16).padStart(2, '0');
const major = (dev: number) => Math.floor(dev / 256) % 4096;
const minor = (dev: number) => (dev % 256) + 256 * Math.floor(dev / 2 ** 20);
