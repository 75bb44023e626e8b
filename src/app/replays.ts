import { join } from 'node:path';
import type { Isolation } from '../chromium/browser/launch.ts';
import type { Addresses } from '../sessions/addresses.ts';
import type { LineLogs } from '../sessions/logs/line-logs.ts';
import { replayService } from '../sessions/replays/service.ts';
import { replayStore } from '../sessions/replays/store.ts';
import type { SessionService } from '../sessions/service.ts';
import type { Ground } from './ground.ts';
import type { Organisation } from './organisation.ts';

/** Videos of sessions. */
export function openReplays(
  { config, store, events, disk, opened, log }: Ground,
  deps: { org: Organisation; sessions: SessionService; addresses: Addresses; isolation: Isolation; recorder: LineLogs },
) {
  const { org, sessions, addresses, isolation, recorder } = deps;
  const replays = replayService({
    store: replayStore(store.db),
    sessions,
    addresses,
    dir: join(config.dataDir, 'replays'),
    confinement: isolation,
    nodeId: store.nodeId,
    days: config.replayDays,
    mostBytes: config.replayMegabytes * 2 ** 20,
    disk,
    storage: org.storage,
    say: (sessionId, line) => recorder.say(sessionId, line),
    log,
  });
  opened(() => replays.close());
  events.on('session.started', (facts) => replays.sessionStarted(facts));
  events.on('session.returned', ({ sessionId }) => replays.sessionReturned(sessionId));
  events.on('session.ended', ({ sessionId }) => replays.sessionEnded(sessionId));
  return replays;
}
