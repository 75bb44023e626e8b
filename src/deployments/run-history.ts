import type { Log } from '../lib/log.ts';
import type { RunHistoryStore } from './run-history-store.ts';

/** History is trimmed to this share of its bound, so that it is not trimmed again at once. */
const trimTo = 0.9;
/** The bytes of a project are counted after it has added this share of the bound. */
const countAfter = 0.05;
/** On a short disk a project keeps this share of the bound. PostgreSQL uses the freed pages again, so that the database stops growing. */
const shortShare = 0.25;

export type RunHistory = ReturnType<typeof runHistory>;

/**
 * Bounds what a project keeps of its ended invocations and deployments: payloads, outputs, reasons and logs. Invocations are deleted whole: a row
 * without its output would look like an action that returned nothing. The bound is not part of the project's storage limit, because a refusal there
 * would fail actions that have already run.
 */
export function runHistory({
  store,
  projectBytes,
  short,
  log,
}: {
  store: Pick<RunHistoryStore, 'trim' | 'above'>;
  projectBytes: number;
  /** Whether the database's disk has only its reserve left. */
  short: () => boolean;
  log: Log;
}) {
  /** Projects with bytes that were added since they were last counted. */
  const added = new Map<string, number>();
  let trimming = Promise.resolve();
  let closed = false;

  /** One project at a time, so that trimming takes one connection to the database. */
  function trim(projectId: string): Promise<void> {
    added.delete(projectId);
    trimming = trimming.then(async () => {
      const most = short() ? projectBytes * shortShare : projectBytes;
      const keep = Math.floor(most * trimTo);
      try {
        let more = !closed && (await store.trim(projectId, most, keep));
        while (more && !closed) more = await store.trim(projectId, keep, keep);
      } catch (error) {
        added.set(projectId, added.get(projectId) ?? 0);
        log.warn({ project: projectId, error: (error as Error).message }, 'run_history.not_trimmed');
      }
    });
    return trimming;
  }

  return {
    /** The project has stored something that stays after its invocation or deployment. */
    note(projectId: string, bytes: number): void {
      const sum = (added.get(projectId) ?? 0) + bytes;
      added.set(projectId, sum);
      if (sum > projectBytes * countAfter) void trim(projectId);
    },

    /** Trims every project that has added something. On a short disk, also those that have much. */
    async tidy(): Promise<void> {
      const noted = [...added.keys()]; // trimming may add to them
      for (const projectId of noted) await trim(projectId);
      if (!short()) return;
      for (const projectId of await store.above(projectBytes * shortShare)) await trim(projectId);
    },

    /** Resolves when nothing is being trimmed any more. */
    close(): Promise<void> {
      closed = true;
      return trimming;
    },
  };
}
