import { deflateRaw, inflateRaw } from 'node:zlib';
import { promisify } from 'node:util';
import { within } from '../../lib/deadline.ts';
import type { Log } from '../../lib/log.ts';
import type { LineLogs } from './line-logs.ts';
import type { KeptLogStore } from './store.ts';

export const logNames = ['chromium', 'xvnc', 'recorder', 'console', 'processes'] as const;
export type LogName = (typeof logNames)[number];
export type LastLines = Partial<Record<LogName, readonly string[]>>;

/** The most bytes that are kept of one log. */
const mostOfOne = 32 * 1024;
/** The most that is kept of all sessions of a project, compressed. */
const mostOfProject = 64 * 2 ** 20;
/** The bound of projects is checked each time that so many logs were written, and every hour. */
const checkAfter = 256;
/** The end of a session waits for its log, but not for a database that is away. */
const patienceMs = 3000;

const pack = promisify(deflateRaw);
const unpack = promisify(inflateRaw);

export type KeptLogs = ReturnType<typeof keptLogs>;

/**
 * The last lines of the logs of ended sessions, in the database, so that every node can read them. They are written when the session ends: writing
 * them earlier would cost a transaction for each session that logs. A lost node loses them.
 */
export function keptLogs({
  store,
  recorder,
  pageConsole,
  short,
  log,
}: {
  store: KeptLogStore;
  recorder: Pick<LineLogs, 'lines'>;
  pageConsole: Pick<LineLogs, 'lines'>;
  /** Whether the database's disk has no room for this. */
  short: () => boolean;
  log: Log;
}) {
  let written = 0;
  const prune = () => store.prune(mostOfProject);

  async function write(sessionId: string, lines: LastLines): Promise<void> {
    const some = Object.entries(lines).filter(([, those]) => those.length > 0);
    if (some.length === 0 || short()) return;
    const cut = Object.fromEntries(some.map(([name, those]) => [name, newest(those, mostOfOne)]));
    await store.insert(sessionId, await pack(JSON.stringify(cut)));
    written += 1;
    if (written % checkAfter === 0) await prune();
  }

  return {
    /** Never rejects: a session ends without its log, too. */
    async keep({ id, lastLines }: { id: string; lastLines: () => LastLines }): Promise<void> {
      try {
        const lines = { ...lastLines(), recorder: recorder.lines(id), console: pageConsole.lines(id) };
        await within(patienceMs, 'The database', write(id, lines));
      } catch (error) {
        log.warn({ session: id, error: (error as Error).message }, 'session.log_not_kept');
      }
    },

    async read(sessionId: string): Promise<{ at: Date; lines: LastLines } | undefined> {
      const row = await store.find(sessionId);
      if (!row) return undefined;
      return { at: row.kept_at, lines: JSON.parse((await unpack(row.packed)).toString()) as LastLines };
    },

    prune,
  };
}

/** The last of the lines, as many as fit into so many bytes. */
export function newest(lines: readonly string[], most: number): readonly string[] {
  let bytes = 0;
  let from = lines.length;
  while (from > 0) {
    bytes += Buffer.byteLength(lines[from - 1]!) + 1;
    if (bytes > most) break;
    from -= 1;
  }
  return lines.slice(from);
}
