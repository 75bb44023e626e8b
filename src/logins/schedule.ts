import { finishedWithin } from '../lib/deadline.ts';
import { errors } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import { onBehalfOf } from '../lib/scope.ts';
import { checkTurns } from './check-turns.ts';
import { checkClaims } from './claim-store.ts';
import { jittered, loginChecks, pausesSeconds, type CheckOptions } from './checks.ts';
import { runStore } from './run-store.ts';
import { ends } from './login-ends.ts';
import type { NodeLogins } from './node-logins.ts';
import { connectionStore } from './store.ts';

/** How often a node looks for due checks, and how many it runs at a time. */
const lookMs = 15_000;
/** How often a node looks whether its logins were ended elsewhere, and whether people are on their pages. */
const sweepMs = 3000;
const atOnce = 2;
/** A check that takes longer than this has a login that waits, for a code or for a person. Others are checked at the same time. */
const slotMs = 60_000;
/** So many may wait: each has a browser. One project may have all that wait, and others have their checks done beside them. */
const mostWaiting = 4;
/** A claim that is not renewed lapses after this, and another node takes the check over. */
const leaseSeconds = 60;
/** Logins past their time by this much were forgotten by their node. */
const graceSeconds = 60;

/**
 * Checks on schedule whether profiles are still logged in, and logs in again where that needs no person. The database says
 * which checks are due, and a claim keeps other nodes from running them for as long as it is renewed.
 */
export function loginSchedule(
  options: CheckOptions & { runner: Pick<NodeLogins, 'begin' | 'settle' | 'look'>; slotMs?: number },
) {
  const { db, runner, nodeId, log } = options;
  const connections = connectionStore(db);
  const claims = checkClaims(db);
  const runs = runStore(db);
  const { visit } = loginChecks(options);
  const stopping = new AbortController();
  const timers: NodeJS.Timeout[] = [];
  const turns = checkTurns(mostWaiting);
  const working = new Set<Promise<void>>();
  const waiting = new Set<Promise<void>>();
  const notDone = (error: Error) => log.warn({ error: error.message }, 'login.checks_not_done');
  const notSwept = (error: Error) => log.warn({ error: error.message }, 'logins.not_swept');

  /** Claims one connection after the other until none is due. */
  async function worker(): Promise<void> {
    while (!stopping.signal.aborted) {
      const claimId = newId();
      const due = await turns.next((except) => claims.claimDue(claimId, nodeId, leaseSeconds, except));
      if (!due) return;
      await slot(claimed(due, claimId).finally(() => turns.over(due.project_id)));
    }
  }

  async function slot(check: Promise<void>): Promise<void> {
    if (waiting.size >= mostWaiting || (await finishedWithin(options.slotMs ?? slotMs, check))) return check;
    const left = check.catch(notDone).finally(() => waiting.delete(left));
    waiting.add(left);
  }

  async function claimed({ id, project_id: projectId }: { id: string; project_id: string }, claimId: string) {
    const lost = new AbortController();
    const renewing = setInterval(
      () => {
        claims.renewClaim(id, claimId, leaseSeconds).then(
          (ours) => ours || lost.abort(),
          () => {}, // the database is away; the claim lapses if it stays away
        );
      },
      (leaseSeconds * 1000) / 4,
    ).unref();
    try {
      const row = await connections.find(projectId, id);
      const end = () => lost.abort();
      const until = AbortSignal.any([stopping.signal, lost.signal]);
      if (row) await onBehalfOf({ kind: 'check', id, end }, () => visit(row, until));
    } catch (error) {
      log.error({ connection: id, error: (error as Error).message }, 'login.check_fault');
      await connections.learn(id, { nextCheckAt: jittered(pausesSeconds[0]!) });
    } finally {
      clearInterval(renewing);
      await claims.releaseClaim(id, claimId);
    }
  }

  /** Ends logins that their node forgot. */
  async function sweep(): Promise<void> {
    for (const { id } of await runs.overdue(graceSeconds)) await runner.settle(id, ends.expired);
  }

  /** Looks for due checks, as many at a time as this node may run. Resolves when none is under way. */
  async function look(): Promise<void> {
    while (!stopping.signal.aborted && working.size < atOnce) {
      const work = worker()
        .catch(notDone)
        .finally(() => working.delete(work));
      working.add(work);
    }
    await Promise.all(working);
    await Promise.all(waiting);
  }

  return {
    look,
    sweep,

    start() {
      void look();
      timers.push(
        setInterval(() => void look(), lookMs).unref(),
        setInterval(() => void Promise.all([runner.look(), sweep()]).catch(notSwept), sweepMs).unref(),
      );
    },

    async close(): Promise<void> {
      for (const timer of timers) clearInterval(timer);
      stopping.abort(errors.shutting_down({}));
      await Promise.all(working);
      await Promise.all(waiting);
    },
  };
}
