import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DiskSpace } from '../../lib/disk-space.ts';
import type { Log } from '../../lib/log.ts';
import type { Destinations } from '../egress/destinations.ts';
import type { Limits } from '../sandbox/cgroup-limits.ts';
import type { DiskTaker } from '../sandbox/disk-use.ts';
import type { Isolation } from '../sandbox/isolation.ts';
import { APP, TOOLS } from '../sandbox/mounts.ts';
import { waysTo } from './ways.ts';
import { proxied } from './proxied.ts';
import { openCell } from './cell.ts';
import type { Workbench } from './workbench.ts';
import { outcomeOf, readReports, type Outcome } from './worker-reports.ts';

/** A process that runs the actions of one deployment, one at a time. */
export interface Worker {
  /** Never rejects. If the worker ends, the action fails. */
  run(
    action: { id: string; app: string; action: string; payload: string | null },
    onLine: (line: string) => void,
  ): Promise<Outcome>;
  readonly runs: number;
  /** False from the moment its process has ended. */
  readonly alive: boolean;
  /** Whether it has a listener for each node that there is now: addresses of sessions may belong to any node. */
  readonly current: boolean;
  /** Resolves when it has ended, for any reason. */
  readonly gone: Promise<void>;
  memory(): Promise<number>;
  stop(why?: string): Promise<void>;
}

interface WorkerOptions {
  readonly dir: string;
  readonly isolation: Isolation;
  readonly workbench: Workbench;
  readonly limits: Limits & { diskBytes: number };
  readonly disk: DiskSpace;
  readonly cells: Set<DiskTaker>;
  readonly relieve: () => void;
  readonly allow: Destinations;
  /** The public URLs of this service's nodes, this one's first, and of the hosts of sessions. */
  readonly urls: () => string[];
  /** Where this service listens. */
  readonly here: () => string;
  readonly log: Log;
}

export class WorkerError extends Error {
  override readonly name = 'WorkerError';
}

const START_MS = 60_000;
/** An app that writes more than is read may not keep its own end waiting. */
const LINES_MS = 5000;
/** Starts workers, each in a cell of its own. Rejects with a sentence when the app does not load. */
export function workerStarter({
  dir,
  isolation,
  workbench,
  limits,
  disk,
  cells,
  relieve,
  allow,
  urls,
  here,
  log,
}: WorkerOptions) {
  return async function startWorker(start: {
    id: string;
    projectId: string;
    app: string;
    entry: string;
    env: Record<string, string>;
    onLine: (line: string) => void;
  }): Promise<Worker> {
    await workbench.ready();
    const reached = urls();
    const ways = waysTo(reached, here());
    // With the port: no listener connects to another port of the same host. Not every client understands a port after the end of a name.
    const direct = ways.map(({ name, target }) =>
      name?.startsWith('*') ? name.slice(1) : `${target.host}:${target.port}`,
    );
    let lineTo = start.onLine;
    let runs = 0;
    let current: string | undefined;
    let allRead: (() => void) | undefined;
    const command = [...workbench.program(TOOLS, 'worker')];
    command.splice(1, 0, '--enable-source-maps');
    const cell = await openCell({
      projectId: start.projectId,
      dir: join(dir, 'cells', `worker-${start.id}`),
      command: ['env', ...proxied(direct), ...workbench.trusting(TOOLS), ...command],
      isolation,
      limits,
      disk,
      cells,
      relieve,
      tools: workbench.dir,
      app: start.app,
      allow,
      ways,
      onLine: (line) => (line === `\u0001end of ${current}` ? allRead?.() : lineTo(line)),
      log,
    });
    let alive = true;
    void cell.ended.then(() => (alive = false));
    let settle: ((outcome: Outcome) => void) | undefined;
    let started: { resolve(): void; reject(error: Error): void } | undefined;
    const ready = new Promise<void>((resolve, reject) => (started = { resolve, reject }));
    ready.catch(() => {});

    // The app can write to this pipe too. An unexpected report ends the worker, so that the service does not spend time on it.
    readReports(cell.fromCommand, {
      refuse: (why) => void cell.stop(why),
      take(said) {
        if ('ready' in said || 'broken' in said) {
          if (!started) return false;
          if ('ready' in said) started.resolve();
          else started.reject(new WorkerError(`The app does not load: ${said.broken}`));
          started = undefined;
          return true;
        }
        if (!settle || ('done' in said ? said.done : said.failed) !== current) return false;
        if ('done' in said) void outcomeOf(said.output, cell).then(settle);
        else settle({ failure: said.message });
        settle = undefined;
        return true;
      },
    });

    const gone = cell.exited.then(async ({ code, signal }) => {
      const why = cell.complaint() ?? `The app's process ended with ${signal ?? `code ${code}`}.`;
      started?.reject(new WorkerError(why));
      settle?.({ failure: why });
      await cell.remove();
    });
    gone.catch(() => {}); // awaited by stop()

    const order = (what: object) => void cell.toCommand.write(`${JSON.stringify(what)}\n`);
    order({ start: { env: start.env, entry: join(APP, start.entry) } });
    const late = setTimeout(() => void cell.stop(`The app did not load within ${START_MS / 1000} s.`), START_MS);
    try {
      await ready;
    } catch (error) {
      await cell.stop();
      await gone;
      throw error;
    } finally {
      clearTimeout(late);
    }

    return {
      get runs() {
        return runs;
      },
      get alive() {
        return alive;
      },
      get current() {
        return reached.join(' ') === urls().join(' ');
      },
      gone,
      memory: () => cell.memory(),
      async stop(why) {
        await cell.stop(why);
        await gone;
      },
      async run(action, onLine) {
        runs++;
        lineTo = onLine;
        current = action.id;
        const read = new Promise<void>((resolve) => (allRead = resolve));
        const outcome = await new Promise<Outcome>((resolve) => {
          settle = resolve;
          cell.exited.then(
            ({ code, signal }) =>
              resolve({ failure: cell.complaint() ?? `The app's process ended with ${signal ?? `code ${code}`}.` }),
            () => {},
          );
          order({ run: action });
        });
        // The report and the log take different pipes: the last line of the log may come after the report.
        await Promise.race([read, cell.exited, sleep(LINES_MS, undefined, { ref: false })]);
        settle = undefined;
        current = undefined;
        lineTo = () => {}; // the log of this action has ended; further output is dropped
        return outcome;
      },
    };
  };
}
