import { existsSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { silent } from '../../src/lib/log.ts';
import { cgroupName } from '../../src/chromium/browser/launch.ts';
import { startTime } from '../../src/chromium/sandbox/process-tree.ts';
import { visitStore } from '../../src/store/open.ts';
import { sql, type Sql } from '../../src/store/sql.ts';

/** One thing on this machine that belongs to a data directory: what kind, and which one exactly. */
type Thing = `${'process' | 'directory' | 'socket' | 'cgroup' | 'mount' | 'row'} ${string}`;

/** Everything that the sessions of a data directory can leave on a machine. It looks at the machine, not at what the service believes. */
export function traces(dataDir: string, place = 'sessions') {
  const sessions = join(dataDir, place);
  const prefix = cgroupName(join(sessions, 'x')).slice(0, -1); // any session's name, less the session, is the prefix of all

  return {
    sessions,

    /**
     * A process that was started for a session is recognised by its cgroup or its mounts, not by its name or its parent. Its mounts are
     * below the directory of all sessions. What a test mounts at that directory is also in each namespace that was made meanwhile, such as
     * that of a neighbour's database server, and stays there when the test has unmounted it.
     */
    processes: (): Thing[] => processes([`${sessions}/`, `/${prefix}`]),
    /** The database server's too, which a killed service leaves running and its successor finds. */
    allProcesses: (): Thing[] => processes([dataDir, `/${prefix}`]),
    directories: (): Thing[] =>
      existsSync(sessions) ? readdirSync(sessions).map((name): Thing => `directory ${place}/${name}`) : [],
    sockets: (): Thing[] => sockets(dataDir),
    cgroups: (): Thing[] => cgroups(prefix),
    mounts: (): Thing[] =>
      lines('/proc/self/mountinfo')
        .filter((line) => line.includes(dataDir))
        .map((line): Thing => `mount ${line}`),

    /** Rows in a state that is not final. Read from the database: the API does not distinguish `stopping` from `stopped`. */
    async rows(): Promise<Thing[]> {
      const rows = await ask<{ id: string; state: string }>(
        sql`select id, state from sessions where state not in ('stopped', 'failed') or deleted_at is null`,
      );
      return rows.map(({ id, state }): Thing => `row ${id} is ${state}`);
    },

    /** Of the service, less its connections to the database: how many those are depends on how busy it was. */
    async descriptorsOf(pid: number): Promise<Map<string, number>> {
      for (;;) {
        const before = await connections();
        const found = descriptors(pid);
        // A connection that comes or goes between the two looks would count as a descriptor.
        if ((await connections()) === before) return found.set('socket', (found.get('socket') ?? 0) - before);
      }
    },
  };

  /** How many connections the service has to its database. */
  async function connections(): Promise<number> {
    const [row] = await ask<{ count: number }>(
      sql`select count(*)::integer as count from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`,
    );
    return row?.count ?? 0;
  }

  async function ask<R>(query: Sql): Promise<R[]> {
    const store = await visitStore({ dataDir, databaseUrl: '', log: silent });
    try {
      return await store.db.rows<R>(query);
    } finally {
      await store.close();
    }
  }
}

/** Descriptors of a process, by what they lead to: where they differ says what leaked. */
export function descriptors(pid: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const target = readlinkSync(`/proc/${pid}/fd/${name}`);
      // A display's socket is named after its session; a spare that took another's place has one, too.
      const kind = target.replace(/:\[\d+\]$/, '').replace(/\/sessions\/[^/]+\//, '/sessions/*/');
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    } catch {} // closed while we looked
  }
  return counts;
}

/** Waits until `look` finds nothing; after `ms`, returns the remaining things. */
export async function untilNothing<T>(look: () => T[] | Promise<T[]>, ms: number): Promise<T[]> {
  const end = performance.now() + ms;
  for (;;) {
    const found = await look();
    if (found.length === 0 || performance.now() > end) return found;
    await sleep(100);
  }
}

function processes(marks: readonly string[]): Thing[] {
  const marked = (words: string) => marks.some((mark) => words.includes(mark));
  const mounts = new Map<string, boolean>();
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => [`/proc/${pid}/cmdline`, `/proc/${pid}/cgroup`].some((file) => marked(text(file))) || mounted(pid))
    .filter((pid) => !/^\d+ \(.*\) Z/s.test(text(`/proc/${pid}/stat`))) // dead, and not ours to bury
    .map((pid): Thing => `process ${pid} (started at ${startTime(Number(pid))}): ${commandLine(Number(pid))}`);

  /** Most processes of a machine share their mounts, and a table of mounts takes the kernel longer than everything else here: it is read once. */
  function mounted(pid: string): boolean {
    const key = ['ns/mnt', 'root'].map((name) => link(`/proc/${pid}/${name}`)).join(' ');
    const found = mounts.get(key) ?? marked(text(`/proc/${pid}/mountinfo`));
    if (!key.includes('?')) mounts.set(key, found);
    return found;
  }
}

/** The target of a link; `?` if the link was removed or is not readable. */
function link(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '?';
  }
}

export function commandLine(pid: number): string {
  return text(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
}

/** In the file system, and those that listen without a file. */
function sockets(dataDir: string): Thing[] {
  return lines('/proc/net/unix')
    .map((line) => line.split(' ').at(-1) ?? '')
    .filter((path) => path.includes(dataDir))
    .map((path): Thing => `socket ${path}`);
}

function cgroups(prefix: string): Thing[] {
  const root = '/sys/fs/cgroup';
  if (!existsSync(root)) return [];
  const places = ['.', ...readdirSync(root)].map((hierarchy) => join(root, hierarchy, 'corral'));
  return places
    .filter((place) => existsSync(place))
    .flatMap((place) =>
      readdirSync(place)
        .filter((name) => name.startsWith(prefix))
        .map((name): Thing => `cgroup ${join(place, name)}`),
    );
}

function lines(path: string): string[] {
  return text(path).split('\n').filter(Boolean);
}

function text(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // removed, or not readable
  }
}
