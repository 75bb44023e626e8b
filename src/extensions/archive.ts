import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import { openPromise, type Entry, type ZipFile } from 'yauzl';
import { errors } from '../errors.ts';
import { isLight } from '../lib/json-weight.ts';
import { turns } from '../lib/turns.ts';

/** Bounds of the unpacked contents. The zip's own bounds are checked on upload. */
const mostEntries = 10_000;
const mostBytes = 500 * 1024 * 1024;
const mostLevels = 100;
/** Deflate shrinks a long run of zeros to a thousandth; code and pictures to a tenth at best. */
const mostRatio = 200;
/** Below this size the ratio is not checked: an empty page of a few kilobytes may compress that far. */
const ratioMatters = 10 * 1024 * 1024;
const manifestBytes = 1024 * 1024;

/**
 * Checks the zip of an unpacked extension before anything is written: paths, kinds, claimed sizes (yauzl enforces them on
 * reading), and the manifest. `root` is the directory of the manifest: the top, or one directory below.
 */
export async function checkExtension(path: string): Promise<{ root: string }> {
  return withEntries(path, async (zip, entries) => {
    refuseBombs(entries);
    await refuseOddities(entries);
    const manifests = entries.filter(({ fileName }) => /^([^/]+\/)?manifest\.json$/.test(fileName));
    const manifest = manifests.find(({ fileName }) => fileName === 'manifest.json') ?? manifests[0];
    if (!manifest)
      throw unfit('has no manifest.json, neither at its top nor in a directory there. Zip the unpacked extension.');
    if (manifests.length > 1 && manifest.fileName !== 'manifest.json')
      throw unfit('has several directories with a manifest.json. Zip one extension at a time.');
    if (manifest.uncompressedSize > manifestBytes) throw unfit('has a manifest.json of more than 1 MiB.');
    checkManifest(await text(await zip.openReadStreamPromise(manifest)));
    return { root: dirname(manifest.fileName) === '.' ? '' : `${dirname(manifest.fileName)}/` };
  });
}

