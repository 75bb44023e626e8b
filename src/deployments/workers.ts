import { access, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Isolation } from '../chromium/sandbox/isolation.ts';
import { removeTree } from '../chromium/sandbox/outside.ts';
import type { Worker } from '../chromium/workshop/worker.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import { unpackedBuilds } from './unpacked-builds.ts';
import { onBehalfOf } from '../lib/scope.ts';

/** A worker is replaced after this many actions, so that what an app leaks is freed. */
const mostRuns = 100;
/** And when it has grown to this share of its memory. */
const grown = 0.6;
const idleMs = 5 * 60_000;
const lookMs = 15_000;

/** The app of a deployment, as a worker needs it. */
export interface DeployedApp {
  projectId: string;
  entry: string;
  env: Record<string, string>;
  bytes: () => AsyncIterable<Buffer>;
}

type StartWorker = (start: {
  id: string;
  projectId: string;
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
  appOf: (deploymentId: string) => Promise<DeployedApp>;
  memoryBytes: number;
  /** What an unpacked build may take. */
  diskBytes: number;
  /** Whether the disk has only its reserve left. */
  short: () => boolean;
  /** The most that wait, of all deployments together. */
  mostIdle: number;
  log: Log;
}) {
  const { dir, isolation, start, appOf, log } = deps;
  const idle = new Map<string, { worker: Worker; since: number }[]>();
  const all = new Map<Worker, string>();
  const starts = new Set<Promise<Worker>>();
  let closed = false;
  const builds = unpackedBuilds({
    ...deps,
    dir: join(dir, 'builds'),
    inUse: () => all.values(),
    endIdle: () => Promise.all([...idle.values()].flat().map(({ worker }) => drop(worker))),
  });

  /** A warm worker of the deployment, or a new one. What a new one prints while it loads goes to `onLine`. */
  async function take(deploymentId: string, onLine: (line: string) => void): Promise<Worker> {
    const start = startOrTake(deploymentId, onLine);
    starts.add(start);
    return builds.keeping(deploymentId, start).finally(() => starts.delete(start));
  }

  async function startOrTake(deploymentId: string, onLine: (line: string) => void): Promise<Worker> {
    for (let kept = idle.get(deploymentId)?.pop(); kept; kept = idle.get(deploymentId)?.pop()) {
      if (kept.worker.alive && kept.worker.current) return kept.worker;
      void drop(kept.worker);
    }
    const { projectId, entry, env, bytes } = await appOf(deploymentId);
    const { home: app } = await builds.of(deploymentId, { bytes });
    await access(app).catch(() => builds.lost(deploymentId));
    const worker = await owned(start, log)({ id: newId(), projectId, app, entry, env, onLine });
    all.set(worker, deploymentId);
    void worker.gone.catch(() => {}).then(() => all.delete(worker));
    if (closed) await worker.stop(); // closing waits for this
    return worker;
  }

  /** Keeps a worker for the next action, unless it is used up. */
  async function giveBack(deploymentId: string, worker: Worker): Promise<void> {
    if (closed || !worker.alive || !worker.current || worker.runs >= mostRuns) return worker.stop();
    const memory = await worker.memory().catch(() => Infinity);
    if (closed || memory > deps.memoryBytes * grown) return worker.stop();
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
    async prepare(deploymentId: string, how: Parameters<typeof builds.of>[1]): Promise<number> {
      return (await builds.keeping(deploymentId, builds.of(deploymentId, how))).bytes;
    },

    makeRoom: builds.makeRoom,
    count: () => all.size,
    deployments: () => [...new Set([...all.values(), ...builds.ids()])],

    /** Ends the workers of a deployment and removes its build from this node. */
    async forget(deploymentId: string): Promise<void> {
      idle.delete(deploymentId);
      await Promise.all([...all].filter(([, id]) => id === deploymentId).map(([worker]) => worker.stop()));
      await builds.remove(deploymentId);
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
      builds.close();
      await Promise.all([...all.keys()].map((worker) => worker.stop()));
      await Promise.allSettled(starts);
    },
  };
}

/** Starts workers that end when the service fails in their work. They outlive the invocation that needs them first. */
function owned(start: StartWorker, log: Log): StartWorker {
  return async (how) => {
    let worker: Worker | undefined;
    const notEnded = (error: Error) => log.warn({ error: error.message }, 'workers.left');
    const end = () => void worker?.stop('The service failed in the work of this worker.').catch(notEnded);
    return (worker = await onBehalfOf({ kind: 'worker', id: how.id, end }, () => start(how)));
  };
}
