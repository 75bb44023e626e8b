import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError, readConfig, type Config } from '../../config.ts';
import { ServiceError } from '../../errors.ts';
import { openLogger } from '../../logger.ts';
import type { Db } from '../../store/db.ts';
import { visitStore } from '../../store/open.ts';
import { Fault, UsageError } from '../fault.ts';

type Store = Awaited<ReturnType<typeof visitStore>>;

export interface Visit {
  db: Db;
  config: Config;
  /** For work that needs a separate connection. */
  connection: Store['connection'];
}

/** Work on the database of this machine (CORRAL_DATA_DIR, ./data by default) or on DATABASE_URL, whether the service runs or not. */
export async function visit(work: (visit: Visit) => Promise<void>): Promise<void> {
  try {
    const config = readConfig();
    if (!config.databaseUrl && !existsSync(join(config.dataDir, 'postgres')))
      throw new UsageError(
        `There is no service in ${config.dataDir}. Change to the directory of the service, or set CORRAL_DATA_DIR or DATABASE_URL. \`npm start\` creates a new service.`,
      );
    const log = openLogger('warn');
    const store = await visitStore({ dataDir: config.dataDir, databaseUrl: config.databaseUrl, log });
    try {
      await work({ db: store.db, config, connection: store.connection });
    } finally {
      await store.close();
    }
  } catch (error) {
    if (error instanceof ConfigError) throw new UsageError(error.message);
    if (error instanceof ServiceError) throw new Fault(error.message, 1, [`code: ${error.code}`]);
    throw error;
  }
}
