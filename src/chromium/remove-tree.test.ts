import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { removeTree } from './remove-tree.ts';

const nobody = 65_534;

/** As soon as one of its files is gone, puts a link in the place of the directory. */
const SWAP = `
  const { readdirSync, renameSync, symlinkSync } = require('node:fs');
  const [, sub, others] = process.argv;
  const all = readdirSync(sub).length;
  process.stdout.write('ready');
  while (readdirSync(sub).length === all);
  renameSync(sub, sub + '-away');
  symlinkSync(others, sub);
`;

test('a directory is removed, and nothing that a session links to from within it while that goes on', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'corral-browsers-'));
  const others = join(dir, 'others');
  const extension = join(dir, 'session/extensions/x');
  const names = Array.from({ length: 3000 }, (_, i) => String(i));
  for (const place of [others, join(extension, 'sub')]) {
    await mkdir(place, { recursive: true });
    for (const name of names) await writeFile(join(place, name), '');
  }
  const swapping = spawn(process.execPath, ['-e', SWAP, join(extension, 'sub'), others]);
  try {
    await once(swapping.stdout, 'data');
    await removeTree(extension).catch(() => {}); // it may fail over what comes and goes, but not go elsewhere
    expect(await readdir(others)).toHaveLength(names.length);
  } finally {
    swapping.kill('SIGKILL');
    await rm(dir, { recursive: true, force: true });
  }
});

test('what a session locked against its own user goes, too', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'corral-browsers-'));
  const locked = join(dir, 'home/locked/within');
  await mkdir(locked, { recursive: true });
  await writeFile(join(locked, 'file'), '');
  if (process.getuid?.() === 0) {
    for (const path of [dir, ...(await readdir(dir, { recursive: true })).map((name) => join(dir, name))])
      await chown(path, nobody, nobody);
  }
  await chmod(locked, 0);
  await chmod(join(dir, 'home/locked'), 0);
  const asRoot = process.geteuid?.() === 0;
  try {
    if (asRoot) process.seteuid?.(nobody); // root is not kept out of anything
    await removeTree(join(dir, 'home'));
    expect(await readdir(dir)).toEqual([]);
  } finally {
    if (asRoot) process.seteuid?.(0);
    await rm(dir, { recursive: true, force: true });
  }
});
