import type { CodeSourceService } from '../credentials/codes/service.ts';
import type { OpenCredential } from '../credentials/service.ts';
import { latest } from '../lib/latest.ts';
import type { Log } from '../lib/log.ts';
import type { Db } from '../store/db.ts';
import type { LoginBrowser } from './browsers.ts';
import { codeWatching } from './code-watch.ts';
import type { Explained, FlowInput, FlowOutcome, FlowState } from './flow/types.ts';
import { isShownName } from './flow/values.ts';
import type { LoginInputs } from './inputs.ts';
import type { loginKeeping } from './login-results.ts';
import type { LoginMetrics } from './metrics.ts';
import { ends, failed, loginEnds, type Stop } from './login-ends.ts';
import { runStore, type EndedRun, type FlowEnd, type RunRow } from './run-store.ts';
import { connectionStore, type ConnectionRow, type Learned } from './store.ts';

/** A login that does not stop when its signal fires is abandoned after this time. Its browser ends all the same. */
const stopMs = 10_000;
const mostNotes = 20;
/** All records of a login together, in characters of JSON. Older ones are kept without their pages, and the oldest are left out. */
const mostNotesCharacters = 64 * 1024;

/** A login that has its browser. */
interface Driven {
  connection: ConnectionRow;
  run: RunRow;
  browser: LoginBrowser;
  /** When the time of the login is over, in milliseconds since 1970. */
  endsAt: number;
  /** Fires when the login is to stop; `why` says for which reason. */
  signal: AbortSignal;
  why: () => Stop | undefined;
  /** Whether the hosted page is open. */
  attended: () => boolean;
}

export interface DrivingOptions {
  db: Db;
  inputs: LoginInputs;
  keeping: ReturnType<typeof loginKeeping>;
  codeSources: Pick<CodeSourceService, 'forLogin'>;
  runFlow: (input: FlowInput) => Promise<FlowOutcome>;
  /** When the next check of a connection is due, once it is logged in. */
  nextCheckAt: (intervalSeconds: number) => Date;
  metrics: Pick<LoginMetrics, 'flows'>;
  log: Log;
}

/** One login in its browser: through the flow, to a saved or unchanged profile. */
export function loginDriving(options: DrivingOptions) {
  const { db, inputs, keeping, runFlow, nextCheckAt, metrics, log } = options;
  const runs = runStore(db);
  const watchCodes = codeWatching(options);
  const { settle, settleSurely, owe, settleOwed } = loginEnds({ db, inputs, log });

  async function drive(driven: Driven): Promise<EndedRun> {
    const { connection, run, browser, signal } = driven;
    const { kind } = run;
    const facts = { connection: connection.id, flow: run.id, session: browser.sessionId };
    const began = performance.now();
    log.info({ ...facts, kind }, 'login.started');
    const notes: Note[] = [];
    const keepNotes = latest(
      (kept: Explained[]) => runs.explain(run.id, kept),
      (error) => log.warn({ ...facts, error: error.message }, 'login.not_explained'),
    );
    const record = (note: Explained) => {
      notes.push(noteOf(note));
      if (notes.length > mostNotes) notes.shift();
      keepNotes(boundedTogether(notes));
    };
    let codeUsed = false;
    let asked: FlowState['fields'] = [];
    let credential: OpenCredential | undefined;
    const codes = watchCodes({ connection, run, credential: () => credential, record });
    const flow = async (): Promise<FlowOutcome> => {
      // Before any page is opened: a page of a host that the item does not name has no part in this.
      const refused = await keeping.refusal(connection);
      if (refused) return { status: 'FAILED', errorCode: refused.code, errorMessage: refused.message, typed: {} };
      codes.begin();
      const given = await keeping.given(connection, kind);
      return runFlow({
        ...given,
        async credential() {
          const opened = await given.credential();
          credential = opened;
          if (opened) browser.hide([...secretValues(opened.values), ...(opened.totp ? [opened.totp.secret] : [])]);
          return opened;
        },
        async totp() {
          const code = await given.totp();
          if (code) browser.hide([code.code]);
          return code;
        },
        browser: browser.forms,
        attended: () => driven.attended() || browser.watched(),
        async report(state) {
          asked = state.fields;
          await runs.report(run.id, state);
        },
        async input(wanted) {
          const submitted = await codes.during(wanted, () => inputs.next(run, wanted));
          if (submitted.code !== undefined && !submitted.fromSource) codeUsed = true;
          browser.hide([
            ...secretAnswers(submitted.fieldValues ?? {}, asked),
            ...(submitted.code === undefined ? [] : [submitted.code]),
          ]);
          return submitted;
        },
        record,
        signal,
        deadlines: { total: driven.endsAt - Date.now() },
      });
    };
    const left = await stoppable(flow(), signal).catch((error: Error) => {
      log.error({ ...facts, error: error.message, stack: error.stack }, 'login.fault');
      return fault;
    });
    const outcome = codes.explained(left);
    if (outcome.cause instanceof Error)
      log.error({ ...facts, error: outcome.cause.message, stack: outcome.cause.stack }, 'login.fault');
    const row = await finish(driven, outcome, codeUsed).finally(() => codes.end(outcome));
    const seconds = (performance.now() - began) / 1000;
    metrics.flows.observe({ kind, outcome: row.status }, seconds);
    const { status, error_code: code } = row;
    log.info({ ...facts, kind, status, code, ms: Math.round(seconds * 1000) }, 'login.ended');
    return row;
  }

  /** Saves the profile, or leaves it as it was; then writes how the login ended. */
  async function finish(driven: Driven, outcome: FlowOutcome, codeUsed: boolean): Promise<EndedRun> {
    const { connection, run, browser } = driven;
    const { id } = connection;
    const why = driven.why();
    const succeeded = !why && outcome.status === 'SUCCESS';
    // A canceled login saves nothing. Neither does a login if the database does not return its state.
    const save =
      succeeded &&
      (await runs.underWayAmong([run.id]).then(
        (found) => found.has(run.id),
        () => false,
      ));
    const notSaved = await browser.end({ save }).catch((error: Error) => error.message);
    // The connection with changes by requests since; undefined when it is deleted.
    const now = await connectionStore(db)
      .find(connection.project_id, id)
      .catch(() => connection);
    const learned = now ? await keeping.keep({ began: connection, now }, outcome, save && !notSaved) : {};
    if (succeeded && !notSaved) {
      const found = {
        ...learned,
        event: 'logged_in',
        loggedIn: true,
        failures: 0,
        nextCheckAt: nextCheckAt((now ?? connection).health_check_interval),
        postLoginUrl: outcome.postLoginUrl,
        ssoProvider: outcome.ssoProvider,
        requirements: outcome.requirements,
        recipe: outcome.recipe,
        ...(codeUsed ? { takesCodes: true } : {}),
      } satisfies Learned;
      return (await settleSurely(run.id, { status: 'SUCCESS' }, { id, found })) ?? over(run, ends.canceled);
    }
    const end = why ? ends[why] : outcome.status === 'SUCCESS' ? unsaved(notSaved) : (outcome as FlowEnd);
    return (await settleSurely(run.id, end, { id, found: learned })) ?? over(run, end);
  }

  return { drive, settle, settleSurely, owe, settleOwed };
}

