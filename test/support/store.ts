import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silent } from '../../src/lib/log.ts';
import { openStore } from '../../src/store/open.ts';
import { newDatabase } from './new-database.ts';
import { newSharedDatabase } from './shared-server.ts';

/** A migrated store, on a database of its own. `embedded`: on a PostgreSQL in its data directory. */
export async function openTestStore(channels = ['corral_org'], { embedded = false } = {}) {
  const dataDir = await mkdtemp(join(tmpdir(), 'corral-store-'));
  const databaseUrl = (embedded ? undefined : await newSharedDatabase()) ?? '';
  if (databaseUrl === '') await newDatabase(dataDir);
  const store = await openStore({ dataDir, databaseUrl, channels, onLost: () => {}, log: silent });
  return {
    ...store,
    dataDir,
    async close() {
      await store.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
