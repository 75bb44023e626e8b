import { ServiceError } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import { isDataError, type Db } from '../store/db.ts';
import type { FlowErrorCode } from './flow/types.ts';
import type { LoginInputs } from './inputs.ts';
import { runStore, type EndedRun, type FlowEnd } from './run-store.ts';
import { connectionStore, type Learned } from './store.ts';

/** Ends that are remembered while the database is away. Those beyond it wait until their time is over. */
const mostOwed = 1000;

/** Why a login was stopped from outside of its page. */
export type Stop = 'canceled' | 'expired' | 'shutdown' | 'browser_gone' | 'not_written' | 'fault';

export const failed = (errorCode: FlowErrorCode, errorMessage: string): FlowEnd => ({
  status: 'FAILED',
  errorCode,
  errorMessage,
});

export const ends: Record<Stop, FlowEnd> = {
  canceled: { status: 'CANCELED', errorCode: 'flow_failed', errorMessage: 'The login was canceled.' },
  expired: { status: 'EXPIRED', errorCode: 'session_expired', errorMessage: 'The login took longer than 20 minutes.' },
  shutdown: failed('browser_error', 'The service was stopped during the login. Start it again.'),
  browser_gone: failed('browser_error', 'The browser of the login was deleted or crashed. Start it again.'),
  not_written: failed('internal_error', 'The database did not answer as the login began. Start it again.'),
  fault: failed('internal_error', 'The login failed by a fault of the service. Its log has the reason.'),
};

interface LearnedOf {
  id: string;
  found: Learned;
}

/** Writes how logins ended, also while the database takes no writes. */
export function loginEnds({ db, inputs, log }: { db: Db; inputs: LoginInputs; log: Log }) {
  /** Ends that the database did not take, by the login. They are written when it answers again. */
  const owed = new Map<string, { end: FlowEnd; learned?: LearnedOf | undefined }>();

  /** Ends a login in the database, and removes its unused submits. Undefined: it had already ended. */
  async function settle(runId: string, end: FlowEnd, learned?: LearnedOf): Promise<EndedRun | undefined> {
    return db.transaction(async (tx) => {
      const row = await runStore(tx).end(runId, end);
      await inputs.discard([runId], tx);
      if (row && learned) await connectionStore(tx).learn(learned.id, learned.found);
      if (row && end.status !== 'SUCCESS') await runStore(tx).tell(row.connection_id, runId, 'cancel');
      return row;
    });
  }

  /** The same. An end with a value that the database never takes becomes a failure without that value. */
  async function settleStorable(runId: string, end: FlowEnd, learned?: LearnedOf): Promise<EndedRun | undefined> {
    try {
      return await settle(runId, end, learned);
    } catch (error) {
      if (!isDataError(error)) throw error;
      log.error({ flow: runId, error: (error as Error).message }, 'login.end_refused');
      return settle(runId, ends.fault);
    }
  }

  /**
   * The same for a login of this node. Only this process knows of its end: if the database fails just now, the end is
   * written later. Otherwise the login would be in progress for the rest of its 20 minutes, and bar its profile.
   */
  async function settleSurely(runId: string, end: FlowEnd, learned?: LearnedOf): Promise<EndedRun | undefined> {
    try {
      return await settleStorable(runId, end, learned);
    } catch (error) {
      owe(runId, end, learned);
      throw error;
    }
  }

  function owe(runId: string, end: FlowEnd, learned?: LearnedOf): void {
    if (owed.size < mostOwed) owed.set(runId, { end, learned });
  }

  /** Writes the ends that the database did not take, each by itself: an end that is refused again does not delay the others. */
  async function settleOwed(): Promise<void> {
    let refusal: unknown;
    for (const [runId, { end, learned }] of owed) {
      try {
        await settleStorable(runId, end, learned);
        owed.delete(runId);
      } catch (error) {
        if (error instanceof ServiceError) throw error; // the database does not answer: it would take none of the others either
        refusal ??= error;
      }
    }
    if (refusal !== undefined) throw refusal;
  }

  return { settle, settleSurely, owe, settleOwed };
}
