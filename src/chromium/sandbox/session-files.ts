import { constants } from 'node:fs';
import { chown, link, lstat, mkdir, open, unlink, type FileHandle } from 'node:fs/promises';
import { isAbsolute, join, normalize, parse } from 'node:path/posix';
import { errorCode } from '../../lib/error-code.ts';
import { HOME } from './mounts.ts';
import type { Owner } from './owners.ts';

/**
 * What the service does, from outside, with files that a session's browser reads or writes. The session may change all of them at any
 * moment: each directory is opened without following a link, as in outside.ts.
 */

/** Where browsers put downloads until they are complete, each under its own id. */
const INCOMING = ['.cache', 'corral', 'downloads'];
const DOWNLOADS = ['Downloads'];

/** The same two as the session sees them. */
export const incoming = join(HOME, ...INCOMING);
export const downloads = join(HOME, ...DOWNLOADS);

/** Linux only; Node has no constant for it. The descriptor identifies a directory but cannot read it. */
const O_PATH = 0o10000000;
const DIRECTORY = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const MOST_NAMES = 10_000;
/** The longest name of a file, in bytes, without the space for a number. */
const LONGEST = 240;
const GUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

/**
 * Gives a complete download its name in the session's Downloads, or the next free one ("a (1).txt"). Returns its path in the session;
 * undefined if there is no such download, or the session has put something else in the way.
 */
export async function keepDownload(
  dir: string,
  { uid, gid }: Owner,
  { guid, name }: { guid: string; name: string },
): Promise<string | undefined> {
  if (!GUID.test(guid)) return undefined;
  const home = join(dir, 'home');
  return within(home, INCOMING, async (from) => {
    const file = join(from, guid);
    if (!(await lstat(file)).isFile()) return undefined;
    await within(home, [], async (at) => {
      const made = await mkdir(join(at, DOWNLOADS[0]!), { mode: 0o755 }).then(
        () => true,
        () => false,
      );
      if (made && process.getuid?.() === 0) await within(home, DOWNLOADS, (there) => chown(`${there}/.`, uid, gid));
    });
    return within(home, DOWNLOADS, async (to) => {
      for (const free of namesFor(name)) {
        // Unlike rename, link never replaces a file.
        const linked = await link(file, join(to, free)).then(
          () => true,
          (error: unknown) => {
            if (errorCode(error) !== 'EEXIST') throw error;
            return false;
          },
        );
        if (!linked) continue;
        await unlink(file).catch(() => {});
        return join(downloads, free);
      }
      return undefined;
    });
  }).catch(() => undefined);
}

/** The name of a download as a name in a directory, then the same with a number. */
export function* namesFor(suggested: string): Generator<string> {
  // oxlint-disable-next-line no-control-regex -- control characters are removed
  const plain = suggested.replace(/[/\\\u0000-\u001f\u007f]/g, '_').replace(/^\.+$/, '') || 'download';
  const { name, ext } = parse(plain);
  const short = Buffer.byteLength(ext) > LONGEST / 2 ? '' : ext;
  let stem = '';
  let room = LONGEST - Buffer.byteLength(short);
  for (const character of short === ext ? name : plain) {
    room -= Buffer.byteLength(character);
    if (room < 0) break;
    stem += character;
  }
  yield `${stem}${short}`;
  for (let count = 1; count < MOST_NAMES; count++) yield `${stem} (${count})${short}`;
}

/**
 * The first of these paths that is certainly not in the session. A path that cannot be looked at from here, because it goes through a link
 * or a file system that only the session sees, is the browser's to judge.
 */
export async function missingFile(
  { dir, init }: { dir: string; init: number | undefined },
  paths: readonly string[],
): Promise<string | undefined> {
  for (const path of paths) if (await isMissing(dir, init, path)) return path;
  return undefined;
}

async function isMissing(dir: string, init: number | undefined, given: string): Promise<boolean> {
  if (!isAbsolute(given) || given.includes('\0')) return true;
  const steps = normalize(given).split('/').filter(Boolean);
  const home = HOME.split('/').filter(Boolean);
  const inHome = home.every((step, at) => steps[at] === step);
  if (!inHome && !SEEN.has(steps[0] ?? '')) return true;
  if (!inHome && steps[0] === home[0]) return true;
  const [root, path] = inHome ? [join(dir, 'home'), steps.slice(home.length)] : [`/proc/${init}/root/.`, steps];
  const last = path.pop();
  if (last === undefined) return false;
  return within(root, path, (at) => lstat(join(at, last))).then(
    () => false,
    (error: unknown) => errorCode(error) === 'ENOENT' && (inHome || init !== undefined),
  );
}

/** The names in the root of a session (mounts.ts). */
const SEEN = new Set([
  'bin',
  'dev',
  'etc',
  'home',
  'lib',
  'lib32',
  'lib64',
  'opt',
  'proc',
  'run',
  'sbin',
  'tmp',
  'usr',
  'var',
]);

/** `use` gets a path to the directory that stays valid when the directory is renamed. */
async function within<T>(root: string, steps: readonly string[], use: (at: string) => Promise<T>): Promise<T> {
  let handle: FileHandle = await open(root, DIRECTORY);
  try {
    for (const step of steps) {
      const next = await open(`/proc/self/fd/${handle.fd}/${step}`, DIRECTORY);
      await handle.close();
      handle = next;
    }
    return await use(`/proc/self/fd/${handle.fd}`);
  } finally {
    await handle.close();
  }
}
