import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { silent } from '../../src/lib/log.ts';
import { visitStore } from '../../src/store/open.ts';

/**
 * Puts a new database into a data directory: the embedded PostgreSQL as the first start of a service makes it, migrated and
 * without rows. initdb takes most of the time of a first start, so it runs once in a run, and the result is copied. Tests of
 * the first start itself do not call this. Outside of a run of vitest (see vitest.setup.ts) nothing is copied.
 */
export async function newDatabase(dataDir: string): Promise<void> {
  const shared = process.env['CORRAL_TEST_SHARED_DIR'];
  if (!shared || existsSync(join(dataDir, 'postgres'))) return;
  const original = join(shared, 'database');
  if (!existsSync(original)) await makeOriginal(shared, original);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const files = ['postgres', 'postgres-password'].map((name) => join(original, name));
  await promisify(execFile)('cp', ['--archive', '--reflink=auto', ...files, dataDir]);
}

/** Two workers may make it at once. Both are right, and the first one stays. */
async function makeOriginal(shared: string, original: string): Promise<void> {
  const draft = await mkdtemp(join(shared, 'draft-'));
  const store = await visitStore({ dataDir: draft, databaseUrl: '', log: silent });
  await store.close();
  await rename(draft, original).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    await rm(draft, { recursive: true, force: true });
  });
}
