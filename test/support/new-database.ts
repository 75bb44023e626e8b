import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { openToolbox as OpenToolbox } from '../../src/chromium/guest/toolbox.ts';
import { silent } from '../../src/lib/log.ts';
import { visitStore } from '../../src/store/open.ts';

const cp = promisify(execFile);

/**
 * Puts a new database into a data directory: the embedded PostgreSQL as the first start of a service makes it, migrated and
 * without rows. initdb takes most of the time of a first start, so it runs once in a run, and the result is copied. Tests of
 * the first start itself do not call this. Outside of a run of vitest (see vitest.setup.ts) nothing is copied.
 */
export async function newDatabase(dataDir: string): Promise<void> {
  if (existsSync(join(dataDir, 'postgres'))) return;
  const original = await madeOnce('database', async (draft) => {
    const store = await visitStore({ dataDir: draft, databaseUrl: '', log: silent });
    await store.close();
  });
  if (original === undefined) return;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const files = ['postgres', 'postgres-password'].map((name) => join(original, name));
  await cp('cp', ['--archive', '--reflink=auto', ...files, dataDir]);
}

/** The build that the tests of this run import; see vitest.config.ts. A toolbox of the other build would be replaced at each start. */
const imported = process.env['CORRAL_TEST_BUILD'] ? 'dist' : 'src';

/**
 * Puts the tools of sessions into a data directory (`tools`), as a service fills it at its first start. Services only read these files, so
 * one copy of a run serves all data directories on the same disk, by links.
 */
export async function newToolbox(dataDir: string, build: 'src' | 'dist' = imported): Promise<void> {
  const place = join(dataDir, 'tools');
  if (existsSync(place)) return;
  const original = await madeOnce(`tools-${build}`, async (draft) => {
    const file = build === 'src' ? '../../src/chromium/guest/toolbox.ts' : '../../dist/chromium/guest/toolbox.js';
    const { openToolbox } = (await import(file)) as { openToolbox: typeof OpenToolbox };
    await openToolbox(draft).ready;
  });
  if (original === undefined) return;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  // Another disk has no links to this one: the service fills the directory itself.
  await cp('cp', ['--archive', '--link', original, place]).catch(() => rm(place, { recursive: true, force: true }));
}

/** A directory that all test files of a run share, made by the first that needs it. */
export async function madeOnce(name: string, make: (draft: string) => Promise<void>): Promise<string | undefined> {
  const shared = process.env['CORRAL_TEST_SHARED_DIR'];
  if (!shared) return undefined;
  const original = join(shared, name);
  if (existsSync(original)) return original;
  const draft = await mkdtemp(join(shared, 'draft-'));
  await make(draft);
  // Two workers may make it at once. Both are right, and the first one stays.
  await rename(draft, original).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    await rm(draft, { recursive: true, force: true });
  });
  return original;
}
