import { access, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { readConfig } from '../../config.ts';
import { copier, copyCluster } from '../../store/backup.ts';
import { Fault, UsageError } from '../fault.ts';
import { untilInterrupted } from '../interrupt.ts';
import { size, type Output } from '../output.ts';
import { openProgress } from '../progress.ts';
import { visit } from './visit.ts';

/** The files of a data directory besides the database. The service creates the others again, or they are of sessions, which end with it. */
const FILES = ['api-key', 'secret-key', 'postgres-password', 'node-id'];

/**
 * A copy of the data directory that a service can start on. The database is copied first: a file exists before the row that
 * names it, and a service key before the values that it seals.
 */
export async function backUp(output: Output, given: string): Promise<void> {
  const { dataDir, databaseUrl } = readConfig();
  if (databaseUrl)
    throw new UsageError(
      'DATABASE_URL is set: back that database up with the tools of PostgreSQL (pg_dump), and keep `secret-key` of the data directory, or CORRAL_SECRET_KEY, with it.',
    );
  const into = resolve(given);
  await refuseUnlessFree(into, resolve(dataDir));
  await untilInterrupted((signal) =>
    visit(async ({ connection }) => {
      // The copy has another name until it is complete, so that a partial copy does not look like a backup.
      const draft = await mkdtemp(join(dirname(into), `.${basename(into)}-`)).catch((error: Error) => {
        throw new Fault(`${dirname(into)} cannot be written to: ${error.message}.`);
      });
      const progress = openProgress(basename(into), 0);
      try {
        const copied = (bytes: number) => progress.add(bytes);
        const cluster = join(dataDir, 'postgres');
        await copyCluster({ connection, cluster, into: join(draft, 'postgres'), copied, signal });
        const copy = copier({ copied, signal });
        for (const name of FILES) await copy.file(join(dataDir, name), join(draft, name));
        await copy.tree(join(dataDir, 'replays'), join(draft, 'replays'));
        await rename(draft, into);
      } catch (error) {
        if (signal.aborted) throw error;
        throw new Fault(`The backup failed, and its files were removed: ${(error as Error).message}.`);
      } finally {
        progress.end();
        await rm(draft, { recursive: true, force: true });
      }
      const done = `${into}  ${size(progress.count())}\nA service starts from it with CORRAL_DATA_DIR=${into}. It contains every secret: store it safely.`;
      output.done(done, { directory: into, bytes: progress.count() });
    }),
  );
}

async function refuseUnlessFree(into: string, dataDir: string): Promise<void> {
  const below = relative(dataDir, into);
  if (below === '' || (!below.startsWith('..') && !below.startsWith('/')))
    throw new UsageError(
      `${into} is inside the data directory. Name a directory outside of it, preferably on another disk.`,
    );
  await access(dirname(into)).catch(() => {
    throw new UsageError(`${dirname(into)} does not exist. Create it first.`);
  });
  const there = await readdir(into).catch((error: Error & { code?: string }) => {
    if (error.code === 'ENOENT') return [];
    throw new UsageError(`${into} is not a directory.`);
  });
  if (there.length > 0) throw new UsageError(`${into} is not empty. Name a new directory.`);
}
