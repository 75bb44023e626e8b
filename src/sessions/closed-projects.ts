import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../lib/log.ts';

const firstPauseMs = 250;
const longestPauseMs = 10_000;

/**
 * Ends the sessions of archived or deleted projects on this node. Asks the database for them whenever a project was closed and
 * whenever such an event may have been missed; asks again while the database does not answer.
 */
export function closedProjects({
  here,
  closedAmong,
  end,
  log,
}: {
  /** The sessions of this node. */
  here: () => string[];
  closedAmong: (ids: string[]) => Promise<string[]>;
  end: (id: string) => void;
  log: Log;
}) {
  const closing = new AbortController();
  let due = false;
  let sweeping = false;

  async function sweep(): Promise<void> {
    due = true;
    if (sweeping) return;
    sweeping = true;
    for (let pauseMs = firstPauseMs; due && !closing.signal.aborted;) {
      due = false;
      try {
        for (const id of await closedAmong(here())) end(id);
        pauseMs = firstPauseMs;
      } catch (error) {
        log.warn({ error: (error as Error).message, retryMs: pauseMs }, 'sessions.closed_projects_unknown');
        due = true;
        await sleep(pauseMs, undefined, { signal: closing.signal, ref: false }).catch(() => {});
        pauseMs = Math.min(pauseMs * 2, longestPauseMs);
      }
    }
    sweeping = false;
  }

  return { sweep: () => void sweep(), close: () => closing.abort() };
}