/** Checks any zip of files and directories before it is stored, by the same rules. Resolves with the names of its files. */
export async function checkZip(path: string): Promise<Set<string>> {
  return withEntries(path, async (_zip, entries) => {
    refuseBombs(entries);
    await refuseOddities(entries);
    return new Set(entries.filter((entry) => !isDirectory(entry)).map(({ fileName }) => fileName.replace(/^\.\//, '')));
  });
}

/** Writes the contents of the manifest's directory into an existing, empty directory that is used for nothing else. */
export async function unpackExtension(path: string, to: string): Promise<void> {
  const { root } = await checkExtension(path);
  await withEntries(path, async (zip, entries) => {
    for (const entry of entries) {
      if (!entry.fileName.startsWith(root)) continue;
      const at = join(to, entry.fileName.slice(root.length));
      await mkdir(isDirectory(entry) ? at : dirname(at), { recursive: true });
      if (!isDirectory(entry))
        await pipeline(await zip.openReadStreamPromise(entry), createWriteStream(at, { flags: 'wx', mode: 0o644 }));
    }
  });
}

async function withEntries<T>(path: string, use: (zip: ZipFile, entries: Entry[]) => Promise<T>): Promise<T> {
  let zip: ZipFile | undefined;
  try {
    zip = await openPromise(path, { autoClose: false, validateEntrySizes: true, decodeStrings: true });
    if (zip.entryCount > mostEntries) throw unfit(`has more than ${mostEntries} entries.`);
    const entries: Entry[] = [];
    for await (const entry of zip.eachEntry()) {
      entries.push(entry);
      if (entries.length > mostEntries) throw unfit(`has more than ${mostEntries} entries.`);
    }
    return await use(zip, entries);
  } catch (error) {
    if (error instanceof UnfitZip) throw errors.invalid_input({ detail: error.message });
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== undefined && /^E[A-Z]+$/.test(code) && code !== 'EEXIST' && code !== 'ENOTDIR') throw error; // a fault of the service's disk
    throw errors.invalid_input({ detail: `The zip cannot be read: ${message}.` }, { cause: error });
  } finally {
    zip?.close();
  }
}

class UnfitZip extends Error {}
const unfit = (what: string) => new UnfitZip(`The zip ${what}`);

const isDirectory = ({ fileName }: Entry) => fileName.endsWith('/');

function refuseBombs(entries: Entry[]) {
  let [packed, unpacked] = [0, 0];
  for (const { compressedSize, uncompressedSize } of entries) {
    packed += compressedSize;
    unpacked += uncompressedSize;
  }
  if (unpacked > mostBytes) throw unfit(`unpacks to more than ${mostBytes / 2 ** 20} MiB.`);
  if (unpacked > ratioMatters && unpacked > packed * mostRatio)
    throw unfit(`unpacks to more than ${mostRatio} times its size.`);
}

/** yauzl has already refused absolute paths and `..`. */
async function refuseOddities(entries: Entry[]): Promise<void> {
  const turn = turns();
  const files = new Set<string>();
  const directories = new Set<string>();
  for (const entry of entries) {
    await turn();
    const { fileName } = entry;
    if (fileName.split('/', mostLevels + 2).length > mostLevels + 1)
      throw unfit(`has a name with more than ${mostLevels} directories.`);
    // oxlint-disable-next-line no-control-regex -- the check looks for control characters
    const isOdd = fileName.length > 1024 || /[\u0000-\u001f]/.test(fileName) || fileName.includes('//');
    if (isOdd || fileName.split('/').some((part) => part.length > 255))
      throw unfit('has a name that no file should have.');
    const kind = (entry.externalFileAttributes >>> 16) & 0o170000;
    if (kind !== 0 && kind !== 0o100000 && kind !== 0o040000)
      throw unfit(`has '${fileName}', which is a link or a device. It may have files and directories only.`);
    if (!entry.canDecodeFileData()) throw unfit(`has '${fileName}', which is encrypted or packed in an unusual way.`);
    const path = fileName.replace(/\/$/, '');
    if (files.has(path) || (!isDirectory(entry) && directories.has(path))) throw unfit(`has '${path}' twice.`);
    (isDirectory(entry) ? directories : files).add(path);
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
      if (files.has(path.slice(0, at))) throw unfit(`has '${path.slice(0, at)}' as a file and as a directory.`);
      directories.add(path.slice(0, at));
    }
  }
}

function checkManifest(json: string) {
  let manifest: Record<string, unknown>;
  const bare = withoutComments(json.replace(/^\uFEFF/, ''));
  if (!isLight(bare)) throw unfit('has a manifest.json with more names and values than any needs.');
  try {
    manifest = JSON.parse(bare);
  } catch (error) {
    throw unfit(`has a manifest.json that is not JSON: ${(error as Error).message}.`);
  }
  if (typeof manifest !== 'object' || manifest === null || Array.isArray(manifest))
    throw unfit('has a manifest.json that is not an object.');
  const { manifest_version: version } = manifest;
  if (version === 2)
    throw unfit('holds an extension of manifest version 2, which Chromium no longer runs. Use its version 3.');
  if (version !== 3) throw unfit(`has a manifest.json with manifest_version ${JSON.stringify(version)}; it must be 3.`);
  for (const field of ['name', 'version'])
    if (typeof manifest[field] !== 'string') throw unfit(`has a manifest.json without a ${field}.`);
}

/**
 * Chromium allows comments in a manifest. Strings are left unchanged. An unclosed string or comment extends to the end,
 * so that nothing is scanned twice: with a megabyte of unclosed ones that would take minutes.
 */
function withoutComments(json: string): string {
  // not linear: each way ends with what may be missing, or with $, so that no search fails
  return json.replace(/("(?:[^"\\]|\\.)*"?)|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g, (_, quoted?: string) => quoted ?? '');
}
