import { ServiceError, type ErrorCode } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import type { Db } from '../store/db.ts';
import type { LoginBrowsers } from './browsers.ts';
import type { Checked as CheckedPage } from './flow/health.ts';
import type { FlowBrowser, FlowConnection, FlowErrorCode, Health, Recipe } from './flow/types.ts';
import { flowConnection } from './login-results.ts';
import { leaveOpen, loginState } from './visit.ts';
import type { LoginMetrics } from './metrics.ts';
import { mostUnclear } from './state.ts';
import { canReauth } from './reauth.ts';
import { runStore, type EndedRun } from './run-store.ts';
import type { NodeLogins } from './node-logins.ts';
import { connectionStore, type ConnectionRow } from './store.ts';

/** A check that takes longer than this is canceled: the site does not answer. */
const checkMs = 3 * 60_000;
/** Pauses between attempts to log in again, or to check a site that cannot be judged. Afterwards a person is needed. */
export const pausesSeconds = [60, 240, 960];

/** Ends of a login that another attempt may change. Everything else would only lock the account. */
const passing = new Set<FlowErrorCode | null>([
  'network_error',
  'website_error',
  'browser_error',
  'internal_error',
  'navigation_confused',
  'element_not_found',
  'flow_failed',
  null,
]);

/** Refusals that say nothing about a login: there is no place for its browser now, or a person logs in at this moment. */
const busy = new Set<ErrorCode>([
  'capacity_exhausted',
  'session_limit_reached',
  'storage_full',
  'disk_overused',
  'shutting_down',
  'flow_in_progress',
]);
const isBusy = (error: unknown) => error instanceof ServiceError && busy.has(error.code);

/** The time of the next check: the interval, a tenth more or less, so that connections made together are not checked together. */
export const jittered = (seconds: number): Date => new Date(Date.now() + seconds * 1000 * (0.9 + 0.2 * Math.random()));

export interface CheckOptions {
  db: Db;
  browsers: LoginBrowsers;
  runner: Pick<NodeLogins, 'begin'>;
  /** Whether an open browser is still logged in. */
  checkPage: (input: {
    browser: FlowBrowser;
    connection: FlowConnection;
    recipe: Recipe | undefined;
    signal: AbortSignal;
  }) => Promise<CheckedPage>;
  metrics: Pick<LoginMetrics, 'checks'>;
  nodeId: string;
  log: Log;
}

interface Checked {
  health: Health;
  sessionId: string | null;
  startedAt: Date;
  problem?: { code: FlowErrorCode; message: string };
}