/** Of a credential's values, those that are not shown on the page while they are typed. */
const secretValues = (values: Record<string, string>): string[] =>
  Object.entries(values).flatMap(([name, value]) => (isShownName(name) ? [] : [value]));
/** The same of what a person answered, by the id of the field. */
const secretAnswers = (values: Record<string, string>, asked: FlowState['fields']): string[] =>
  asked.flatMap(({ id, type, key, options }) => {
    const isShown = type === 'identifier' || options !== undefined || (type === 'text' && isShownName(key));
    return values[id] === undefined || isShown ? [] : [values[id]];
  });

const fault = { ...ends.fault, typed: {} } as FlowOutcome;

const unsaved = (reason = '') =>
  failed('internal_error', `The login succeeded, and its profile could not be saved. ${reason}`.trim());

/** The row of a login that another request has ended. */
const over = (run: RunRow, { status, errorCode }: FlowEnd): EndedRun => ({
  ...run,
  status,
  error_code: errorCode ?? null,
});

/** A record with and without its page, and the characters of both. They are counted once: a record is as large as a page. */
interface Note {
  whole: Sized;
  bare: Sized;
}
interface Sized {
  note: Explained;
  characters: number;
}

const sized = (note: Explained): Sized => ({ note, characters: JSON.stringify(note).length });
const noteOf = (note: Explained): Note => ({ whole: sized(note), bare: sized({ ...note, page: undefined }) });

function boundedTogether(notes: readonly Note[]): Explained[] {
  let room = mostNotesCharacters;
  const kept: Explained[] = [];
  for (const { whole, bare } of notes.toReversed()) {
    const { note, characters } = whole.characters <= room ? whole : bare;
    if ((room -= characters) < 0) break;
    kept.unshift(note);
  }
  return kept;
}

/** The outcome of a flow. A flow that ignores the signal to stop counts as canceled. */
async function stoppable(flow: Promise<FlowOutcome>, signal: AbortSignal): Promise<FlowOutcome> {
  let timer: NodeJS.Timeout | undefined;
  let watch = () => {};
  const deaf = new Promise<FlowOutcome>((resolve) => {
    watch = () => void (timer = setTimeout(() => resolve({ status: 'CANCELED', typed: {} }), stopMs));
    if (signal.aborted) watch();
    else signal.addEventListener('abort', watch, { once: true });
  });
  flow.catch(() => {}); // a flow that is left behind may still fail
  return Promise.race([flow, deaf]).finally(() => {
    clearTimeout(timer);
    signal.removeEventListener('abort', watch);
  });
}
