import { chmod } from 'node:fs/promises';
import type { FastifyBaseLogger } from 'fastify';
import { measureStops, metricsRegistry } from '../api/metrics.ts';
import { refuseStrangers } from '../cluster/agreement.ts';
import { relayChannel } from '../cluster/relay.ts';
import { nodeStore } from '../cluster/store.ts';
import { ConfigError, type Config } from '../config.ts';
import { eventBus } from '../events.ts';
import { diskSpace, sessionShare, type Space } from '../lib/disk-space.ts';
import { loginChannel } from '../logins/run-store.ts';
import { gatekeeper } from '../org/gatekeeper.ts';
import type { SessionTimings } from '../sessions/timings.ts';
import { readUpstreams } from '../proxies/upstreams.ts';
import { openStore } from '../store/open.ts';
import { openKeys, secretStore } from '../store/secrets.ts';
import { version } from '../version.ts';
import { measureFaults } from './faults.ts';
import { databaseFault, makeDataDir, refuseUnusable } from './first-faults.ts';

/** A stop of the event loop that clients notice. */
const TOLD_STOP_MS = 250;

export interface AppOptions {
  config: Config;
  logger: FastifyBaseLogger;
  onFatal: (error: Error) => void;
  /** Replaces the real measurement of the data directory's disk, for tests. */
  space?: () => Space;
  /** Shorter delays, for tests that wait for them. */
  timings?: Partial<SessionTimings>;
}

export type Ground = Awaited<ReturnType<typeof openGround>>;

/** What every room depends on: the store, its keys, events, metrics. */
export async function openGround(
  { config, logger, onFatal, space, timings }: AppOptions,
  opened: (close: () => unknown) => void,
) {
  const { dataDir, databaseUrl, diskReserve } = config;
  const upstreams = await readUpstreams(config.proxyUpstreams).catch(asConfigError);
  await refuseUnusable(config);
  await makeDataDir(dataDir);
  // Without a sandbox, the user of a session reaches its directory by the path. It may pass through this one, and list and read nothing.
  if (config.allowUnsandboxed && process.getuid?.() === 0) await chmod(dataDir, 0o711);
  const disk = diskSpace(dataDir, diskReserve === undefined ? undefined : diskReserve * 2 ** 20, space);
  const masterKeys = await openKeys(dataDir, config.secretKey);
  const store = await openStore({
    dataDir,
    databaseUrl,
    channels: [
      'corral_org',
      'corral_pools',
      'corral_nodes',
      'corral_runs',
      'corral_project_events',
      loginChannel,
      relayChannel,
    ],
    onLost: onFatal,
    beforeMigrating: async (db, id) =>
      refuseStrangers({ id, version, keys: [...masterKeys.ring().ids] }, await nodeStore(db).listIfThere()),
    log: logger,
  }).catch((error: Error) => {
    throw databaseFault(error, databaseUrl);
  });
  opened(() => store.close());
  const { db, anchor } = store;
  const events = eventBus();
  const gate = gatekeeper({ db, trusted: () => anchor.listening });
  anchor.on('corral_org', () => gate.forget());
  anchor.onGap(() => gate.forget());
  const metrics = metricsRegistry();
  measureFaults(metrics);
  const loop = measureStops(
    metrics,
    (ms) => ms >= TOLD_STOP_MS && logger.warn({ ms: Math.round(ms) }, 'event_loop.stopped'),
  );
  opened(() => loop.close());
  return {
    config,
    timings,
    log: logger,
    opened,
    upstreams,
    disk,
    /** What one session, build or worker may have on the disk, in MiB. */
    sessionDisk: config.sessionDisk ?? sessionShare(disk),
    masterKeys,
    store,
    probe: { name: 'store', required: true, check: () => store.ping().then(() => undefined) },
    secrets: secretStore(db, masterKeys),
    events,
    metrics,
    loop,
    gate,
  };
}

export function asConfigError(error: Error): never {
  throw new ConfigError([error.message]);
}
