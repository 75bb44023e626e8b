import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { removeTree } from './remove-tree.ts';

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
