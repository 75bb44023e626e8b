import type { DiskTaker } from '../chromium/sandbox/disk-use.ts';
import type { Addresses } from '../sessions/addresses.ts';
import { measureSessions } from '../sessions/metrics.ts';
import { launchTrial } from '../sessions/launch-trial.ts';
import { keptLogs } from '../sessions/logs/kept.ts';
import { lineLogs } from '../sessions/logs/line-logs.ts';
import { keptLogStore } from '../sessions/logs/store.ts';
import { sessionProbes } from '../sessions/probes.ts';
import { sessionService } from '../sessions/service.ts';
import { sessionStore } from '../sessions/store.ts';
import type { Ground } from './ground.ts';
import type { Organisation } from './organisation.ts';
import type { Egress } from './egress.ts';
import { openBelongings } from './belongings.ts';
import { openLauncher } from './launcher.ts';
import { openReplays } from './replays.ts';
import { openTelemetry } from './telemetry.ts';

/** File systems have about one inode per 16 KiB; sessions may use half of theirs. */
const filesPerMegabyte = 32;

/** What other rooms have on the disk of sessions. */
export interface OnDisk {
  /** Ended when the disk is full, as sessions are. */
  takers: Iterable<DiskTaker>;
  /** Each deletes files that can be created again, the cheapest first. Called when the disk is almost full. */
  makers: (() => Promise<void>)[];
}

/** Sessions, the resources that they use, and their recordings. */
export async function openSessions(
  ground: Ground,
  {
    org,
    egress,
    addresses,
    refuseInvocation,
    apps,
  }: {
    org: Organisation;
    egress: Egress;
    addresses: Addresses;
    refuseInvocation: (projectId: string, id: string) => Promise<void>;
    apps: () => OnDisk;
  },
) {
  const { config, store, events, disk, sessionDisk, opened, log } = ground;
  const { isolation, launcher, missingParts } = await openLauncher(ground, egress);
  const { profiles, extensions } = await openBelongings(ground, org);
  const trial = launchTrial(launcher);
  opened(() => trial.close());
  const recorder = lineLogs();
  const pageConsole = lineLogs();
  const { telemetry, collect } = await openTelemetry(ground, pageConsole); // before the sessions, and closed after them
  const logs = keptLogs({
    store: keptLogStore(store.quick),
    recorder,
    pageConsole,
    short: () => config.databaseUrl === '' && disk.short(),
    log,
  });
  const sessions = sessionService({
    store: sessionStore(store.db),
    browsers: launcher,
    profiles,
    extensions,
    addresses,
    sessionCap: (projectId) => org.limits.sessionCap(projectId),
    proxies: egress.proxies,
    telemetry,
    collect,
    keepLog: logs.keep,
    refuseInvocation,
    nodeId: store.nodeId,
    capacity: config.capacity,
    spares: config.spares,
    disk,
    mostOnDisk: { bytes: sessionDisk * 2 ** 20, inodes: sessionDisk * filesPerMegabyte },
    takers: () => apps().takers,
    async makeRoom() {
      for (const make of apps().makers)
        await make().catch((error: Error) => log.warn({ error: error.message }, 'disk.room_not_made'));
    },
    timings: ground.timings,
    events,
    log,
  });
  const replays = openReplays(ground, { org, sessions, addresses, isolation, recorder });
  opened(() => sessions.close()); // before the replays, which are finished once no session runs
  events.on('session.returned', ({ sessionId }) => pageConsole.forget(sessionId));
  events.on('session.ended', ({ sessionId }) => {
    pageConsole.forget(sessionId);
    recorder.forget(sessionId);
  });
  events.on('project.closed', () => sessions.endClosedProjects());
  store.anchor.onGap(() => sessions.endClosedProjects());
  measureSessions(ground.metrics, sessions);
  await sessions.start();
  await replays.open();
  return {
    profiles,
    extensions,
    sessions,
    replays,
    sessionLogs: { kept: logs, recorder, pageConsole },
    telemetry,
    isolation,
    probes: sessionProbes(isolation, config.allowUnsandboxed, trial.check, missingParts),
  };
}
