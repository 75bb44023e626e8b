import type { Settler } from '../cluster/settlement.ts';
import type { CodeSourceService } from '../credentials/codes/service.ts';
import type { CredentialLookup } from '../credentials/lookup.ts';
import { abandon, reasons } from '../logins/abandoned.ts';
import { loginBrowsers } from '../logins/browsers.ts';
import { checked } from '../logins/flow/health.ts';
import { runWith } from '../logins/flow/state-loop.ts';
import { invitees } from '../logins/hosted/invitee.ts';
import { flowTokenPurpose, flowTokens } from '../logins/hosted/token.ts';
import { loginInputs } from '../logins/inputs.ts';
import { loginMetrics } from '../logins/metrics.ts';
import { loginNotices } from '../logins/notices.ts';
import { read } from '../logins/reading/read.ts';
import { loginChannel } from '../logins/run-store.ts';
import { nodeLogins } from '../logins/node-logins.ts';
import { jittered } from '../logins/checks.ts';
import { loginSchedule } from '../logins/schedule.ts';
import { loginService } from '../logins/service.ts';

import { tokens } from '../lib/tokens.ts';
import type { Egress } from './egress.ts';
import type { Ground } from './ground.ts';
import type { openSessions } from './sessions.ts';

/** Profiles that stay logged in: connections, the logins of this node, and their schedule. */
export async function openLogins(
  { store, secrets, events, metrics, gate, masterKeys, opened, log }: Ground,
  deps: {
    egress: Egress;
    lookup: CredentialLookup;
    codeSources: CodeSourceService;
    rooms: Pick<Awaited<ReturnType<typeof openSessions>>, 'sessions' | 'replays' | 'profiles'>;
    publicUrl: () => string;
    /** How long a page is waited for that still loads, computes or changes. */
    waitSeconds: number;
  },
) {
  const { db, anchor, nodeId } = store;
  const { sessions, replays, profiles } = deps.rooms;
  const { proxies } = deps.egress;
  const coming = deps.waitSeconds * 1000;
  const notices = loginNotices();
  const measured = loginMetrics(metrics);
  const inputs = loginInputs({ db, secrets, notices });
  const browsers = loginBrowsers({ sessions, replays, log });
  const shared = { db, browsers, nodeId, metrics: measured, log };
  const runner = nodeLogins({
    ...shared,
    secrets,
    inputs,
    lookup: deps.lookup,
    codeSources: deps.codeSources,
    runFlow: (input) => runWith(read, { ...input, deadlines: { ...input.deadlines, coming } }),
    nextCheckAt: jittered,
  });
  const schedule = loginSchedule({ ...shared, runner, checkPage: (input) => checked(read, { ...input, coming }) });
  const pass = flowTokens(tokens(() => masterKeys.ring(), Date.now, flowTokenPurpose));
  const logins = loginService({
    db,
    profiles,
    proxies,
    lookup: deps.lookup,
    runner,
    inputs,
    notices,
    tokens: pass,
    nodeId,
    publicUrl: deps.publicUrl,
    liveView: async ({ projectId, keyId }, sessionId) =>
      (await sessions.get(projectId, keyId, sessionId, false)).browser_live_view_url ?? '',
    log,
  });
  measured.measure(() => runner.count);

  anchor.on(loginChannel, (payload) => notices.hear(payload));
  anchor.onGap(() => notices.gap());
  notices.onAny((notice) => {
    if (notice?.what === 'cancel') runner.cancel(notice.runId);
    if (!notice) void runner.look().catch((error: Error) => log.warn({ error: error.message }, 'login.gap'));
  });
  events.on('session.ended', ({ sessionId }) => runner.sessionEnded(sessionId));
  events.on('profile.removed', () => {
    logins.removeOrphans().catch((error: Error) => log.error({ error: error.message }, 'login.orphans_not_removed'));
  });
  const nodeLost: Settler = async (lost, tx) => {
    await abandon(inputs, lost, reasons.lost, tx);
    return () => void schedule.look();
  };
  const left = await db.transaction((tx) => abandon(inputs, nodeId, reasons.restarted, tx));
  if (left > 0) log.warn({ logins: left }, 'logins.settled_after_restart');
  await logins.removeOrphans();

  // Together: a login that the schedule waits for is ended by the runner.
  opened(() => {
    logins.close();
    return Promise.all([schedule.close(), runner.close()]);
  });
  const lapseOf = (minter: { keyId: string; projectId: string }) => gate.lapseOf(minter);
  return { logins, schedule, nodeLost, invitees: invitees({ pass, lapseOf, flowIdOf: logins.flowIdOf }) };
}
