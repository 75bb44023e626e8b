import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { move, pinForRemoval, pinSocket, removeFiles, removeTree } from './outside.ts';

/** As soon as one of its files is removed, puts a link in the place of the directory. */
const SWAP = `
  const { readdirSync, renameSync, symlinkSync } = require('node:fs');
  const [, sub, others] = process.argv;
  const all = readdirSync(sub).length;
  process.stdout.write('ready');
  while (readdirSync(sub).length === all);
  renameSync(sub, sub + '-away');
  symlinkSync(others, sub);
`;

test.each([
  ['of ordinary size', 1500],
  ['that is large', 3000],
])('a directory %s is removed, without the targets of links that a session creates in it', async (_, size) => {
  const dir = await mkdtemp(join(tmpdir(), 'corral-browsers-'));
  const others = join(dir, 'others');
  const extension = join(dir, 'session/extensions/x');
  const names = Array.from({ length: size }, (_, i) => String(i));
  for (const place of [others, join(extension, 'sub')]) {
    await mkdir(place, { recursive: true });
    for (const name of names) await writeFile(join(place, name), '');
  }
  const swapping = spawn(process.execPath, ['-e', SWAP, join(extension, 'sub'), others]);
  const exited = once(swapping, 'exit');
  try {
    await once(swapping.stdout, 'data');
    await removeTree(extension).catch(() => {}); // it may fail over what comes and goes, but not go elsewhere
    expect(await readdir(others)).toHaveLength(names.length);
  } finally {
    swapping.kill('SIGKILL');
    await exited; // until then it may still create its link in the removed directory
    await rm(dir, { recursive: true, force: true });
  }
});

test.each([
  ['deep', ['a/'.repeat(300)]],
  ['wide', Array.from({ length: 400 }, (_, i) => `${i}/x`)],
])('a %s tree is removed without a descriptor for each directory', async (_, paths) => {
  const dir = await mkdtemp(join(tmpdir(), 'corral-outside-'));
  for (const path of paths) await mkdir(join(dir, path), { recursive: true });
  await removeTree(dir);
  await expect(readdir(dir)).rejects.toMatchObject({ code: 'ENOENT' });
});

/** A session's directory, and a directory of the host that is the target of links. */
async function withPlaces(use: (dir: string, host: string) => Promise<void>) {
  const root = await mkdtemp(join(tmpdir(), 'corral-outside-'));
  const [dir, host] = [join(root, 'session'), join(root, 'host')];
  try {
    for (const path of [join(dir, 'home'), host]) await mkdir(path, { recursive: true });
    await writeFile(join(host, 'mark'), '');
    await use(dir, host);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

test('files are removed in their directory, and not in the target of a link in the path', () =>
  withPlaces(async (dir, host) => {
    await mkdir(join(dir, 'home/data'));
    await writeFile(join(dir, 'home/data/mark'), '');
    await symlink(join(host, 'mark'), join(dir, 'home/data/link'));
    await removeFiles(dir, ['home', 'data'], ['mark', 'link', 'none']);
    expect(await readdir(join(dir, 'home/data'))).toEqual([]);
    await symlink(host, join(dir, 'home/elsewhere'));
    await symlink(join(host, '..'), join(dir, 'home/above'));
    await removeFiles(dir, ['home', 'elsewhere'], ['mark']);
    await removeFiles(dir, ['home', 'above', 'host'], ['mark']);
    await removeFiles(dir, ['home', 'none'], ['mark']);
    expect(await readdir(host)).toEqual(['mark']);
  }));

test('a thing is moved, a link as a link, and nothing through one', () =>
  withPlaces(async (dir, host) => {
    const at = (within: string[], name: string) => ({ dir, within, name });
    await symlink(host, join(dir, 'home/link'));
    expect(await move(at(['home'], 'none'), at([], 'moved'))).toBe(false);
    await expect(move(at(['home', 'link'], 'mark'), at([], 'moved'))).rejects.toThrow(/ELOOP|ENOTDIR/);
    expect(await move(at(['home'], 'link'), at([], 'moved'))).toBe(true);
    expect(await readdir(dir)).toEqual(['home', 'moved']);
    expect(await readdir(host)).toEqual(['mark']);
  }));

test('only a socket is pinned, and not by a link', () =>
  withPlaces(async (dir, host) => {
    expect(() => pinSocket(join(host, 'mark'))).toThrow('is not a socket');
    await symlink(join(host, 'mark'), join(dir, 'link'));
    expect(() => pinSocket(join(dir, 'link'))).toThrow('is not a socket');
  }));

test('a pinned file is removed, but not another file with its name', () =>
  withPlaces(async (dir, host) => {
    const [kept, gone] = [join(dir, 'kept'), join(dir, 'gone')];
    for (const path of [kept, gone, join(host, 'file')]) await writeFile(path, '');
    const removals = [kept, gone, join(dir, 'missing')].map(pinForRemoval);
    await rm(kept);
    await writeFile(kept, 'of another one');
    await symlink(join(host, 'file'), join(dir, 'missing'));
    for (const remove of removals) remove();
    expect((await readdir(dir)).filter((name) => ['kept', 'gone', 'missing'].includes(name))).toEqual([
      'kept',
      'missing',
    ]);
    expect(await readdir(host)).toContain('file');
  }));
