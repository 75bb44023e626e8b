import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { detectIsolation } from '../sandbox/isolation.ts';
import { ArchiveError, packProfile, unpackBeside, unpackProfile } from './profile-archive.ts';

const { signal } = new AbortController(); // each test has a time limit; one for all of them would strike on a busy machine
let root: string;
beforeEach(async () => void (root = await mkdtemp(join(tmpdir(), 'corral-archive-'))));
afterEach(() => rm(root, { recursive: true, force: true }));

/** A session's directory with this in its user data, owned by the user of browsers. */
async function session(name: string, files: Record<string, string>) {
  const { owner } = await detectIsolation();
  const dir = join(root, name);
  for (const [path, text] of Object.entries(files)) {
    const file = join(dir, 'home/user-data', path);
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, text);
  }
  return { dir, give: () => execFileSync('chown', ['-R', `${owner.uid}:${owner.gid}`, join(dir, 'home')]) };
}

async function packed(dir: string, mostBytes?: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of packProfile(dir, await detectIsolation(), signal, mostBytes)) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function* from(...pieces: Buffer[]) {
  yield* pieces;
}

const unpacked = async (dir: string, bytes: AsyncIterable<Buffer>, tabs = true) =>
  unpackProfile({ dir, isolation: await detectIsolation(), bytes, tabs }, signal);

test('a profile comes back as it was, without what Chromium makes again and without links, pipes and sockets', async () => {
  const { dir, give } = await session('a', {
    'Local State': 'state',
    'Default/Cookies': 'cookies',
    'Default/Cache/data': 'ballast',
    'Default/Code Cache/js/x': 'ballast',
    'Default/Sessions/Session_1': 'tabs',
    SingletonLock: 'mark',
  });
  symlinkSync('/etc/passwd', join(dir, 'home/user-data/Default/link'));
  symlinkSync('/', join(dir, 'home/user-data/root'));
  execFileSync('mkfifo', [join(dir, 'home/user-data/pipe')]);
  give();
  const archive = await packed(dir);
  await unpacked(join(root, 'b'), from(archive.subarray(0, 10), archive.subarray(10)));
  const at = (path: string) => join(root, 'b/home/user-data', path);
  expect(readFileSync(at('Local State'), 'utf8')).toBe('state');
  expect(readFileSync(at('Default/Cookies'), 'utf8')).toBe('cookies');
  expect(readFileSync(at('Default/Sessions/Session_1'), 'utf8')).toBe('tabs');
  const removed = ['Default/Cache', 'Default/Code Cache', 'SingletonLock', 'Default/link', 'root', 'pipe'];
  expect(removed.filter((path) => lstatSync(at(path), { throwIfNoEntry: false }))).toEqual([]);
  expect(lstatSync(at('.')).uid).toBe((await detectIsolation()).owner.uid);
  await unpacked(join(root, 'c'), from(archive), false);
  expect(existsSync(join(root, 'c/home/user-data/Default/Sessions'))).toBe(false);
});

test('a file of two names comes back as two files, whichever of them is left out', async () => {
  const names = Array.from({ length: 100 }, (_, i) => String(i)); // in the order of the disk
  const tabs = (name: string) => [`Default/Sessions/${name}`, name] as const;
  const { dir, give } = await session('a', Object.fromEntries(names.map(tabs)));
  const at = (of: string, path: string) => join(of, 'home/user-data', path);
  for (const name of names) {
    mkdirSync(at(dir, name));
    linkSync(at(dir, `Default/Sessions/${name}`), at(dir, `${name}/other`));
  }
  give();
  await unpacked(join(root, 'b'), from(await packed(dir)), false);
  expect(names.map((name) => readFileSync(at(join(root, 'b'), `${name}/other`), 'utf8'))).toEqual(names);
});

test('user data that are a link to somewhere else are not packed', async () => {
  const { dir, give } = await session('a', { x: 'y' });
  await rm(join(dir, 'home/user-data'), { recursive: true });
  symlinkSync('/etc', join(dir, 'home/user-data'));
  give();
  await expect(packed(dir)).rejects.toThrow(ArchiveError);
  await rm(join(dir, 'home/user-data'));
  await expect(packed(dir)).rejects.toThrow(ArchiveError); // nor are there any
});

test('a file that claims to be larger than a profile may be ends the packing', async () => {
  const { dir, give } = await session('a', { sparse: '' });
  truncateSync(join(dir, 'home/user-data/sparse'), 2 ** 21);
  give();
  await expect(packed(dir, 2 ** 20)).rejects.toThrow(/more than 1 MiB/);
});

test.each<[string, (archive: Buffer) => AsyncIterable<Buffer>]>([
  ['is cut short', (archive) => from(archive.subarray(0, archive.length - 20))],
  ['is something else', () => from(Buffer.from('not an archive at all'))],
  ['is empty', () => from()],
  [
    'breaks off with an error',
    (archive) =>
      (async function* () {
        yield archive.subarray(0, 10);
        throw new Error('It broke.');
      })(),
  ],
])('an archive that %s is refused', async (_, change) => {
  const { dir, give } = await session('a', { 'Default/Cookies': 'x'.repeat(100_000) });
  give();
  const archive = await packed(dir);
  await expect(unpacked(join(root, 'b'), change(archive))).rejects.toThrow(/tar|zstd|It broke/);
});

test('a profile is laid beside a home that is in use, and takes its place when asked to', async () => {
  const { dir, give } = await session('a', { old: 'old' });
  give();
  const next = await session('b', { new: 'new' });
  next.give();
  const isolation = await detectIsolation();
  const bytes = from(await packed(next.dir));
  const beside = await unpackBeside({ dir, isolation, bytes, tabs: true }, signal);
  expect(existsSync(join(dir, 'home/user-data/old'))).toBe(true);
  await beside.swap();
  expect(existsSync(join(dir, 'home/user-data/old'))).toBe(false);
  expect(readFileSync(join(dir, 'home/user-data/new'), 'utf8')).toBe('new');
  expect(existsSync(join(dir, 'next'))).toBe(false);
});
