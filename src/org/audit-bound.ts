import type { Log } from '../lib/log.ts';
import type { AuditStore } from './audit-store.ts';

/** The entries of a project are counted after it has added this share of the bound. */
const countAfter = 0.01;

/** Bounds the audit entries of a project: the oldest are removed. Entries without a project are of the operator's keys and have no bound. */
export function auditBound({ store, most, log }: { store: Pick<AuditStore, 'trim'>; most: number; log: Log }) {
  /** How many entries were added since the project's entries were counted. */
  const added = new Map<string, number>();
  let trimming = Promise.resolve();

  /** One project at a time, so that trimming takes one connection to the database. */
  function trim(projectId: string): Promise<void> {
    added.delete(projectId);
    trimming = trimming
      .then(() => store.trim(projectId, most))
      .catch((error: Error) => log.warn({ project: projectId, error: error.message }, 'audit.not_trimmed'));
    return trimming;
  }

  return {
    /** An entry was added. */
    note(projectId: string | null): void {
      if (projectId === null) return;
      const count = (added.get(projectId) ?? 0) + 1;
      added.set(projectId, count);
      if (count >= most * countAfter) void trim(projectId);
    },

    /** Trims every project that has added entries. */
    async tidy(): Promise<void> {
      await Promise.all(Array.from(added.keys(), trim));
    },
  };
}
