import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, cp, mkdir, open, realpath, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Fault } from './fault.ts';

/** Incoming files have names of this kind until they are complete; watches do not report them. */
const MARK = /^\.corral-[0-9a-f]{16}\.part$/;

export const isIncoming = (name: string) => MARK.test(name);

/**
 * A file that is being written. It is written next to its destination and replaces it when complete: readers find the old file or the new
 * one, and a client that disconnects in the middle leaves nothing.
 */
export class Incoming {
  size = 0;
  readonly path: string;
  #file: FileHandle | undefined;

  private constructor(path: string, file: FileHandle) {
    this.path = path;
    this.#file = file;
  }

  /** Writes next to the destination if it is known yet; otherwise in the home directory, which is on the disk and not in memory. */
  static async to(dest: string | undefined): Promise<Incoming> {
    const dir = dest === undefined ? homeDirectory() : dirname(await finalPath(dest));
    await makeDirectories(dir);
    const path = join(dir, `.corral-${randomBytes(8).toString('hex')}.part`);
    const flags = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW;
    return new Incoming(path, await open(path, flags, 0o600));
  }

  async add(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const { bytesWritten } = await this.#file!.write(bytes, at);
      at += bytesWritten;
    }
    this.size += bytes.length;
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async place(dest: string, mode: number | undefined): Promise<void> {
    await this.close();
    const path = await finalPath(dest);
    const there = await stat(path).catch(() => undefined);
    await chmod(this.path, mode ?? (there ? there.mode & 0o7777 : 0o644));
    await makeDirectories(dirname(path));
    await rename(this.path, path).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EXDEV') throw error;
      const beside = join(dirname(path), basename(this.path));
      try {
        await cp(this.path, beside);
        await chmod(beside, mode ?? 0o644);
        await rename(beside, path);
      } finally {
        await rm(beside, { force: true });
      }
      await rm(this.path, { force: true });
    });
  }

  async discard(): Promise<void> {
    await this.close().catch(() => {});
    await rm(this.path, { force: true }).catch(() => {});
  }
}

const homeDirectory = () => process.env['HOME'] ?? '/tmp';

/** The target of a link is written, not the link; other kinds of entries are refused. */
async function finalPath(dest: string): Promise<string> {
  const there = await stat(dest).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  if (!there) return dest;
  if (there.isDirectory()) throw new Fault('EISDIR', `'${dest}' is a directory.`);
  if (!there.isFile()) throw new Fault('not_a_file', `'${dest}' is not a regular file.`);
  return realpath(dest);
}

/** Node's own recursive mkdir reports a read-only or full file system as a missing path. */
export async function makeDirectories(path: string): Promise<boolean> {
  try {
    await mkdir(path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const there = await stat(path).catch(() => undefined);
    if (there?.isDirectory()) return false;
    if (there) throw new Fault('EEXIST', `'${path}' is there already, and is not a directory.`);
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
  }
  await makeDirectories(dirname(path));
  await mkdir(path);
  return true;
}
