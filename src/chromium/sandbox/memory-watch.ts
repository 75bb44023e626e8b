import { readFileSync } from 'node:fs';
import { membersOf, memoryParts, processes, signal, startTime } from './process-tree.ts';
import { machineSharedMemory, sharedMemory } from './shared-memory.ts';
import { withoutOwner } from '../../lib/scope.ts';
import { turns } from '../../lib/turns.ts';

/** A session with watched memory. */
interface Watched {
  /** The roots of its process trees. */
  leaders(): readonly number[];
  readonly mostBytes: number;
  /** How often the kernel has killed one of its processes for lack of memory; undefined where no control group limits memory. */
  outOfMemory(): number | undefined;
  /** The memory that its control group counts; undefined where there is no group. */
  memory?(): number | undefined;
  /** The processes in its control group. Asked only when memory is scarce: each controller has a list of its own to read. */
  pids?(): readonly number[];
  /** Called with a sentence about the killed process and the reason. */
  onKill(sentence: string, report: OutOfMemory): void;
}

interface Task {
  pid: number;
  name: string;
  bytes: number;
}

export interface OutOfMemory {
  /** `kernel`: by the limit of the session's control group. `service`: by this watch, where there is none. */
  by: 'kernel' | 'service';
  mostBytes: number;
  ended: Task[];
  /** The largest processes before that, the ended ones among them. */
  largest: Task[];
}

const EVERY_MS = 1000;
/** Interval after a process was ended: the others may have grown since. */
const AGAIN_MS = 100;
/** The watch takes at most a twentieth of a processor. */
const SHARE = 20;

/**
 * The kernel counts the processes that it killed and does not name them. So the processes of a session that uses this share of its
 * memory are listed at each check; when the count has risen, the largest listed process that has exited is reported.
 */
const NEAR = 0.5;
const MOST_LISTED = 5;

/** The number of checks after which a killed process that was never listed is no longer waited for. */
const PATIENCE = 10;

interface Seen {
  outOfMemory: number;
  /** The lists of the last two checks: a process that is killed between the count and the list of one check is in the list before. */
  largest: Task[];
  before: Task[];
  /** Checks since the count rose while no listed process had exited: a killed process takes a moment to exit. */
  waited: number;
  /** An upper limit of its tmpfs and memfds: the last measured size, and the growth on the whole machine since then. */
  shared: number;
}
/** Of the whole machine, at the last look. */
let machineShared = 0;
const sessions = new Map<Watched, Seen>();
let timer: NodeJS.Timeout | undefined;

/**
 * Reports sessions that ran out of memory. Where a control group limits memory, the kernel ends the largest process and counts that.
 * Where none does, this watch adds up the memory of each session's processes, its tmpfs and its memfds, and ends the largest processes until
 * the rest fits. It reacts up to a second late.
 */
export function watchMemory(session: Watched): () => void {
  if (sessions.size === 0) machineShared = machineSharedMemory();
  sessions.set(session, {
    outOfMemory: session.outOfMemory() ?? 0,
    largest: [],
    before: [],
    waited: 0,
    shared: 0,
  });
  timer ??= withoutOwner(() => setTimeout(() => void look(), EVERY_MS).unref());
  return () => void sessions.delete(session);
}

async function look(): Promise<void> {
  const started = performance.now();
  let again = false;
  const unbounded: Watched[] = [];
  try {
    for (const [session, seen] of sessions) {
      const count = session.outOfMemory();
      if (count === undefined) {
        unbounded.push(session);
        continue;
      }
      if (count > seen.outOfMemory && !tellKernels(session, seen, count - seen.outOfMemory)) {
        again = true;
        continue;
      }
      seen.outOfMemory = count;
      const isNear = (session.memory?.() ?? 0) > session.mostBytes * NEAR;
      seen.before = seen.largest;
      seen.largest = isNear ? largest(await sizesOf(session.pids?.() ?? [])) : [];
      again ||= isNear;
    }
    if (unbounded.length > 0) again = await bound(unbounded);
  } catch {
    // A process ended while it was read; the next round finds the others.
  }
  const spent = performance.now() - started;
  timer = undefined;
  if (sessions.size > 0)
    timer = setTimeout(() => void look(), Math.max(again ? AGAIN_MS : EVERY_MS, spent * SHARE)).unref();
}

