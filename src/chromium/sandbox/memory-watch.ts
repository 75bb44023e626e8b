import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { setImmediate as yielded } from 'node:timers/promises';
import { memoryOf, signal } from './process-tree.ts';

/** A session whose memory is watched. */
export interface Watched {
  /** The roots of its process trees. */
  leaders(): readonly number[];
  readonly mostBytes: number;
  /** How often the kernel has killed one of its processes for lack of memory; undefined where no control group limits memory. */
  outOfMemory(): number | undefined;
  /** Called with a sentence about what was ended, and why. */
  told(sentence: string): void;
}

const EVERY_MS = 1000;
/** Interval after a process was ended: the others may have grown meanwhile. */
const AGAIN_MS = 100;
/** The watch takes at most a twentieth of a processor. */
const SHARE = 20;
/** Number of processes that are read before the event loop gets a turn. */
const AT_ONCE = 100;

const sessions = new Map<Watched, number>();
let timer: NodeJS.Timeout | undefined;

/**
 * Reports sessions whose memory ran out. Where a control group limits memory, the kernel ends the largest process and counts that.
 * Where none does, this watch adds up the memory of each session's processes and ends the largest until the rest fits. It
 * reacts up to a second late, and does not see memory that no process has mapped (a memfd that was only written to).
 */
export function watchMemory(session: Watched): () => void {
  sessions.set(session, session.outOfMemory() ?? 0);
  timer ??= setTimeout(() => void look(), EVERY_MS).unref();
  return () => void sessions.delete(session);
}

async function look(): Promise<void> {
  const started = performance.now();
  let again = false;
  try {
    for (const [session, before] of sessions) {
      const count = session.outOfMemory();
      if (count === undefined || count <= before) continue;
      sessions.set(session, count);
      session.told(
        `The session's memory ran out (${mb(session.mostBytes)} MB), and the kernel ended its largest process.`,
      );
    }
    const unbounded = [...sessions.keys()].filter((session) => session.outOfMemory() === undefined);
    if (unbounded.length > 0) again = await bound(unbounded);
  } catch {
    // A process ended while it was read; the next round finds the others.
  }
  const spent = performance.now() - started;
  timer = undefined;
  if (sessions.size > 0)
    timer = setTimeout(() => void look(), Math.max(again ? AGAIN_MS : EVERY_MS, spent * SHARE)).unref();
}

/** True when a process was ended. */
async function bound(unbounded: readonly Watched[]): Promise<boolean> {
  const { children, resident, bySession } = await processes();
  let ended = false;
  for (const session of unbounded) {
    const members = new Set<number>();
    const queue = session.leaders().flatMap((leader) => [leader, ...(bySession.get(leader) ?? [])]);
    for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
      if (members.has(pid)) continue;
      members.add(pid);
      queue.push(...(children.get(pid) ?? []));
    }
    // An upper bound, since shared memory counts in full for each process. The exact shares cost more to read, so only when this exceeds the limit.
    const upper = [...members].reduce((sum, pid) => sum + (resident.get(pid) ?? 0), 0);
    if (upper <= session.mostBytes) continue;
    const sizes = [...members].map((pid) => ({ pid, bytes: memoryOf(pid) })).sort((a, b) => b.bytes - a.bytes);
    let left = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
    if (left <= session.mostBytes) continue;
    const took = left;
    let victims = 0;
    for (const { pid, bytes } of sizes) {
      if (left <= session.mostBytes) break;
      if (signal(pid, 'SIGKILL')) victims++;
      left -= bytes;
    }
    ended = true;
    session.told(
      `The session took ${mb(took)} MB of memory and may take ${mb(session.mostBytes)}: its largest ${victims === 1 ? 'process was' : `${victims} processes were`} ended.`,
    );
  }
  return ended;
}

/** Reads every process of the machine, and yields to the event loop in between. */
async function processes() {
  const children = new Map<number, number[]>();
  const bySession = new Map<number, number[]>();
  const resident = new Map<number, number>();
  const add = (to: Map<number, number[]>, key: number, pid: number) => {
    const list = to.get(key);
    if (list) list.push(pid);
    else to.set(key, [pid]);
  };
  let read = 0;
  for (const name of await readdir('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    if (++read % AT_ONCE === 0) await yielded();
    try {
      const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
      add(children, Number(fields[1]), pid);
      add(bySession, Number(fields[3]), pid);
      resident.set(pid, Number(fields[21]) * 4096);
    } catch {
      // gone
    }
  }
  return { children, bySession, resident };
}

const mb = (bytes: number) => Math.round(bytes / 2 ** 20);
