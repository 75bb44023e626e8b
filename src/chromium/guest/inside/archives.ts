import { createReadStream, createWriteStream } from 'node:fs';
import { chmod, lstat, opendir, readlink, stat, statfs, symlink } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { Entry, ZipFile } from 'yauzl';
import type { ZipFile as NewZip } from 'yazl';
import type { Args } from '../protocol.ts';
import { Fault } from './fault.ts';
import type { Telling } from './answer-stream.ts';
import { Incoming, isIncoming, makeDirectories } from './partial-files.ts';
import { tarAsks } from './tars.ts';

export const archiveAsks = { zip, unzip, ...tarAsks };

const MOST_ENTRIES = 100_000;
/** An archive that unpacks to more than this, and to so many times its own size, is taken for a zip bomb. */
const BOMB_BYTES = 256 * 1024 * 1024;
const BOMB_RATIO = 500;
/** Bytes that stay free on the disk. */
const SPARE_BYTES = 512 * 1024 * 1024;
const MOST_LINK = 4096;

const S_IFMT = 0o170000;
const S_IFLNK = 0o120000;
const S_IFREG = 0o100000;
const S_IFDIR = 0o040000;

async function zip({ path }: Args<'zip'>, stream: Telling<'zip'>): Promise<void> {
  const { default: yazl } = await import('yazl');
  if (!(await stat(path)).isDirectory()) throw new Fault('ENOTDIR', `'${path}' is not a directory.`);
  const archive = new yazl.ZipFile();
  const faults = new AbortController();
  archive.on('error', (error: Error) => faults.abort(error));
  await opendir(path).then((directory) => directory.close()); // an unreadable directory is refused before the answer begins
  await stream.json({});

  const filled = fill(archive, path, '', stream.gone).then(
    () => archive.end(),
    (error: Error) => faults.abort(error),
  );
  const out = archive.outputStream as NodeJS.ReadableStream & { destroy(error?: Error): void };
  faults.signal.addEventListener('abort', () => out.destroy(faults.signal.reason as Error));
  for await (const chunk of out) await stream.bytes(chunk as Buffer);
  await filled;
}

/** Adds the content of a directory. Links are kept as links; other special files are left out. */
async function fill(archive: NewZip, root: string, under: string, gone: AbortSignal): Promise<void> {
  for await (const { name } of await opendir(join(root, under))) {
    gone.throwIfAborted();
    if (isIncoming(name)) continue;
    const inside = posix.join(under, name);
    const path = join(root, inside);
    const found = await lstat(path).catch(() => undefined);
    if (!found) continue;
    const options = { mtime: found.mtime, mode: found.mode };
    if (found.isDirectory()) {
      archive.addEmptyDirectory(inside, options);
      await fill(archive, root, inside, gone);
    } else if (found.isSymbolicLink()) {
      archive.addBuffer(Buffer.from(await readlink(path)), inside, { ...options, compress: false });
    } else if (found.isFile()) {
      archive.addReadStreamLazy(inside, options, (opened) => {
        const content = createReadStream(path);
        // Opened before it is added: a deleted or unreadable file must not end the whole process.
        content.once('open', () => opened(null, content));
        content.once('error', (error) => opened(error, undefined as never));
      });
    }
  }
}

/** Receives the whole archive and checks all of it before unpacking: a refused archive changes nothing. */
async function unzip(_: Args<'unzip'>, stream: Telling<'unzip'>): Promise<void> {
  const archive = await Incoming.to(undefined);
  let dest: string | undefined; // may arrive before or after the archive
  try {
    for (let item; (item = await stream.next());) {
      if (item.bytes) await archive.add(item.bytes);
      else dest = (item.json as { dest_path: string }).dest_path;
    }
    await archive.close();
    if (dest !== undefined) await unpack(archive.path, dest, archive.size);
  } finally {
    await archive.discard();
  }
  await stream.json({});
}

async function unpack(path: string, dest: string, size: number): Promise<void> {
  const { default: yauzl } = await import('yauzl');
  // promisify() takes the type of the overload without options.
  const open = promisify(yauzl.open) as unknown as (path: string, options: object) => Promise<ZipFile>;
  const options = { lazyEntries: true, autoClose: false, validateEntrySizes: true, strictFileNames: true };
  const archive = await open(path, options).catch((error: Error) => {
    throw new Fault('bad_archive', `This is not a zip archive: ${error.message}`);
  });
  try {
    const entries: Entry[] = [];
    let total = 0;
    for await (const entry of entriesOf(archive)) {
      entries.push(entry);
      total += entry.uncompressedSize;
      refuse(entry);
      if (entries.length > MOST_ENTRIES)
        throw new Fault('archive_too_large', `The archive has more than ${MOST_ENTRIES} entries.`);
    }
    refuseBomb(total, size);
    const links = new Map<Entry, string>();
    for (const entry of entries) if (kindOf(entry) === S_IFLNK) links.set(entry, await targetOf(archive, entry));
    await makeDirectories(dest);
    await refuseTooMuch(dest, total);
    for (const entry of entries) if (!links.has(entry)) await extract(archive, entry, dest);
    // Links come last, so that no entry is written through a link of the archive.
    for (const [{ fileName }, target] of links) {
      const path = join(dest, fileName);
      await makeDirectories(dirname(path));
      await symlink(target, path);
    }
  } finally {
    archive.close();
  }
}

