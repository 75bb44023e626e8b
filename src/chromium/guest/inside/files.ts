import { constants, createReadStream, type Stats } from 'node:fs';
import { chmod, chown, cp, lstat, open, opendir, readFile, rename, rm, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join, normalize } from 'node:path';
import type { Args, FileInfo } from '../protocol.ts';
import { archiveAsks } from './archives.ts';
import { Fault } from './fault.ts';
import type { Telling } from './answer-stream.ts';
import { Incoming, makeDirectories } from './partial-files.ts';

export const fileAsks = {
  read,
  write,
  upload,
  list,
  info,
  create_directory,
  delete_file,
  delete_directory,
  move,
  set_permissions,
  ...archiveAsks,
};

/** Entries per message. */
const BATCH = 500;

async function read({ path }: Args<'read'>, stream: Telling<'read'>): Promise<void> {
  // Without O_NONBLOCK, opening a fifo would wait for a writer, and block one of the few threads of the guest.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = await file.stat();
    refuseUnlessRegular(path, found);
    await stream.json({ size_bytes: found.size });
    const content = createReadStream(path, { fd: file, autoClose: false, highWaterMark: 256 * 1024 });
    for await (const chunk of content) await stream.bytes(chunk as Buffer);
  } finally {
    await file.close();
  }
}

async function write({ path, mode }: Args<'write'>, stream: Telling<'write'>): Promise<void> {
  const incoming = await Incoming.to(path);
  try {
    for (let item; (item = await stream.next());) if (item.bytes) await incoming.add(item.bytes);
    if (incoming.size === 0) throw new Fault('empty', 'There is nothing in the body.');
    await incoming.place(path, mode === null ? undefined : Number.parseInt(mode, 8));
  } catch (error) {
    await incoming.discard();
    throw error;
  }
  await stream.json({});
}

/**
 * Uploads several files at once. Each is announced by its name, followed by its bytes; its destination may come before or after. All
 * files are moved into place once all have arrived.
 */
async function upload(_: Args<'upload'>, stream: Telling<'upload'>): Promise<void> {
  const files = new Map<string, Incoming>();
  const places = new Map<string, string>();
  let current: Incoming | undefined;
  try {
    for (let item; (item = await stream.next());) {
      if (item.bytes) {
        await current?.add(item.bytes);
        continue;
      }
      const { file, dest, path } = item.json as Partial<Record<'file' | 'dest' | 'path', string>>;
      if (dest !== undefined && path !== undefined) places.set(dest, path);
      if (file === undefined) continue;
      await current?.close();
      current = await Incoming.to(places.get(file));
      files.set(file, current);
    }
    await current?.close();
    for (const [file, incoming] of files) await incoming.place(places.get(file)!, undefined);
  } catch (error) {
    await Promise.all([...files.values()].map((incoming) => incoming.discard()));
    throw error;
  }
  await stream.json({});
}

async function list({ path }: Args<'list'>, stream: Telling<'list'>): Promise<void> {
  let batch: FileInfo[] = [];
  for await (const { name } of await opendir(path)) {
    const found = await lstat(join(path, name)).catch(() => undefined); // removed since the directory was read
    if (found) batch.push(describe(join(path, name), found));
    if (batch.length < BATCH) continue;
    await stream.json(batch);
    batch = [];
  }
  await stream.json(batch);
}

async function info({ path }: Args<'info'>, stream: Telling<'info'>): Promise<void> {
  await stream.json(describe(path, await stat(path)));
}

async function create_directory(
  { path, mode }: Args<'create_directory'>,
  stream: Telling<'create_directory'>,
): Promise<void> {
  if (await makeDirectories(path)) await chmod(path, Number.parseInt(mode ?? '755', 8)); // not by mkdir, which applies the umask
  await stream.json({});
}

async function delete_file({ path }: Args<'delete_file'>, stream: Telling<'delete_file'>): Promise<void> {
  if ((await lstat(path)).isDirectory()) throw new Fault('EISDIR', `'${path}' is a directory; use delete_directory.`);
  await unlink(path);
  await stream.json({});
}

async function delete_directory(
  { path }: Args<'delete_directory'>,
  stream: Telling<'delete_directory'>,
): Promise<void> {
  if (!(await lstat(path)).isDirectory()) throw new Fault('ENOTDIR', `'${path}' is not a directory; use delete_file.`);
  await refuseMounted(path);
  await rm(path, { recursive: true });
  await stream.json({});
}

async function move({ src_path, dest_path }: Args<'move'>, stream: Telling<'move'>): Promise<void> {
  await refuseMounted(src_path); // before directories are created, so that a missing path is reported for the source
  await makeDirectories(dirname(dest_path));
  await rename(src_path, dest_path).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EXDEV') throw error;
    await cp(src_path, dest_path, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
    await rm(src_path, { recursive: true });
  });
  await stream.json({});
}

/** A mount point cannot be moved or removed; its content would be, before the error appears. */
async function refuseMounted(path: string): Promise<void> {
  const [own, above] = [await lstat(path), await lstat(dirname(normalize(path).replace(/(?<=.)\/$/, '')))];
  if (own.dev !== above.dev || own.ino === above.ino)
    throw new Fault('EBUSY', `'${path}' is a directory of the session itself and cannot be removed.`);
}

async function set_permissions(
  { path, mode, owner, group }: Args<'set_permissions'>,
  stream: Telling<'set_permissions'>,
): Promise<void> {
  const found = await stat(path);
  if (owner !== null || group !== null) {
    const uid = owner === null ? found.uid : await idOf('/etc/passwd', 'owner', owner);
    const gid = group === null ? found.gid : await idOf('/etc/group', 'group', group);
    await chown(path, uid, gid).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EINVAL') throw error;
      throw new Fault('EPERM', `'${path}' cannot be given to ${uid}:${gid}: there is only one user in a session.`);
    });
  }
  await chmod(path, Number.parseInt(mode, 8));
  await stream.json({});
}

async function idOf(file: string, kind: string, name: string): Promise<number> {
  if (/^\d{1,9}$/.test(name)) return Number(name);
  const lines = (await readFile(file, 'utf8')).split('\n').map((line) => line.split(':'));
  const id = lines.find((line) => line[0] === name)?.[2];
  if (id === undefined) throw new Fault('no_user', `${kind} '${name}' is not known in the session.`);
  return Number(id);
}

function refuseUnlessRegular(path: string, found: Stats) {
  if (found.isDirectory()) throw new Fault('EISDIR', `'${path}' is a directory.`);
  if (!found.isFile()) throw new Fault('not_a_file', `'${path}' is not a regular file.`);
}

function describe(path: string, found: Stats): FileInfo {
  return {
    name: basename(path) || '/',
    path,
    size_bytes: found.isDirectory() ? 0 : found.size,
    is_dir: found.isDirectory(),
    mod_time: found.mtime.toISOString(),
    mode: modeText(found),
  };
}

/** The mode as `ls -l` writes it. */
function modeText(found: Stats): string {
  const kind = found.isDirectory()
    ? 'd'
    : found.isSymbolicLink()
      ? 'l'
      : found.isFIFO()
        ? 'p'
        : found.isSocket()
          ? 's'
          : found.isCharacterDevice()
            ? 'c'
            : found.isBlockDevice()
              ? 'b'
              : '-';
  const bit = (shift: number, letter: string) => ((found.mode >> shift) & 1 ? letter : '-');
  const rights = [6, 3, 0].map((at) => bit(at + 2, 'r') + bit(at + 1, 'w') + bit(at, 'x')).join('');
  return kind + rights;
}
