import { copyFile, mkdir, open, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { errorCode } from '../lib/error-code.ts';

/** Directories with files that mean nothing to another server, or are created again at its start. pg_wal is copied in the end. */
const EMPTIED = new Set([
  'pg_wal',
  'pg_replslot',
  'pg_dynshmem',
  'pg_notify',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
]);
/** Of the running server alone. pg_control is copied last, as it has to be the newest. */
const LEFT_OUT =
  /^(postmaster\.(pid|opts)|\.s\.PGSQL.*|backup_label.*|tablespace_map.*|pgsql_tmp.*|pg_internal\.init.*|pg_control)$/;
const SEGMENT = /^[0-9A-F]{24}$/;

/**
 * Copies a cluster while its server runs, as pg_basebackup does, which the distribution does not have: files in any state, and the
 * write-ahead log from before the first of them to after the last. A server that starts on the copy replays that log, and has everything
 * that was committed before `copyCluster` ended. Both the mode of the server and the slot that keeps the log end with the connection.
 */
export async function copyCluster(options: {
  connection: pg.ClientConfig;
  cluster: string;
  into: string;
  copied: (bytes: number) => void;
  signal: AbortSignal;
}): Promise<void> {
  const { connection, cluster, into } = options;
  const client = new pg.Client(connection);
  client.on('error', () => {}); // the next query reports it
  await client.connect();
  try {
    const slot = `corral_backup_${process.pid}`;
    await client.query('select pg_create_physical_replication_slot($1, true, true)', [slot]);
    const began = await client.query<{ segment: string }>(
      `select pg_walfile_name(pg_backup_start('corral backup', true)) as segment`,
    );
    const copy = copier(options);
    await copy.tree(cluster, into);
    await mkdir(join(into, 'pg_wal/archive_status'), { mode: 0o700 });
    await copy.file(join(cluster, 'global/pg_control'), join(into, 'global/pg_control'));
    const ended = await client.query<{ segment: string; labelfile: string }>(
      'select pg_walfile_name(lsn) as segment, labelfile from pg_backup_stop(false)',
    );
    const [from, to] = [began.rows[0]!.segment, ended.rows[0]!.segment];
    await writeFile(join(into, 'backup_label'), ended.rows[0]!.labelfile, { mode: 0o600, flush: true });
    for (const name of await readdir(join(cluster, 'pg_wal'))) {
      const needed = SEGMENT.test(name) ? name >= from && name <= to : name.endsWith('.history');
      if (needed) await copy.file(join(cluster, 'pg_wal', name), join(into, 'pg_wal', name), 'must be there');
    }
  } finally {
    await client.end();
  }
}

/** Copies directories in which files come and go. */
export function copier({ copied, signal }: { copied: (bytes: number) => void; signal: AbortSignal }) {
  const copy = {
    async tree(from: string, to: string): Promise<void> {
      await mkdir(to, { recursive: true, mode: 0o700 });
      const entries = await readdir(from, { withFileTypes: true }).catch(unlessGone);
      for (const entry of entries ?? []) {
        const [source, target] = [join(from, entry.name), join(to, entry.name)];
        if (LEFT_OUT.test(entry.name)) continue;
        if (entry.isDirectory() && EMPTIED.has(entry.name)) await mkdir(target, { mode: 0o700 });
        else if (entry.isDirectory()) await copy.tree(source, target);
        else if (entry.isFile()) await copy.file(source, target);
      }
    },

    /** The log contains the deletion of a file that is missing by now, unless the file is the log itself. */
    async file(from: string, to: string, mustBeThere?: 'must be there'): Promise<void> {
      signal.throwIfAborted();
      try {
        await copyFile(from, to);
      } catch (error) {
        if (mustBeThere) throw error;
        return unlessGone(error);
      }
      copied((await stat(to)).size);
      const file = await open(to, 'r');
      try {
        await file.sync();
      } finally {
        await file.close();
      }
    },
  };
  return copy;
}

function unlessGone(error: unknown): undefined {
  if (errorCode(error) !== 'ENOENT') throw error;
  return undefined;
}
