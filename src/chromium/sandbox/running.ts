import type { Cgroup } from './cgroup.ts';
import { logTail, type LogTail } from './log-tail.ts';
import { freezeTree, gone, killTree, signal, startTime, thaw, tree, treeMemory, type Stopped } from './process-tree.ts';
import type { Process } from './sandbox.ts';

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** How long the namespace's end may take before everything is killed one by one. */
const LATE_MS = 2000;

/** A process and everything it started, as one thing that can be stilled, measured and ended. */
export interface Running {
  readonly pid: number | undefined;
  /** The first process is gone; the rest is being seen to. */
  readonly ended: Promise<Exit>;
  /** The last one is gone too, and the cgroup, and what the caller wanted cleaned up. Neither rejects. */
  readonly exited: Promise<Exit>;
  readonly logTail: LogTail;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  memory(): Promise<number>;
  /** The processes that everything of it descends from. */
  leaders(): number[];
  /** Every process of it. */
  pids(): number[];
  /** One that was started beside it belongs to it from now on: where no cgroup holds both, it is not in the tree. */
  adopt(pid: number): void;
  stop(): Promise<void>;
}

export function running(
  { child, init }: Pick<Process, 'child' | 'init'>,
  cgroup: Cgroup | undefined,
  cleanUp: () => Promise<void>,
  /** Its display, which is stilled and ended with it. */
  display?: Running,
): Running {
  const { pid } = child;
  const log = logTail(child.stderr);
  const adopted = new Map<number, string | undefined>();
  let over = false;
  let frozen = false;
  const stopped: Stopped = new Map();

  // Kept with its start time: by the time we look for it, its pid may be another's.
  let process1: { pid: number; startedAt: string | undefined } | undefined;
  const named = init.then((pid) => (process1 = pid === undefined ? undefined : { pid, startedAt: startTime(pid) }));
  // A stream whose other end died says so by an error, and an error nobody hears ends the service.
  for (const stream of child.stdio) stream?.on('error', () => {});

  const ended = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', () => resolve({ code: null, signal: null }));
  });

  /** Whoever wrote to the log is gone by the time this is awaited, so its end is only a read away. */
  const lastWords = new Promise((resolve) => child.stderr?.once('close', resolve) ?? resolve(undefined));

  const exited = ended.then(async (ending) => {
    await display?.stop();
    if (pid !== undefined) for (const leader of leaders()) await killTree(leader);
    for (const stream of child.stdio) if (stream !== child.stderr) stream?.destroy();
    if (child.connected) child.disconnect();
    await named;
    // A killed outer bwrap is gone before the namespace it held; process 1 is the last to go in there.
    if (process1?.startedAt !== undefined) await gone(process1.pid, process1.startedAt);
    await cgroup?.remove();
    over = true;
    await lastWords;
    await cleanUp().catch(() => {});
    return ending;
  });

  const leaders = () => [pid!, ...[...adopted].filter(([pid, at]) => startTime(pid) === at).map(([pid]) => pid)];

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
        thaw(stopped);
      }
      frozen = false;
    },

    async memory() {
      if (over || pid === undefined) return 0;
      const ofTrees = () => leaders().reduce((sum, leader) => sum + treeMemory(leader), 0);
      return cgroup?.memory() ?? ofTrees() + ((await display?.memory()) ?? 0);
    },

    leaders: () => (over || pid === undefined ? [] : leaders()),
    pids: () => (over || pid === undefined ? [] : (cgroup?.pids() ?? leaders().flatMap(tree))),

    adopt: (pid) => void adopted.set(pid, startTime(pid)),

    async stop() {
      if (!over && pid !== undefined) {
        // Process 1 alone: the kernel kills the rest of its namespace, and the outer bwrap stays to bury it. Killed all at once they
        // would be orphans, and zombies until the machine's own process 1 looks.
        if (process1 && startTime(process1.pid) === process1.startedAt) signal(process1.pid, 'SIGKILL');
        else signal(-pid, 'SIGKILL');
        display?.stop().catch(() => {}); // `exited` waits for it
        if (frozen) await this.thaw().catch(() => {}); // under cgroups of version 1 a frozen process does not die before
        const late = setTimeout(() => (signal(-pid, 'SIGKILL'), cgroup?.kill()), LATE_MS);
        await ended;
        clearTimeout(late);
      }
      await exited;
    },
  };
}

/** A group that went away under our hands had nothing left to freeze or thaw. */
function ifOver(error: NodeJS.ErrnoException) {
  if (error.code !== 'ENOENT' && error.code !== 'ENODEV') throw error;
}