/** The kernel has ended this many processes of a session. False: it is not known yet which. */
function tellKernels(session: Watched, seen: Seen, count: number): boolean {
  const listed = [...new Map([...seen.before, ...seen.largest].map((task) => [task.pid, task])).values()];
  const largest = listed.toSorted((a, b) => b.bytes - a.bytes).slice(0, MOST_LISTED);
  const ended = largest.filter(({ pid }) => residentOf(pid) === 0).slice(0, count);
  if (ended.length === 0 && listed.length > 0 && seen.waited++ < PATIENCE) return false;
  seen.waited = 0;
  const { mostBytes } = session;
  session.onKill(
    `The session's memory ran out (${mb(mostBytes)} MB), and the kernel ended its largest process${ended[0] ? `, ${ended[0].name}` : ''}.`,
    { by: 'kernel', mostBytes, ended, largest },
  );
  return true;
}

/** The largest of these processes, with their names. */
function largest(sizes: readonly { pid: number; bytes: number }[]): Task[] {
  return sizes
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, MOST_LISTED)
    .map(({ pid, bytes }) => ({ pid, bytes, name: nameOf(pid) }));
}

/** Read in pieces: a session may have thousands of processes. */
async function sizesOf(pids: readonly number[]): Promise<{ pid: number; bytes: number }[]> {
  const turn = turns();
  const sizes: { pid: number; bytes: number }[] = [];
  for (const pid of pids) {
    sizes.push({ pid, bytes: residentOf(pid) });
    await turn();
  }
  return sizes;
}

/** 0 for a process that has exited, also if it was not reaped yet. */
function residentOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * 4096;
  } catch {
    return 0;
  }
}

function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return 'unknown';
  }
}

/** True when a process was ended. */
async function bound(unbounded: readonly Watched[]): Promise<boolean> {
  const gained = gainedShared();
  const machine = await processes();
  const { resident, startTimes } = machine;
  /** The pid may belong to another process by now. */
  const isSame = (pid: number) => startTimes.has(pid) && startTime(pid) === startTimes.get(pid);
  const turn = turns();
  let ended = false;
  for (const session of unbounded) {
    await turn();
    const seen = sessions.get(session);
    if (!seen) continue; // it has ended
    seen.shared += gained;
    const members = membersOf(session.leaders(), machine);
    // An upper bound, since shared memory counts in full for each process. The exact shares cost more to read, so only when this exceeds the limit.
    const upper = members.reduce((sum, pid) => sum + (resident.get(pid) ?? 0), seen.shared);
    if (upper <= session.mostBytes) continue;
    const { took, sizes } = await measured(members, seen);
    if (took <= session.mostBytes || !sessions.has(session)) continue;
    let left = took;
    const listed = largest(sizes);
    const victims: Task[] = [];
    for (const { pid, bytes } of sizes) {
      if (left <= session.mostBytes) break;
      if (isSame(pid)) victims.push({ pid, bytes, name: nameOf(pid) });
      left -= bytes;
      await turn();
    }
    ended = true;
    // Before the first one is ended: it may be the one whose exit ends the session.
    session.onKill(
      `The session took ${mb(took)} MB of memory and may take ${mb(session.mostBytes)}: its largest ${victims.length === 1 ? 'process was' : `${victims.length} processes were`} ended.`,
      { by: 'service', mostBytes: session.mostBytes, ended: victims, largest: listed },
    );
    for (const { pid } of victims) {
      if (isSame(pid)) signal(pid, 'SIGKILL');
      await turn();
    }
  }
  return ended;
}

/** Growth of the machine's shared memory since the last look. Memory freed by others hides at most the growth of one look. */
function gainedShared(): number {
  const now = machineSharedMemory();
  const gained = Math.max(0, now - machineShared);
  machineShared = now;
  return gained;
}

/**
 * What a session takes, and its processes, largest first. Shared memory is known twice: as what processes have mapped, and as files of tmpfs
 * and memfds. Most of it is the same, so the larger of the two counts.
 */
async function measured(pids: readonly number[], seen: Seen) {
  const { disks, held, complete } = await sharedMemory(pids);
  const parts: { pid: number; bytes: number; shared: number; held: number }[] = [];
  for (const pid of pids) parts.push({ pid, ...(await memoryParts(pid)), held: held.get(pid) ?? 0 });
  const sum = (of: (part: (typeof parts)[number]) => number) => parts.reduce((total, part) => total + of(part), 0);
  const files = disks + sum((part) => part.held);
  seen.shared = complete ? files : Math.max(files, seen.shared);
  const took =
    sum(({ bytes, shared }) => bytes - shared) +
    Math.max(
      sum(({ shared }) => shared),
      seen.shared,
    );
  const sizes = parts
    .map(({ pid, bytes, shared, held }) => ({ pid, bytes: bytes - shared + Math.max(shared, held) }))
    .sort((a, b) => b.bytes - a.bytes);
  return { took, sizes };
}

const mb = (bytes: number) => Math.round(bytes / 2 ** 20);
