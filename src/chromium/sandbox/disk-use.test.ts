import {
  closeSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { diskUse } from './disk-use.ts';

const MB = 2 ** 20;
const plenty = { bytes: 1000 * MB, inodes: 100_000 };
let dir: string;
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), 'corral-use-'))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const used = async (pids: number[] = [], most = plenty) => {
  const { bytes, inodes } = await diskUse(dir, pids, most);
  return { mb: Math.round(bytes / MB), inodes };
};

test('holes do not count, links are not followed, and a file of two names is one file', async () => {
  mkdirSync(join(dir, 'a'));
  writeFileSync(join(dir, 'a/file'), Buffer.alloc(2 * MB, 1));
  linkSync(join(dir, 'a/file'), join(dir, 'a/again'));
  symlinkSync('/usr', join(dir, 'usr'));
  const sparse = openSync(join(dir, 'sparse'), 'w');
  ftruncateSync(sparse, 500 * MB);
  closeSync(sparse);
  expect(await used()).toEqual({ mb: 2, inodes: 6 });
});

test('a file without a name counts for as long as a process has it open', async () => {
  const path = join(dir, 'gone');
  const open = openSync(path, 'w');
  writeSync(open, Buffer.alloc(3 * MB, 1));
  unlinkSync(path);
  expect(await used([process.pid])).toMatchObject({ mb: 3 });
  expect(await used([])).toMatchObject({ mb: 0 });
  closeSync(open);
  expect(await used([process.pid])).toMatchObject({ mb: 0 });
});

test('it is counted no further than needed', async () => {
  for (let n = 0; n < 100; n++) writeFileSync(join(dir, `${n}`), '');
  expect((await used([], { bytes: MB, inodes: 10 })).inodes).toBe(11);
});
