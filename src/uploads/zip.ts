import { getFileNameLowLevel, openPromise, validateFileName, type Entry, type ZipFile } from 'yauzl';
import { errors } from '../errors.ts';
import { turns } from '../lib/turns.ts';

/** Bounds of the unpacked contents. The zip's own bounds are checked on upload. */
const mostEntries = 10_000;
const mostBytes = 500 * 1024 * 1024;
const mostLevels = 100;
/** The comments and extra fields of all entries. A packer adds about 40 bytes to each. */
const mostBesideNames = 2 * 1024 * 1024;
/** A name has at most 1024 characters. */
const mostNameBytes = 4 * 1024;
/** Deflate shrinks a long run of zeros to a thousandth; code and pictures to a tenth at best. */
const mostRatio = 200;
/** Below this size the ratio is not checked: an empty page of a few kilobytes may compress that far. */
const ratioMatters = 10 * 1024 * 1024;

/** Checks a zip of files and directories before it is stored. Resolves with the names of its files. */
export async function checkZip(path: string): Promise<Set<string>> {
  return withEntries(path, async (_zip, entries) => {
    await refuseUnsafe(entries);
    return new Set(entries.filter((entry) => !isDirectory(entry)).map(({ fileName }) => fileName.replace(/^\.\//, '')));
  });
}

/** Reads the directory of a zip. Errors in the zip become `invalid_input`. */
export async function withEntries<T>(path: string, use: (zip: ZipFile, entries: Entry[]) => Promise<T>): Promise<T> {
  let zip: ZipFile | undefined;
  try {
    zip = await openPromise(path, { autoClose: false, validateEntrySizes: true, decodeStrings: false });
    if (zip.entryCount > mostEntries) throw unfit(`has more than ${mostEntries} entries.`);
    const entries: Entry[] = [];
    let besideNames = 0;
    for await (const entry of zip.eachEntry()) {
      besideNames += entry.extraFieldLength + entry.fileCommentLength;
      if (besideNames > mostBesideNames)
        throw unfit('has more than 2 MiB of comments and extra fields in its entries. Zip the files without them.');
      entries.push(decoded(entry));
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

/**
 * Sets the name of an entry. yauzl would compare each extra field with the whole name before the lengths are known here. The parsed fields
 * take thirty times their bytes in memory.
 */
function decoded(entry: Entry): Entry {
  if (entry.fileNameLength > mostNameBytes) throw unfit(oddName);
  const { generalPurposeBitFlag, fileNameRaw, extraFields } = entry;
  entry.fileName = getFileNameLowLevel(generalPurposeBitFlag, fileNameRaw, extraFields, false);
  const refusal = validateFileName(entry.fileName);
  if (refusal !== null) throw new Error(refusal);
  entry.extraFields = [];
  return entry;
}

class UnfitZip extends Error {}
export const unfit = (what: string) => new UnfitZip(`The zip ${what}`);

const oddName = 'has a name that no file should have.';

export const isDirectory = ({ fileName }: Entry) => fileName.endsWith('/');

/** Refuses an archive that is larger or stranger than files for a browser or an app are: by claimed sizes (yauzl enforces them on reading), paths and kinds. */
export async function refuseUnsafe(entries: Entry[]): Promise<void> {
  refuseBombs(entries);
  await refuseOddities(entries);
}

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
    if (isOdd || fileName.split('/').some((part) => part.length > 255)) throw unfit(oddName);
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
      if (directories.size > mostEntries) throw unfit(`has more than ${mostEntries} directories.`);
    }
  }
}
