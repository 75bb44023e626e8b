import { errors } from '../errors.ts';
import { isWellFormed } from '../lib/text.ts';
import type { Db } from '../store/db.ts';
import type { Secrets } from '../store/secrets.ts';
import type { Submitted } from './flow/types.ts';
import { interactionOf } from './answer.ts';
import { inputStore, type LockedRun } from './input-store.ts';
import type { Notices } from './notices.ts';
import { runStore, type RunRow } from './run-store.ts';
import type { SubmitFields } from './schema.ts';
import { broken, submittedTo } from './submit.ts';

/** The kind of secret that stores submitted values until they are taken. */
const inputOf = 'auth input';
/** Codes that wait for the page to ask for one. More than these are a fault of what sends them. */
const mostCodes = 10;
/** Notifications can be missed, so a login that waits looks by itself too. */
const lookMs = 2000;

export type LoginInputs = ReturnType<typeof loginInputs>;

/** What people submit and programs push, on its way from the node that was asked to the node that has the browser. */
export function loginInputs({ db, secrets, notices }: { db: Db; secrets: Secrets; notices: Notices }) {
  async function put(tx: Db, { id, connection_id }: LockedRun, submitted: Submitted, isCode: boolean): Promise<void> {
    const inputId = await inputStore(tx).addInput(id, isCode);
    await secrets.put(inputOf, inputId, JSON.stringify(submitted), tx);
    await runStore(tx).tell(connection_id, id, 'input');
  }

  async function locked(tx: Db, runId: string, connectionId: string): Promise<LockedRun> {
    const run = await inputStore(tx).lock(runId);
    const over = !run || run.status !== 'IN_PROGRESS' || (run.expires_at !== null && run.expires_at <= new Date());
    if (over) throw errors.no_active_flow({ connection: connectionId });
    return run;
  }

  function take(runId: string, codes: boolean): Promise<Submitted | undefined> {
    return db.transaction(async (tx) => {
      const found = await inputStore(tx).takeInput(runId, codes);
      if (!found) return undefined;
      const text = await secrets.get(inputOf, found.id, tx);
      await secrets.remove(inputOf, found.id, tx);
      return text === undefined ? undefined : (JSON.parse(text) as Submitted);
    });
  }

  return {
    submit: (runId: string, connectionId: string, request: SubmitFields): Promise<void> =>
      db.transaction(async (tx) => {
        const run = await locked(tx, runId, connectionId);
        const { step, state } = run;
        const waits = step === 'AWAITING_INPUT' || step === 'AWAITING_EXTERNAL_ACTION';
        if (!state || !waits)
          throw errors.flow_not_waiting({
            detail: `The login is ${(step ?? 'DISCOVERING').toLowerCase().replaceAll('_', ' ')} and takes no input now. Wait until flow_step is AWAITING_INPUT.`,
          });
        if (request.interaction_id !== undefined && request.interaction_id !== interactionOf(run))
          throw errors.stale_interaction({ connection: connectionId });
        const submitted = submittedTo(state, request);
        if ((await inputStore(tx).waitingInputs(runId, false)) > 0)
          throw errors.flow_not_waiting({
            detail: 'The login has just been given input, and has not answered yet. Wait for the next state.',
          });
        await put(tx, run, submitted, false);
      }),

    /** `fromSource`: from a source of the credential, and not from a program of the project. */
    pushCode: (runId: string, connectionId: string, code: string, fromSource = false): Promise<void> =>
      db.transaction(async (tx) => {
        if (!isWellFormed(code)) throw broken();
        const run = await locked(tx, runId, connectionId);
        if ((await inputStore(tx).waitingInputs(runId, true)) >= mostCodes)
          throw errors.flow_not_waiting({
            detail: `${mostCodes} codes wait for this login already. Send a code when the site has sent one.`,
          });
        await put(tx, run, { code, ...(fromSource ? { fromSource } : {}) }, true);
      }),

    /** The next input of a login; rejects when the signal fires. */
    async next(
      { id, connection_id }: Pick<RunRow, 'id' | 'connection_id'>,
      { signal, codes }: { signal: AbortSignal; codes: boolean },
    ): Promise<Submitted> {
      for (;;) {
        signal.throwIfAborted();
        const heard = notices.next(connection_id, signal, lookMs); // before looking, so that none is missed between
        try {
          const found = await take(id, codes);
          if (found) return found;
          await heard.promise;
        } finally {
          heard.stop();
        }
      }
    },

    /** Removes submits that were never taken. */
    async discard(runIds: string[], within: Db = db): Promise<void> {
      for (const id of await inputStore(within).inputsOf(runIds)) await secrets.remove(inputOf, id, within);
    },

    async discardOf(connectionId: string, within: Db): Promise<void> {
      for (const id of await inputStore(within).inputsOfConnection(connectionId))
        await secrets.remove(inputOf, id, within);
    },
  };
}
