import { execFile } from 'node:child_process';
import { chmod, cp, mkdtemp, readFile, rm, stat, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { copyBinaries, installedBinaries, linkLibraries, type Binaries } from './binaries.ts';

const run = promisify(execFile);
let scratch: string;
let unlinked: Binaries;

/** The distribution as npm unpacks it when it skips install scripts. */
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'corral-pg-'));
  const { native, version } = await installedBinaries();
  unlinked = { native: join(scratch, 'native'), version };
  await cp(native, unlinked.native, { recursive: true, verbatimSymlinks: true });
  const links: { target: string }[] = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8'));
  for (const { target } of links) await unlink(join(scratch, target)).catch(() => {});
});

afterAll(() => rm(scratch, { recursive: true, force: true }));

test('a copy is complete, readable to all users, and made once', async () => {
  await chmod(join(unlinked.native, 'share'), 0o700);
  const copy = await copyBinaries(unlinked, scratch);
  expect((await run(join(copy.native, 'bin', 'postgres'), ['--version'])).stdout).toContain('PostgreSQL');
  expect((await stat(join(copy.native, 'share'))).mode & 0o777).toBe(0o755);

  const { ino } = await stat(copy.native);
  expect(await copyBinaries(unlinked, scratch)).toEqual(copy);
  expect((await stat(copy.native)).ino).toBe(ino);
});

test('libraries are linked where they lie, by several processes at once if need be', async () => {
  await expect(run(join(unlinked.native, 'bin', 'postgres'), ['--version'])).rejects.toThrow('shared libraries');
  expect(await Promise.all([linkLibraries(unlinked), linkLibraries(unlinked)])).toEqual([true, true]);
  expect((await run(join(unlinked.native, 'bin', 'postgres'), ['--version'])).stdout).toContain('PostgreSQL');
});
