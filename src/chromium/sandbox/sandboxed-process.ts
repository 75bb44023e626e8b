import { atMostEvery } from '../../lib/at-most-every.ts';
import type { Cgroup } from './cgroup.ts';
import { logTail, type LogTail } from './log-tail.ts';
import {
  freezeTree,
  gone,
  killTree,
  living,
  signal,
  startTime,
  thaw,
  treeMemory,
  type Stopped,
} from './process-tree.ts';
import type { Process } from './sandbox.ts';

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** How long the namespace may take to end before its processes are killed one by one. */
const LATE_MS = 2000;
/** The memory of processes is measured no more often than this: the kernel walks all their pages. */
const MEASURED_MS = 1000;

/** A process and everything it started, as one unit that can be frozen, measured and ended. */
export interface Running {
  readonly pid: number | undefined;
  /** The first process has exited; the others are being ended. Never rejects. */
  readonly ended: Promise<Exit>;
  /** All processes have exited, the cgroup is removed and `cleanUp` is done. Never rejects. */
  readonly exited: Promise<Exit>;
  readonly logTail: LogTail;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  memory(): Promise<number>;
  /** The roots of its process trees. */
  leaders(): number[];
  /** All its processes. */
  pids(): Promise<number[]>;
  /** Adds a process that was started outside the tree. Needed where no cgroup holds both. */
  adopt(pid: number): void;
  stop(): Promise<void>;
}

export function running(
  { child, init }: Pick<Process, 'child' | 'init'>,
  cgroup: Cgroup | undefined,
  cleanUp: () => Promise<void>,
  /** Its display, which is frozen and ended with it. */
  display?: Running,
): Running {
  const { pid } = child;
  const log = logTail(child.stderr);
  const adopted = new Map<number, string | undefined>();
  let over = false;
  let frozen = false;
  const stopped: Stopped = new Map();

  // Kept with its start time: another process may have the pid later.
  let process1: { pid: number; startedAt: string | undefined } | undefined;
  const named = init.then((pid) => (process1 = pid === undefined ? undefined : { pid, startedAt: startTime(pid) }));
  // A stream emits an error when its other end dies, and an error without a listener ends the service.
  for (const stream of child.stdio) stream?.on('error', () => {});

  const ended = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', () => resolve({ code: null, signal: null }));
  });

  /** When this is awaited, all writers of the log have exited, so the stream is about to close. */
  const lastWords = new Promise((resolve) => child.stderr?.once('close', resolve) ?? resolve(undefined));

  const exited = ended.then(async (ending) => {
    await display?.stop();
    if (pid !== undefined) for (const leader of leaders()) await killTree(leader);
    for (const stream of child.stdio) if (stream !== child.stderr) stream?.destroy();
    if (child.connected) child.disconnect();
    await named;
    // A killed outer bwrap exits before its namespace ends. Process 1 is the last process in it.
    if (process1?.startedAt !== undefined) await gone(process1.pid, process1.startedAt);
    await cgroup?.remove();
    over = true;
    await lastWords;
    await cleanUp().catch(() => {});
    return ending;
  });

  const ofTrees = atMostEvery(MEASURED_MS, () => treeMemory(leaders()));
  const leaders = () => {
    forgetExited();
    return [pid!, ...adopted.keys()];
  };
  const forgetExited = () => {
    for (const [pid, at] of adopted) if (at === undefined || startTime(pid) !== at) adopted.delete(pid);
  };

  return {
    pid,
    ended,
    exited,
    logTail: log,

    async freeze() {
      if (over || pid === undefined) return;
      frozen = true;
      if (cgroup?.canFreeze) await cgroup.freeze().catch(ifOver);
      else {
        for (const leader of leaders()) await freezeTree(leader, stopped);
        await display?.freeze();
      }
    },

    async thaw() {
      if (over || pid === undefined) return;
      if (cgroup?.canFreeze) await cgroup.thaw().catch(ifOver);
      else {
        await display?.thaw();
        await thaw(stopped);
      }
      frozen = false;
    },

    async memory() {
      if (over || pid === undefined) return 0;
      return cgroup?.memory() ?? (await ofTrees()) + ((await display?.memory()) ?? 0);
    },

    leaders: () => (over || pid === undefined ? [] : leaders()),
    async pids() {
      if (over || pid === undefined) return [];
      return cgroup?.pids() ?? [...(await living(leaders())).keys()];
    },

    adopt(pid) {
      forgetExited(); // a session can end its guest any number of times
      adopted.set(pid, startTime(pid));
    },

    async stop() {
      if (!over && pid !== undefined) {
        // Kill process 1 only: the kernel kills the rest of its namespace, and the outer bwrap stays to reap it. If all were killed at
        // once, they would be orphans, and zombies until the machine's process 1 reaps them.
        if (process1 && startTime(process1.pid) === process1.startedAt) signal(process1.pid, 'SIGKILL');
        else signal(-pid, 'SIGKILL');
        display?.stop().catch(() => {}); // `exited` waits for it
        if (frozen) await this.thaw().catch(() => {}); // under cgroups of version 1 a frozen process dies only when thawed
        const late = setTimeout(() => (signal(-pid, 'SIGKILL'), cgroup?.kill()), LATE_MS);
        await ended;
        clearTimeout(late);
      }
      await exited;
    },
  };
}

/** A removed group has nothing to freeze or thaw. */
function ifOver(error: NodeJS.ErrnoException) {
  if (error.code !== 'ENOENT' && error.code !== 'ENODEV') throw error;
}
