import { readFileSync, readdirSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { turns } from '../../lib/turns.ts';

/** A process as /proc describes it; undefined once it has exited. The name may contain spaces and brackets: parse after the last bracket. */
function stat(
  pid: number,
): { state: string; parent: number; group: number; session: number; startTime: string; resident: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return {
      state: fields[0]!,
      parent: Number(fields[1]),
      group: Number(fields[2]),
      session: Number(fields[3]),
      startTime: fields[19]!,
      resident: Number(fields[21]) * 4096,
    };
  } catch {
    return undefined;
  }
}

/** The kernel reuses pids. A pid together with its start time is unique. */
export function startTime(pid: number): string | undefined {
  return stat(pid)?.startTime;
}

export function parent(pid: number): number | undefined {
  return stat(pid)?.parent;
}

/**
 * The leader and everything it started, without zombies: its descendants, and the rest of its session. Inside a pid
 * namespace orphans become children of process 1, so no process leaves the tree.
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

/** The same for several leaders, with the states. Read in pieces: a session may have thousands of processes, and a thousand take 50 ms. */
export async function living(leaders: readonly number[]): Promise<Map<number, string>> {
  const found = await processes();
  const alive = new Map<number, string>();
  for (const pid of membersOf(leaders, found)) {
    const state = found.states.get(pid);
    if (state !== undefined && state !== 'Z') alive.set(pid, state);
  }
  return alive;
}

/** Sends a signal to a process, or with a negative pid to a group. False when the process has exited. */
export function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

/** Kills a tree, and looks again until no process of it is alive. False when one was still alive after `patienceMs`. */
export async function killTree(leader: number, patienceMs = 10_000): Promise<boolean> {
  const end = performance.now() + patienceMs;
  for (let wait = 1; signal(-leader, 'SIGKILL'); wait = Math.min(wait * 2, 50)) {
    // A zombie that process 1 has not reaped yet still accepts signals, but counts as exited.
    const alive = [...(await living([leader])).keys()];
    if (alive.length === 0) return true;
    if (performance.now() > end) return false;
    for (const pid of alive) signal(pid, 'SIGKILL');
    await sleep(wait);
  }
  return true;
}

/** Resolves when a process has exited, also if it is not a child of the service. False when it still existed after `patienceMs`. */
export async function gone(pid: number, startedAt: string | undefined, patienceMs = 10_000): Promise<boolean> {
  const end = performance.now() + patienceMs;
  for (let wait = 1; ; wait = Math.min(wait * 2, 50)) {
    const found = stat(pid);
    if (found === undefined || found.state === 'Z' || found.startTime !== startedAt) return true;
    if (performance.now() > end) return false;
    await sleep(wait);
  }
}

/**
 * Stops every process of a tree, and looks again until no running one is left. The leader is stopped before the others: it
 * may be `nsenter`, which stops itself when it sees its child stopped. It would do so after the thaw, and then not notice when its child
 * exits.
 */
export async function freezeTree(leader: number, stopped: Stopped, patienceMs = 10_000): Promise<void> {
  const end = performance.now() + patienceMs;
  const turn = turns();
  for (;;) {
    // A stopped process may have been continued by another one before that one was stopped, so the state is read each time.
    const states = await living([leader]);
    const running = [...states.keys()].filter(
      (pid) => states.get(pid) !== 'T' && (pid === leader || !stopped.has(pid)),
    );
    if (running.length === 0) return;
    if (performance.now() > end) throw new Error('processes come faster than they can be stopped');
    for (const pid of running.includes(leader) ? [leader] : running) {
      const startedAt = startTime(pid);
      if (startedAt === undefined) continue;
      stopped.set(pid, startedAt);
      signal(pid, 'SIGSTOP');
      await turn();
    }
    await sleep(1);
  }
}

/** The processes that `freezeTree` has stopped, with their start times. Processes that the session itself stopped are not included. */
export type Stopped = Map<number, string>;

/** Continues the processes that `freezeTree` has stopped, the last one first. */
export async function thaw(stopped: Stopped): Promise<void> {
  const turn = turns();
  for (const [pid, startedAt] of [...stopped].reverse()) {
    stopped.delete(pid);
    if (startTime(pid) === startedAt) signal(pid, 'SIGCONT');
    await turn();
  }
}

/** The processes of the machine. */
interface Processes {
  readonly children: ReadonlyMap<number, readonly number[]>;
  readonly bySession: ReadonlyMap<number, readonly number[]>;
  readonly states: ReadonlyMap<number, string>;
  readonly resident: ReadonlyMap<number, number>;
  readonly startTimes: ReadonlyMap<number, string>;
}

/** Reads every process of the machine, in pieces. */
export async function processes(): Promise<Processes> {
  const children = new Map<number, number[]>();
  const bySession = new Map<number, number[]>();
  const states = new Map<number, string>();
  const resident = new Map<number, number>();
  const startTimes = new Map<number, string>();
  const add = (to: Map<number, number[]>, key: number, pid: number) => {
    const list = to.get(key);
    if (list) list.push(pid);
    else to.set(key, [pid]);
  };
  const turn = turns();
  for (const name of await readdir('/proc')) {
    const pid = Number(name);
    const found = Number.isInteger(pid) ? stat(pid) : undefined;
    if (!found) continue;
    add(children, found.parent, pid);
    add(bySession, found.session, pid);
    states.set(pid, found.state);
    resident.set(pid, found.resident);
    startTimes.set(pid, found.startTime);
    await turn();
  }
  return { children, bySession, states, resident, startTimes };
}

/** The leaders and everything they started: their descendants, and the rest of their sessions. */
export function membersOf(leaders: readonly number[], { children, bySession }: Processes): number[] {
  const members = new Set<number>();
  const queue = leaders.flatMap((leader) => [leader, ...(bySession.get(leader) ?? [])]);
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
    if (members.has(pid)) continue;
    members.add(pid);
    queue.push(...(children.get(pid) ?? []));
  }
  return [...members];
}

/** Memory of these trees in bytes. Where the kernel has no smaps_rollup, shared pages are left out. */
export async function treeMemory(leaders: readonly number[]): Promise<number> {
  let bytes = 0;
  for (const pid of membersOf(leaders, await processes())) bytes += (await memoryParts(pid)).bytes;
  return bytes;
}

/**
 * A process's private memory and its proportional share of shared memory, and how much of it is shared memory: of tmpfs, memfds and
 * mappings that processes share. Read in another thread: the kernel walks all pages, which takes 12 ms for each GiB.
 */
export async function memoryParts(pid: number): Promise<{ bytes: number; shared: number }> {
  try {
    const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
    const of = (field: RegExp) => Number(field.exec(rollup)?.[1] ?? 0) * 1024;
    return { bytes: of(/^Pss:\s+(\d+) kB/m), shared: of(/^Pss_Shmem:\s+(\d+) kB/m) };
  } catch {
    try {
      const [, resident, shared] = (await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ').map(Number);
      return { bytes: (resident! - shared!) * 4096, shared: 0 };
    } catch {
      return { bytes: 0, shared: 0 };
    }
  }
}