async function* entriesOf(archive: ZipFile): AsyncGenerator<Entry> {
  for (;;) {
    const entry = await new Promise<Entry | undefined>((resolve, reject) => {
      const done = () => archive.removeAllListeners('entry').removeAllListeners('end').removeAllListeners('error');
      archive.once('entry', (found: Entry) => (done(), resolve(found)));
      archive.once('end', () => (done(), resolve(undefined)));
      archive.once(
        'error',
        (error: Error) => (done(), reject(new Fault('bad_archive', `The archive is refused: ${error.message}`))),
      );
      archive.readEntry();
    });
    if (!entry) return;
    yield entry;
  }
}

/** yauzl has already refused absolute names, `..` and backslashes. */
function refuse(entry: Entry) {
  const { fileName } = entry;
  if (entry.isEncrypted()) throw new Fault('bad_archive', `The entry '${fileName}' is encrypted.`);
  if (fileName.split('/').includes('..') || fileName.startsWith('/') || fileName.includes('\0'))
    throw new Fault('bad_archive', `The entry '${fileName}' leads out of the archive.`);
  const kind = kindOf(entry);
  if (kind !== 0 && kind !== S_IFREG && kind !== S_IFDIR && kind !== S_IFLNK)
    throw new Fault('bad_archive', `The entry '${fileName}' is neither a file, a directory nor a link.`);
  if (kind === S_IFLNK && entry.uncompressedSize > MOST_LINK)
    throw new Fault('bad_archive', `The link '${fileName}' is longer than a path can be.`);
}

function refuseBomb(total: number, size: number) {
  if (total > BOMB_BYTES && total > size * BOMB_RATIO) {
    throw new Fault(
      'archive_too_large',
      `The archive would unpack to ${total} bytes, more than ${BOMB_RATIO} times its size.`,
    );
  }
}

async function refuseTooMuch(dest: string, total: number) {
  const { bavail, bsize } = await statfs(dest);
  if (total > bavail * bsize - SPARE_BYTES)
    throw new Fault('ENOSPC', `The archive would unpack to ${total} bytes, and there is not enough space.`);
}

const kindOf = ({ externalFileAttributes }: Entry) => (externalFileAttributes >>> 16) & S_IFMT;
const modeOf = ({ externalFileAttributes }: Entry) => (externalFileAttributes >>> 16) & 0o777;

async function extract(archive: ZipFile, entry: Entry, dest: string): Promise<void> {
  const path = join(dest, entry.fileName);
  if (entry.fileName.endsWith('/') || kindOf(entry) === S_IFDIR) {
    await makeDirectories(path);
    if (modeOf(entry) !== 0) await chmod(path, modeOf(entry) | 0o700); // later entries are written into it
    return;
  }
  await makeDirectories(dirname(path));
  const there = await lstat(path).catch(() => undefined);
  if (there && !there.isFile()) throw new Fault('EEXIST', `'${path}' is there already, and is not a regular file.`);
  const content = await contentOf(archive, entry);
  await pipeline(content, createWriteStream(path)).catch((error: NodeJS.ErrnoException) => {
    throw error.code ? error : new Fault('bad_archive', `The entry '${entry.fileName}' is broken: ${error.message}`);
  });
  await chmod(path, modeOf(entry) || 0o644);
}

async function targetOf(archive: ZipFile, entry: Entry): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of await contentOf(archive, entry)) parts.push(part as Buffer);
  const target = Buffer.concat(parts).toString();
  const leadsTo = posix.normalize(posix.join(posix.dirname(entry.fileName), target));
  if (target === '' || posix.isAbsolute(target) || leadsTo === '..' || leadsTo.startsWith('../'))
    throw new Fault('bad_archive', `The link '${entry.fileName}' leads out of the archive, to '${target}'.`);
  return target;
}

function contentOf(archive: ZipFile, entry: Entry): Promise<NodeJS.ReadableStream> {
  return new Promise((resolve, reject) =>
    archive.openReadStream(entry, (error, content) =>
      error
        ? reject(new Fault('bad_archive', `The entry '${entry.fileName}' is broken: ${error.message}`))
        : resolve(content),
    ),
  );
}
