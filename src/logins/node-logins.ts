import type { CredentialLookup } from '../credentials/lookup.ts';
import { errors, ServiceError } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import { onBehalfOf } from '../lib/scope.ts';
import { started } from '../lib/started.ts';
import type { Db } from '../store/db.ts';
import type { Secrets } from '../store/secrets.ts';
import type { BrowserWish, LoginBrowsers } from './browsers.ts';
import { loginDriving, type DrivingOptions } from './login-driver.ts';
import { ends, type Stop } from './login-ends.ts';
import { loginKeeping } from './login-results.ts';
import { runStore, type EndedRun, type RunRow } from './run-store.ts';

/** No login takes longer, including waits. */
export const flowSeconds = 20 * 60;

interface Running {
  run: RunRow;
  sessionId: string;
  attended: boolean;
  stop(why: Stop): void;
  over: Promise<EndedRun>;
}

/** A login with a running browser. `over` resolves when nothing but its rows is left. */
interface Begun {
  run: RunRow;
  over: Promise<EndedRun>;
}

/** How long a login may take, and what stops it. */
interface Term {
  endsAt: number;
  stopping: AbortController;
}

interface FlowWish extends Omit<BrowserWish, 'signal'> {
  kind: 'login' | 'reauth';
}

interface NodeLoginsOptions extends Omit<DrivingOptions, 'keeping'> {
  secrets: Secrets;
  browsers: LoginBrowsers;
  lookup: Pick<CredentialLookup, 'resolve' | 'refusal' | 'totpCode' | 'save'>;
  nodeId: string;
}

export type NodeLogins = ReturnType<typeof nodeLogins>;

/** Runs the logins of this node: each in one browser, from its first page until its profile is saved or left as it was. */
export function nodeLogins(options: NodeLoginsOptions) {
  const { db, browsers, inputs, nodeId, log } = options;
  const runs = runStore(db);
  const keeping = loginKeeping(options);
  const { drive, settle, settleSurely, owe, settleOwed } = loginDriving({ ...options, keeping });
  const running = new Map<string, Running>();
  /** Logins with starting browsers. */
  const starting = new Map<AbortController, Promise<unknown>>();
  let closed = false;

  /** Refuses while another login runs with the profile. A login past its time limit is ended. */
  async function place({ connection, kind, keyId }: FlowWish): Promise<RunRow> {
    const other = await runs.underWayWith(connection.profile_id);
    if (other && !other.over) throw errors.flow_in_progress({ connection: other.connection_id });
    if (other) await settle(other.id, ends.expired);
    const id = newId();
    const run = await runs
      .begin({
        id,
        connectionId: connection.id,
        profileId: connection.profile_id,
        kind,
        previousStatus: connection.status,
        nodeId,
        keyId,
        seconds: flowSeconds,
      })
      .catch((error: Error) => {
        // A connection that broke may have broken after the commit.
        if (!(error instanceof ServiceError)) owe(id, ends.not_written);
        throw error;
      });
    if (run) return run;
    const winner = await runs.underWayWith(connection.profile_id);
    throw errors.flow_in_progress({ connection: winner?.connection_id ?? connection.id });
  }

  const notEnded = (run: RunRow, { message }: Error) =>
    log.error({ connection: run.connection_id, flow: run.id, error: message }, 'login.not_ended');

  /** Starts a login. Resolves once its browser runs. */
  function begin(wish: FlowWish): Promise<Begun> {
    const stopping = new AbortController();
    const begun = launch(wish, stopping);
    const settled = Promise.allSettled([begun]);
    starting.set(stopping, settled);
    void settled.finally(() => starting.delete(stopping));
    return begun;
  }

  async function launch(wish: FlowWish, stopping: AbortController): Promise<Begun> {
    if (closed) throw errors.shutting_down({});
    // A browser that takes long to start takes it from the login's time.
    const endsAt = Date.now() + flowSeconds * 1000;
    const run = await place(wish);
    const end = () => (running.has(run.id) ? running.get(run.id)!.stop('fault') : stopping.abort());
    return onBehalfOf({ kind: 'login', id: run.id, end }, () => start(wish, run, { endsAt, stopping }));
  }

  async function start(wish: FlowWish, run: RunRow, { endsAt, stopping }: Term): Promise<Begun> {
    const browser = await browsers.start({ ...wish, signal: stopping.signal }).catch(async (error: Error) => {
      const errorMessage = error instanceof ServiceError ? error.message : 'The browser of the login did not start.';
      await settleSurely(run.id, { status: 'FAILED', errorCode: 'browser_error', errorMessage }).catch(
        (failed: Error) => notEnded(run, failed),
      );
      throw error;
    });
    const { sessionId, replayId, captured } = browser;
    const there = await runs.browserStarted(run.id, { sessionId, replayId, captured }).catch(() => undefined);
    const missing = there === undefined ? 'not_written' : there ? undefined : 'canceled';
    let why: Stop | undefined = closed ? 'shutdown' : missing;
    const entry: Running = {
      run,
      sessionId,
      attended: false,
      stop(reason) {
        why ??= reason;
        stopping.abort();
      },
      over: undefined as never,
    };
    running.set(run.id, entry);
    if (why) stopping.abort();
    const late = setTimeout(() => entry.stop('expired'), endsAt - Date.now() + 5000);
    const state = { endsAt, signal: stopping.signal, why: () => why, attended: () => entry.attended };
    entry.over = drive({ connection: wish.connection, run, browser, ...state })
      .catch((error: Error) => {
        notEnded(run, error);
        return run;
      })
      .finally(() => {
        clearTimeout(late);
        running.delete(run.id);
      });
    return { run: { ...run, session_id: sessionId, replay_id: replayId }, over: entry.over };
  }

  return {
    begin,
    settle,

    get count() {
      return running.size;
    },

    /** The notice that a login is to end came from any node. */
    cancel(runId: string) {
      running.get(runId)?.stop('canceled');
    },

    sessionEnded(sessionId: string) {
      for (const entry of running.values()) if (entry.sessionId === sessionId) entry.stop('browser_gone');
    },

    /** Looks for logins that were ended elsewhere, and for people on hosted pages; writes ends that the database did not take. */
    async look(): Promise<void> {
      const written = started(settleOwed());
      if (running.size === 0) return written;
      const asked = [...running]; // a login that begins during the question is not in its answer
      const there = await runs.underWayAmong(asked.map(([id]) => id));
      for (const [id, entry] of asked) {
        const found = there.get(id);
        if (found) entry.attended = found.attended;
        else entry.stop('canceled');
      }
      await written;
    },

    async forget(connectionId: string, within: Db): Promise<void> {
      await keeping.forget(connectionId, within);
      await inputs.discardOf(connectionId, within);
    },

    async close(): Promise<void> {
      closed = true;
      for (const stopping of starting.keys()) stopping.abort();
      await Promise.all(starting.values());
      for (const entry of running.values()) entry.stop('shutdown');
      await Promise.all(Array.from(running.values(), ({ over }) => over));
      // What the database does not take now either is ended by the next start of this node.
      await settleOwed().catch(() => {});
    },
  };
}