/** One check of one connection, and the login that follows when the profile is logged out and that needs no person. */
export function loginChecks({ db, browsers, runner, checkPage, metrics, nodeId, log }: CheckOptions) {
  const connections = connectionStore(db);
  const runs = runStore(db);

  async function visit(asked: ConnectionRow, signal: AbortSignal): Promise<void> {
    const checked = await check(asked, signal);
    if (signal.aborted) return; // another node, or the next start, checks it
    // Requests may have changed or deleted the connection since, and a person may have logged in, which is newer than this check.
    const row = await connections.find(asked.project_id, asked.id);
    if (!row || row.last_login_at?.getTime() !== asked.last_login_at?.getTime()) return;
    if (!checked) return putOff(row);
    metrics.checks.inc({ outcome: checked.health });
    log.info({ connection: row.id, health: checked.health, code: checked.problem?.code }, 'login.checked');
    if (checked.health === 'unknown') return postpone(row, checked, signal);
    const status = checked.health === 'authenticated' ? 'AUTHENTICATED' : 'NEEDS_AUTH';
    await write(row, checked, status);
    if (status === 'AUTHENTICATED')
      return connections.learn(row.id, {
        checked: true,
        failures: 0,
        nextCheckAt: jittered(row.health_check_interval),
      });
    await connections.learn(row.id, { checked: true });
    if (!row.auto_reauth || !row.health_checks || !canReauth(row).can)
      return connections.learn(row.id, { event: 'logged_out', failures: 0 });
    await reauth(row, signal);
  }

  /** Undefined: there was no place for its browser. */
  async function check(row: ConnectionRow, signal: AbortSignal): Promise<Checked | undefined> {
    const startedAt = new Date();
    const until = AbortSignal.any([signal, AbortSignal.timeout(checkMs)]);
    let sessionId: string | null = null;
    try {
      const { proxy_id: proxyId, browser_telemetry: telemetry } = row;
      const asking = { connection: row, keyId: null, proxyId, telemetry, signal: until };
      const browser = await browsers.start({ ...asking, record: false, withoutTabs: true });
      sessionId = browser.sessionId;
      let save = false;
      try {
        const recipe = await connections.recipe(row.id);
        const asked = { browser: browser.forms, connection: flowConnection(row), recipe };
        const before = await loginState(browser.forms, recipe);
        const { health, why } = await checkPage({ ...asked, signal: until });
        if (health === 'authenticated' && isRenewed(before, await loginState(browser.forms, recipe))) {
          await leaveOpen(browser.forms, row.post_login_url, until);
          save = !until.aborted;
        }
        const problem = { code: 'network_error' as const, message: `${unclear} ${why}` };
        return { health, sessionId, startedAt, ...(health === 'unknown' ? { problem } : {}) };
      } finally {
        const notSaved = await browser.end({ save, giveWay: true });
        if (notSaved !== undefined)
          log.warn({ connection: row.id, session: sessionId, reason: notSaved }, 'login.check_not_saved');
      }
    } catch (error) {
      if (isBusy(error)) return undefined;
      const message = error instanceof ServiceError ? error.message : 'The browser of the check failed.';
      log.warn({ connection: row.id, error: (error as Error).message }, 'login.check_failed');
      return { health: 'unknown', sessionId, startedAt, problem: { code: 'browser_error', message } };
    }
  }

  /** The site has replaced what the profile is logged in by: without a save, the check itself would have logged it out. */
  const isRenewed = (before: string | undefined, after: string | undefined) =>
    before !== undefined && after !== undefined && after !== before;

  /** There is no place for a browser now. Nothing is known of the login, so nothing is counted, and any node may try again soon. */
  function putOff(row: ConnectionRow): Promise<void> {
    log.info({ connection: row.id }, 'login.check_put_off');
    return connections.learn(row.id, { nextCheckAt: jittered(pausesSeconds[0]!) });
  }

  /**
   * A check without a result: retried soon, then at the usual pace. The status does not change. From the third in a row on, the answer of the
   * connection says so, and a login is tried, by its recipe: it finds out whether the profile is logged in.
   */
  async function postpone(row: ConnectionRow, checked: Checked, signal: AbortSignal): Promise<void> {
    await write(row, checked, row.status);
    const pause = pausesSeconds[row.failures];
    await connections.learn(row.id, {
      failures: pause === undefined ? row.failures : row.failures + 1,
      nextCheckAt: jittered(pause ?? row.health_check_interval),
    });
    const tries = row.failures + 1 >= mostUnclear && row.auto_reauth && row.health_checks && canReauth(row).can;
    // Without a browser nothing was seen of the site.
    if (!tries || signal.aborted || checked.sessionId === null) return;
    const ended = await attempt(row).catch((error: Error) => error);
    if (signal.aborted || ended instanceof Error || ended.status === 'SUCCESS' || passing.has(ended.error_code)) return;
    log.warn({ connection: row.id, code: ended.error_code }, 'login.reauth_failed');
    await connections.learn(row.id, { event: 'logged_out', failures: 0 });
  }

  const write = (row: ConnectionRow, { sessionId, startedAt, problem }: Checked, status: ConnectionRow['status']) =>
    runs.addCheck({
      id: newId(),
      connectionId: row.id,
      profileId: row.profile_id,
      nodeId,
      status,
      previousStatus: row.status,
      sessionId,
      startedAt,
      errorCode: problem?.code ?? null,
      errorMessage: problem?.message ?? null,
    });

  /** Logs in again. */
  async function reauth(row: ConnectionRow, signal: AbortSignal): Promise<void> {
    const ended = await attempt(row).catch((error: Error) => error);
    if (signal.aborted) return;
    if (ended instanceof Error) {
      log.warn({ connection: row.id, error: ended.message }, 'login.reauth_refused');
      if (isBusy(ended)) return putOff(row);
      return again(row, 'browser_error');
    }
    if (ended.status !== 'SUCCESS') await again(row, ended.error_code);
  }

  /** After the last attempt, or an end that another attempt would not change, a person is needed. */
  async function again(row: ConnectionRow, code: FlowErrorCode | null): Promise<void> {
    const pause = pausesSeconds[row.failures];
    const retries = pause !== undefined && passing.has(code);
    log.warn({ connection: row.id, code, again: retries }, 'login.reauth_failed');
    await connections.learn(
      row.id,
      retries ? { failures: row.failures + 1, nextCheckAt: jittered(pause) } : { event: 'logged_out', failures: 0 },
    );
  }

  async function attempt(row: ConnectionRow): Promise<EndedRun> {
    const { proxy_id: proxyId, browser_telemetry: telemetry, record_session: record } = row;
    const begun = await runner.begin({ connection: row, kind: 'reauth', keyId: null, proxyId, telemetry, record });
    return begun.over;
  }

  return { visit };
}

const unclear = 'The site did not show whether the profile is logged in.';
