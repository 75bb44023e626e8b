import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** What /proc says about a process; undefined once it is gone. The command's name may hold spaces and brackets, so read from the last one. */
function stat(
  pid: number,
): { state: string; parent: number; group: number; session: number; startTime: string } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return {
      state: fields[0]!,
      parent: Number(fields[1]),
      group: Number(fields[2]),
      session: Number(fields[3]),
      startTime: fields[19]!,
    };
  } catch {
    return undefined;
  }
}

/** A pid comes back one day; together with when it started, it does not. */
export function startTime(pid: number): string | undefined {
  return stat(pid)?.startTime;
}

export function parent(pid: number): number | undefined {
  return stat(pid)?.parent;
}

/**
 * Everything a leader started, itself included, zombies not: its descendants, and whatever is left of its session. Inside a pid
 * namespace orphans become children of process 1, so nobody leaves the tree.
 */
export function tree(leader: number): number[] {
  const all = new Map<number, NonNullable<ReturnType<typeof stat>>>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    const found = Number.isInteger(pid) ? stat(pid) : undefined;
    if (found) all.set(pid, found);
  }
  const members = new Set(
    [...all].filter(([pid, { session }]) => pid === leader || session === leader).map(([pid]) => pid),
  );
  for (let before = -1; before !== members.size;) {
    before = members.size;
    for (const [pid, { parent }] of all) if (members.has(parent)) members.add(pid);
  }
  return [...members].filter((pid) => all.has(pid) && all.get(pid)!.state !== 'Z');
}

/** Sends a signal to a process, or with a negative pid to a group. A process that is gone has nothing to be told. */
export function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

/** Kills a tree, and looks again until nothing of it is alive. False means that something would not die in time. */
export async function killTree(leader: number, patienceMs = 10_000): Promise<boolean> {
  const end = performance.now() + patienceMs;
  for (let wait = 1; signal(-leader, 'SIGKILL'); wait = Math.min(wait * 2, 50)) {
    // A zombie that waits for a careless process 1 to notice it still answers to signals, but is as good as gone.
    const alive = tree(leader);
    if (alive.length === 0) return true;
    if (performance.now() > end) return false;
    for (const pid of alive) signal(pid, 'SIGKILL');
    await sleep(wait);
  }
  return true;
}

/** Resolves when one process is gone, whoever's child it was; false means that it would not go in time. */
export async function gone(pid: number, startedAt: string | undefined, patienceMs = 10_000): Promise<boolean> {
  const end = performance.now() + patienceMs;
  for (let wait = 1; ; wait = Math.min(wait * 2, 50)) {
    const found = stat(pid);
    if (found === undefined || found.state === 'Z' || found.startTime !== startedAt) return true;
    if (performance.now() > end) return false;
    await sleep(wait);
  }
}

/** Stops every process of a tree, and looks again until no new one has slipped through. */
export async function freezeTree(leader: number, stopped: Stopped, patienceMs = 10_000): Promise<void> {
  const end = performance.now() + patienceMs;
  for (;;) {
    // One that the session has stopped may have been woken by another before that one was stopped: hence the state, each time.
    const running = tree(leader).filter((pid) => !stopped.has(pid) && stat(pid)?.state !== 'T');
    if (running.length === 0) return;
    if (performance.now() > end) throw new Error('processes come faster than they can be stopped');
    for (const pid of running) {
      const startedAt = startTime(pid);
      if (startedAt === undefined) continue;
      stopped.set(pid, startedAt);
      signal(pid, 'SIGSTOP');
    }
    await sleep(1);
  }
}

/** The processes that `freezeTree` has stopped, with when each started. Those that the session had stopped itself are not among them. */
export type Stopped = Map<number, string>;

/** Lets those go on that `freezeTree` has stopped, the youngest first. */
export function thaw(stopped: Stopped): void {
  for (const [pid, startedAt] of [...stopped].reverse()) if (startTime(pid) === startedAt) signal(pid, 'SIGCONT');
  stopped.clear();
}

/** Memory of a tree in bytes. Shared pages are counted once for each process that has them, where the kernel keeps no shares. */
export function treeMemory(leader: number): number {
  return tree(leader).reduce((sum, pid) => sum + memoryOf(pid), 0);
}

/** A process's fair share of what it shares, and all of what it does not. */
export function memoryOf(pid: number): number {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    return Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0) * 1024;
  } catch {
    try {
      const [, resident, shared] = readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ').map(Number);
      return (resident! - shared!) * 4096;
    } catch {
      return 0;
    }
  }
}
