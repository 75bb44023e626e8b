import { access, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Isolation } from '../chromium/sandbox/isolation.ts';
import { removeTree } from '../chromium/sandbox/outside.ts';
import { unpackBuild, type Unpacked } from '../chromium/workshop/artifact.ts';
import { WorkerError, type Worker } from '../chromium/workshop/worker.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';

/** A worker is replaced after this many actions, so that what an app leaks is freed. */
const mostRuns = 100;
/** And when it has grown to this share of its memory. */
const grown = 0.6;
const idleMs = 5 * 60_000;
const lookMs = 15_000;
const unpackMs = 120_000;
/** Unpacked builds that stay without a worker. */
const mostKept = 16;

/** What a worker of a deployment needs. */
export interface Recipe {
  entry: string;
  env: Record<string, string>;
  bytes: () => AsyncIterable<Buffer>;
}

/** Hears how much of a build was unpacked so far, and throws when that is too much. */
export type Cover = (bytes: number) => Promise<void>;

export type StartWorker = (start: {
  id: string;
  app: string;
  entry: string;
  env: Record<string, string>;
  onLine: (line: string) => void;
}) => Promise<Worker>;

export type Workers = ReturnType<typeof workerPool>;

/** The workers of this node: some run an action, some are warm and wait for the next action of their deployment. */
export function workerPool(deps: {
  dir: string;
  isolation: Isolation;
  start: StartWorker;
  recipe: (deploymentId: string) => Promise<Recipe>;
  memoryBytes: number;
  /** What an unpacked build may take. */
  diskBytes: number;
  /** Whether the disk has only its reserve left. */
  short: () => boolean;
  /** The most that wait, of all deployments together. */
  mostIdle: number;
  log: Log;
}) {
  const { dir, isolation, start, recipe, log } = deps;
  const idle = new Map<string, { worker: Worker; since: number }[]>();
  const all = new Map<Worker, string>();
  const unpacked = new Map<string, Promise<Unpacked>>();
  const unpacking = new Set<AbortController>();
  const leaving = new Map<string, Promise<void>>();
  const taking: string[] = [];
  const starts = new Set<Promise<Worker>>();
  let room: Promise<void> | undefined;
  const closing = new AbortController();
  let closed = false;

  /** The build on this node's disk, fetched when it is first needed. */
  function buildOf(id: string, bytes: Recipe['bytes'], cover?: Cover): Promise<Unpacked> {
    const there = unpacked.get(id) ?? unpack(id, bytes, cover);
    unpacked.delete(id); // so that the builds are in the order of their last use
    unpacked.set(id, there);
    there.catch(() => unpacked.delete(id));
    return there;
  }

  async function unpack(id: string, bytes: Recipe['bytes'], cover: Cover | undefined): Promise<Unpacked> {
    const at = join(dir, 'builds', id);
    const giveUp = new AbortController();
    unpacking.add(giveUp);
    try {
      await leaving.get(id);
      await removeTree(at, isolation);
      const { diskBytes } = deps;
      const short = async () => {
        if (deps.short()) await leaveUnused();
        return deps.short();
      };
      const signal = AbortSignal.any([closing.signal, giveUp.signal, AbortSignal.timeout(unpackMs)]);
      return await unpackBuild(at, bytes(), isolation, { diskBytes, short, cover, signal });
    } finally {
      unpacking.delete(giveUp);
    }
  }

  /** Runs while the deployment's build must stay. */
  async function keeping<T>(deploymentId: string, work: Promise<T>): Promise<T> {
    taking.push(deploymentId);
    try {
      return await work;
    } finally {
      taking.splice(taking.indexOf(deploymentId), 1);
      leaveOldest();
    }
  }

  /** A warm worker of the deployment, or a new one. What a new one prints while it loads goes to `onLine`. */
  async function take(deploymentId: string, onLine: (line: string) => void): Promise<Worker> {
    const start = startOrTake(deploymentId, onLine);
    starts.add(start);
    return keeping(deploymentId, start).finally(() => starts.delete(start));
  }

  /** Builds that no worker runs, the one that was used longest ago first. */
  function unusedBuilds(): string[] {
    const used = new Set([...all.values(), ...taking]);
    return [...unpacked.keys()].filter((id) => !used.has(id));
  }

  function leave(id: string): Promise<void> {
    unpacked.delete(id);
    const left = removeTree(join(dir, 'builds', id), isolation)
      .catch((error: Error) => log.warn({ error: error.message }, 'workshop.directory_left'))
      .finally(() => leaving.delete(id));
    leaving.set(id, left);
    return left;
  }

  /** Unused builds are kept for the next worker, but not all of them: each may fill as much of the disk as a session. */
  function leaveOldest() {
    const unused = unusedBuilds();
    for (const id of unused.slice(0, Math.max(0, unused.length - mostKept))) void leave(id);
  }

  /** One at a time: a second caller would find nothing that the first one is not removing already, and conclude that there is no more. */
  function leaveUnused(): Promise<void> {
    room ??= leaveWhileShort().finally(() => (room = undefined));
    return room;
  }

  /** First the builds that no worker uses, then idle workers with theirs. All of it can be made again. */
  async function leaveWhileShort(): Promise<void> {
    for (const id of unusedBuilds()) if (deps.short()) await leave(id);
    if (!deps.short()) return;
    await Promise.all([...idle.values()].flat().map(({ worker }) => drop(worker)));
    for (const id of unusedBuilds()) if (deps.short()) await leave(id);
  }

  /** Removes builds while the disk is short. What is being unpacked is given up last: somebody waits for it. */
  async function makeRoom(): Promise<void> {
    await leaveUnused();
    if (!deps.short()) return;
    for (const one of unpacking) one.abort(new WorkerError('The disk of the node is full. Run it again later.'));
    await Promise.allSettled(unpacked.values());
  }

  async function startOrTake(deploymentId: string, onLine: (line: string) => void): Promise<Worker> {
    for (let kept = idle.get(deploymentId)?.pop(); kept; kept = idle.get(deploymentId)?.pop()) {
      if (kept.worker.alive && kept.worker.current) return kept.worker;
      void drop(kept.worker);
    }
    const { entry, env, bytes } = await recipe(deploymentId);
    const { home: app } = await buildOf(deploymentId, bytes);
    await access(app).catch(() => unpacked.delete(deploymentId));
    const worker = await start({ id: newId(), app, entry, env, onLine });
    all.set(worker, deploymentId);
    void worker.gone.then(() => all.delete(worker));
    if (closed) await worker.stop(); // closing waits for this
    return worker;
  }

  /** Keeps a worker for the next action, unless it is used up. */
  async function giveBack(deploymentId: string, worker: Worker): Promise<void> {
    if (closed || !worker.alive || !worker.current || worker.runs >= mostRuns) return worker.stop();
    if ((await worker.memory()) > deps.memoryBytes * grown) return worker.stop();
    const kept = idle.get(deploymentId) ?? [];
    kept.push({ worker, since: Date.now() });
    idle.set(deploymentId, kept);
    if (idleCount() > deps.mostIdle) dropOldest();
  }

  const idleCount = () => [...idle.values()].reduce((sum, kept) => sum + kept.length, 0);

  function dropOldest() {
    const [oldest] = [...idle.values()].flat().sort((a, b) => a.since - b.since);
    if (oldest) void drop(oldest.worker);
  }

  function drop(worker: Worker): Promise<void> {
    for (const [id, kept] of idle) {
      const rest = kept.filter((one) => one.worker !== worker);
      if (rest.length > 0) idle.set(id, rest);
      else idle.delete(id);
    }
    return worker.stop().catch((error: Error) => log.warn({ error: error.message }, 'worker.not_stopped'));
  }

  const timer = setInterval(() => {
    for (const { worker, since } of [...idle.values()].flat()) if (Date.now() - since > idleMs) void drop(worker);
  }, lookMs).unref();

  return {
    take,
    giveBack,

    /** Unpacks a build for the first time. Resolves with what it takes on a disk. */
    async prepare(deploymentId: string, bytes: Recipe['bytes'], cover: Cover): Promise<number> {
      return (await keeping(deploymentId, buildOf(deploymentId, bytes, cover))).bytes;
    },

    makeRoom,
    count: () => all.size,
    deployments: () => [...new Set([...all.values(), ...unpacked.keys()])],

    /** Ends the workers of a deployment and removes its build from this node. */
    async forget(deploymentId: string): Promise<void> {
      idle.delete(deploymentId);
      await Promise.all([...all].filter(([, id]) => id === deploymentId).map(([worker]) => worker.stop()));
      const build = unpacked.get(deploymentId);
      if (!build) return;
      unpacked.delete(deploymentId);
      await build.catch(() => {});
      await removeTree(join(dir, 'builds', deploymentId), isolation);
    },

    /** Removes what a killed service left. */
    async sweep(): Promise<void> {
      for (const kind of ['cells', 'builds'])
        for (const name of await readdir(join(dir, kind)).catch(() => [] as string[]))
          await removeTree(join(dir, kind, name), isolation).catch((error: Error) =>
            log.error({ name, error: error.message }, 'workshop.directory_left'),
          );
    },

    async close(): Promise<void> {
      closed = true;
      clearInterval(timer);
      idle.clear();
      closing.abort();
      await Promise.all([...all.keys()].map((worker) => worker.stop()));
      await Promise.allSettled(starts);
    },
  };
}
