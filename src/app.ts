import { mkdir, stat } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { callerByKey } from './api/caller.ts';
import { measureRequests, metricsRegistry } from './api/metrics.ts';
import { httpServer, pathOf } from './api/server.ts';
import { statusRoutes, type Probe } from './api/status.ts';
import { destinations, parseAllowList, type ServiceAddress } from './chromium/egress/destinations.ts';
import { openToolbox } from './chromium/guest/toolbox.ts';
import { detectIsolation } from './chromium/browser/launch.ts';
import { decompress } from './chromium/browser/profile-archive.ts';
import { refuseStrangers } from './cluster/agreement.ts';
import type { Settler } from './cluster/membership.ts';
import { measureNodes } from './cluster/metrics.ts';
import { nodesProbe } from './cluster/probe.ts';
import { relay, relayChannel } from './cluster/relay.ts';
import { cluster } from './cluster/service.ts';
import { nodeStore } from './cluster/store.ts';
import { ConfigError, type Config } from './config.ts';
import { eventBus } from './events.ts';
import { extensionRoutes } from './extensions/routes.ts';
import { extensionService } from './extensions/service.ts';
import { uploads } from './extensions/uploads.ts';
import { EgressError } from './chromium/egress/refusals.ts';
import { reachThrough } from './chromium/egress/proxy-check.ts';
import { diskSpace, type Space } from './lib/disk-space.ts';
import { createOnce } from './lib/files.ts';
import { newId, pick } from './lib/ids.ts';
import { tokens } from './lib/tokens.ts';
import { undoOnFailure } from './lib/undo.ts';
import { apiKeyService, type ApiKeyService } from './org/api-keys.ts';
import { auditService } from './org/audit.ts';
import { gatekeeper } from './org/gatekeeper.ts';
import { limitService } from './org/limits.ts';
import { projectService, type Occupancy } from './org/projects.ts';
import { orgRoutes } from './org/routes.ts';
import { storageService } from './org/storage.ts';
import { addresses as sessionAddresses, type Minter } from './sessions/addresses.ts';
import { browserRoutes } from './sessions/browser/routes.ts';
import { browsers } from './sessions/browsers.ts';
import { fsRoutes } from './sessions/fs/routes.ts';
import { playwrightRoutes } from './sessions/playwright/routes.ts';
import { processRoutes } from './sessions/process/routes.ts';
import { computerRoutes } from './sessions/computer/routes.ts';
import { curlRoutes } from './sessions/curl/routes.ts';
import { recorderLog } from './sessions/logs/recorder-log.ts';
import { logRoutes } from './sessions/logs/routes.ts';
import { measureSessions } from './sessions/metrics.ts';
import { sessionProbes } from './sessions/probes.ts';
import { nodesWithSessions, settleLostNode } from './sessions/reconcile.ts';
import { replayRoutes } from './sessions/replays/routes.ts';
import { replayService } from './sessions/replays/service.ts';
import { replayStore } from './sessions/replays/store.ts';
import { rateLimit } from './sessions/rate-limit.ts';
import { sessionRoutes } from './sessions/routes.ts';
import { sessionService } from './sessions/service.ts';
import { serveSessionSockets } from './sessions/sockets.ts';
import { sessionStore } from './sessions/store.ts';
import { profileMetrics } from './profiles/metrics.ts';
import { profileRoutes } from './profiles/routes.ts';
import { profileService } from './profiles/service.ts';
import { poolMetrics } from './pools/metrics.ts';
import { sessionsAnywhere } from './pools/nodes/anywhere.ts';
import { sessionsHere } from './pools/nodes/here.ts';
import { pooledSessionRoutes } from './pools/nodes/routes.ts';
import { poolRoutes } from './pools/routes.ts';
import { poolService } from './pools/service.ts';
import { poolStore } from './pools/store.ts';
import { proxyRoutes } from './proxies/routes.ts';
import { proxyService } from './proxies/service.ts';
import { readUpstreams } from './proxies/upstreams.ts';
import { whereabouts } from './sessions/whereabouts.ts';
import { openStore } from './store/open.ts';
import { openKeys, secretStore } from './store/secrets.ts';
import { version } from './version.ts';

/** File systems have an inode for each 16 KiB or so; sessions may use half of theirs. */
const filesPerMegabyte = 32;
/** Of a session's bound: one file that is too large is refused, and the session goes on. */
const mostOfOneFile = 0.75;

export type App = Awaited<ReturnType<typeof buildApp>>;

/** The composition root: rooms are put together top to bottom and closed bottom to top. Nothing runs that is not started here. */
export async function buildApp(options: {
  config: Config;
  logger: FastifyBaseLogger;
  onFatal: (error: Error) => void;
  /** How full the data directory's disk is, if not as the system says: for tests. */
  space?: () => Space;
}) {
  const { config, logger, onFatal } = options;
  return undoOnFailure(async (undo) => {
    const upstreams = await readUpstreams(config.proxyUpstreams).catch((error: Error) => {
      throw new ConfigError([error.message]);
    });
    await mkdir(config.dataDir, { recursive: true, mode: 0o700 });
    const { dataDir, databaseUrl } = config;
    const { diskReserve } = config;
    const disk = diskSpace(dataDir, diskReserve === undefined ? undefined : diskReserve * 2 ** 20, options.space);
    const masterKeys = await openKeys(dataDir, config.secretKey);
    const store = await openStore({
      dataDir,
      databaseUrl,
      channels: ['corral_org', 'corral_pools', 'corral_nodes', relayChannel],
      onLost: onFatal,
      beforeMigrating: async (db, id) =>
        refuseStrangers({ id, version, keys: [...masterKeys.ring().ids] }, await nodeStore(db).listIfThere()),
      log: logger,
    });
    undo(() => store.close());
    const { db, quick, anchor } = store;
    const secrets = secretStore(db, masterKeys);
    const events = eventBus();
    const metrics = metricsRegistry();
    const probes: Probe[] = [{ name: 'store', required: true, check: () => store.ping().then(() => undefined) }];

    const gate = gatekeeper({ db, trusted: () => anchor.listening });
    const changed = () => gate.forget();
    anchor.on('corral_org', changed);
    anchor.onGap(changed);
    /** What is done for a node that is lost, by the one that gives it up. */
    const settlers: Settler[] = [settleLostNode({ events, log: logger })];
    const nodes = cluster({
      db,
      quick,
      id: store.nodeId,
      version,
      keys: () => masterKeys.ring(),
      load: () => ({ capacity: config.capacity, running: sessions.counts().taken }),
      shared: databaseUrl !== '',
      settlers,
      nodesInUse: nodesWithSessions,
      async givenUp() {
        await sessions.endSettled();
        await pools.catchUp();
      },
      events,
      onFatal,
      log: logger,
    });
    undo(() => nodes.leave());
    anchor.on('corral_nodes', () => void nodes.refresh());
    anchor.onGap(() => void nodes.refresh());
    const relayed = relay({ db, id: nodes.id, events, which: ['project.closed'], log: logger });
    anchor.on(relayChannel, (payload) => relayed.hear(payload));
    probes.push(nodesProbe(nodes));
    measureNodes(metrics, nodes);

    const occupancies: Occupancy[] = [];
    const projects = projectService({ db, events, changed, occupancies });
    const keys = apiKeyService({ db, changed });
    const limits = limitService({ db, projects, capacity: async () => nodes.capacity() });
    const audit = auditService({ db, quick });
    await projects.ensureDefault();
    const firstKey = await letFirstKeyIn(keys, config);

    /** Where we listen, which browsers may not reach; known once we do. Nor may they reach the other nodes. */
    const ourselves = new Set<ServiceAddress>();
    const service = {
      *[Symbol.iterator]() {
        yield* ourselves;
        for (const url of nodes.addresses()) yield serviceAddress(url);
      },
    };
    const allow = destinations({ allow: config.allowPrivateHosts.flatMap(parseAllowList), service });
    const proxies = proxyService({
      db,
      secrets,
      upstreams,
      refuseHost: (host, port) => allow.check(host, port).then(() => undefined, egressError),
      reach: (proxy, url) => reachThrough(proxy, url, { allow }),
      checkUrl: config.proxyCheckUrl,
      checkMinutes: config.proxyCheckMinutes,
      log: logger,
    });
    undo(() => proxies.close());
    occupancies.push((projectId) => proxies.occupancy(projectId));
    const isolation = await detectIsolation({
      full: config.chromium,
      headlessShell: config.headlessShell,
      uids: config.sessionUids,
      reservedUids: databaseUrl === '' ? [(await stat(join(dataDir, 'postgres'))).uid] : [],
    }).catch((error: Error) => {
      throw new ConfigError([error.message]);
    });
    for (const reason of isolation.reasons) logger.warn({ reason }, 'degraded');
    if (!isolation.sandboxed) void isolation.whenSandboxed.then(() => logger.info({}, 'sandbox.granted'));
    const addresses = sessionAddresses({
      tokens: tokens(() => masterKeys.ring()),
      publicUrl: (nodeId) => (nodeId && nodes.publicUrlOf(nodeId)) || config.publicUrl || origin(http),
      leaseOf: (id) => sessions.leaseOf(id),
      lapseOf: (minter) => gate.lapseOf(minter),
    });
    const storage = storageService({ db, nodeId: store.nodeId, mostBytes: config.projectStorage * 2 ** 20 });
    await storage.nodeLost(store.nodeId);
    settlers.push((nodeId, tx) => storage.nodeLost(nodeId, tx));
    const profiles = profileService({
      db,
      quick,
      secrets,
      events,
      metrics: profileMetrics(metrics),
      nodeId: store.nodeId,
      disk: databaseUrl === '' ? disk : undefined,
      storage,
      decompress,
      log: logger,
    });
    await profiles.start();
    settlers.push((nodeId, tx) => profiles.nodeLost(nodeId, tx));
    occupancies.push((projectId) => profiles.occupancy(projectId));
    const incoming = uploads(join(dataDir, 'uploads'), disk);
    await incoming.sweep();
    const extensions = extensionService({ db, uploads: incoming, storage, storeUrl: config.chromeStoreUrl });
    occupancies.push((projectId) => extensions.occupancy(projectId));
    const toolbox = openToolbox(join(dataDir, 'tools'));
    undo(() => toolbox.ready);
    const sessions = sessionService({
      store: sessionStore(db),
      browsers: browsers({
        dir: join(dataDir, 'sessions'),
        isolation,
        toolbox,
        allowUnsandboxed: config.allowUnsandboxed,
        allow,
        launchSeconds: config.launchSeconds,
        limits: {
          memoryBytes: config.sessionMemory * 2 ** 20,
          pids: config.sessionPids,
          cpus: config.sessionCpus,
          fileBytes: config.sessionDisk * 2 ** 20 * mostOfOneFile,
        },
        log: logger,
      }),
      profiles,
      extensions,
      addresses,
      sessionCap: (projectId) => limits.sessionCap(projectId),
      proxies,
      nodeId: store.nodeId,
      capacity: config.capacity,
      spares: config.spares,
      disk,
      mostOnDisk: { bytes: config.sessionDisk * 2 ** 20, inodes: config.sessionDisk * filesPerMegabyte },
      events,
      log: logger,
    });
    const recorder = recorderLog();
    const replays = replayService({
      store: replayStore(db),
      sessions,
      addresses,
      dir: join(dataDir, 'replays'),
      confinement: isolation,
      nodeId: store.nodeId,
      days: config.replayDays,
      mostBytes: config.replayMegabytes * 2 ** 20,
      disk,
      storage,
      say: (sessionId, line) => recorder.say(sessionId, line),
      log: logger,
    });
    events.on('session.started', (facts) => replays.sessionStarted(facts));
    events.on('session.returned', ({ sessionId }) => replays.sessionReturned(sessionId));
    events.on('session.ended', ({ sessionId }) => {
      replays.sessionEnded(sessionId);
      recorder.forget(sessionId);
    });
    settlers.push(async (nodeId, tx) => {
      await replayStore(tx).loseAll(nodeId);
      return () => {};
    });
    await sessions.start();
    undo(() => sessions.close());
    await replays.open();
    undo(() => replays.close());
    occupancies.push((projectId) => sessions.occupancy(projectId));
    events.on('project.closed', ({ projectId }) => void sessions.stopProject(projectId));
    const nobody = () => ({ requestId: newId('req_'), clientIp: '', caller: null, project: null });
    const pooled = sessionsHere({ db, sessions });
    const pools = poolService({
      db,
      sessions: sessionsAnywhere({
        here: pooled,
        store: poolStore(db),
        nodeId: store.nodeId,
        ask: (nodeId, request, signal) => nodes.ask(nodeId, request, nobody(), signal),
        log: logger,
      }),
      make: sessions.makePooled,
      resolve: sessions.resolve,
      place: nodes.place,
      events,
      metrics: poolMetrics(metrics),
      nodeId: store.nodeId,
      capacity: async () => nodes.capacity(),
      sessionCap: (projectId) => limits.sessionCap(projectId),
      usage: (within, projectId, except) => sessionStore(within).lockUsage(projectId, except),
      refuseUnknownProxy: (projectId, proxyId) => proxies.refuseUnknown(projectId, proxyId),
      log: logger,
    });
    undo(() => pools.close());
    anchor.on('corral_pools', (message) => pools.hear(message));
    anchor.onGap(
      () => void pools.catchUp().catch((error: Error) => logger.warn({ error: error.message }, 'pools.gap')),
    );
    settlers.push((nodeId, tx) => pools.nodeLost(nodeId, tx));
    occupancies.push((projectId) => pools.occupancy(projectId));
    probes.push(...sessionProbes(isolation, config.allowUnsandboxed));
    measureSessions(metrics, sessions);

    const where = whereabouts({ sessions, addresses, nodes });
    const http = await httpServer({
      gate,
      logger,
      elsewhere: {
        ready: nodes.ready,
        passengerOf: nodes.passengerOf,
        nodeFor: where.ofRequest,
        forward: nodes.forward,
      },
      trustProxy: config.trustProxy,
      audit: {
        record: (request, status, durationMs) =>
          audit
            .record({
              caller: request.caller!,
              projectId: request.project?.id ?? null,
              service: request.routeOptions.schema?.tags?.[0] ?? 'api',
              status,
              method: request.method,
              path: pathOf(request),
              route: request.routeOptions.url ?? '',
              domain: request.host,
              durationMs,
              clientIp: request.clientIp,
              userAgent: request.headers['user-agent'] ?? '',
            })
            .catch((error: Error) => logger.error({ requestId: request.id, error }, 'audit.not_recorded')),
      },
    });
    undo(() => http.close());
    measureRequests(http, metrics);
    await http.register(statusRoutes({ probes, metrics, version }));
    await http.register(orgRoutes({ projects, limits, keys, audit }));
    await http.register(sessionRoutes({ sessions, limit: rateLimit(config.rateLimit) }));
    await http.register(profileRoutes({ profiles }));
    await http.register(extensionRoutes({ extensions, load: sessions.loadExtensions }));
    await http.register(poolRoutes({ pools }));
    await http.register(proxyRoutes(proxies));
    await http.register(pooledSessionRoutes({ sessions: pooled, pools }));
    await http.register(browserRoutes({ sessions, addresses }));
    await http.register(processRoutes({ sessions }));
    await http.register(fsRoutes({ sessions }));
    await http.register(playwrightRoutes({ sessions }));
    await http.register(computerRoutes({ sessions }));
    await http.register(curlRoutes({ sessions, addresses }));
    await http.register(logRoutes({ sessions, recorder }));
    await http.register(replayRoutes({ replays, addresses }));
    const who = (request: IncomingMessage) => callerByKey(request, gate);
    const lapseOf = (minter: Minter) => gate.lapseOf(minter);
    const sockets = serveSessionSockets(http.server, { sessions, addresses, who, lapseOf, where, nodes, log: logger });
    undo(() => sockets.close());
    anchor.on('corral_org', sockets.recheck);
    anchor.onGap(sockets.recheck);
    http.addHook('onListen', async () => {
      for (const { address, port } of http.addresses() as AddressInfo[]) ourselves.add({ host: address, port });
      const publicUrl = config.publicUrl || origin(http);
      ourselves.add(serviceAddress(new URL(publicUrl)));
      await nodes.join({ internalUrl: config.internalUrl || internalOrigin(http), publicUrl });
      await pools.start();
    });
    await http.ready();
    proxies.start();

    const forgetting = setInterval(
      () => {
        void audit
          .removeOlderThan(config.auditDays)
          .catch((error: Error) => logger.warn({ error: error.message }, 'audit.not_pruned'));
        void replays.expire().catch((error: Error) => logger.warn({ error: error.message }, 'replays.not_pruned'));
      },
      60 * 60 * 1000,
    ).unref();

    return {
      http,
      sessions,
      pools,
      replays,
      nodes,
      store,
      secrets,
      firstKey,
      async close() {
        clearInterval(forgetting);
        await nodes.drain();
        await pools.close();
        await sessions.close();
        await replays.close(); // what was recorded of them is finished now
        await proxies.close();
        await toolbox.ready.catch(() => {}); // it may still be filled
        await nodes.leave(); // first: the server waits for websockets, and those that lead to other nodes end here
        await http.close();
        await store.close();
      },
    };
  });
}

/** Where clients on this machine reach us: a wildcard is an address to listen on, not to connect to. */
function origin(http: Pick<FastifyInstance, 'listeningOrigin'>): string {
  return http.listeningOrigin.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

/** Where the other nodes reach us: on a wildcard, at the first address of this machine that is not its own loopback. */
function internalOrigin(http: Pick<FastifyInstance, 'listeningOrigin'>): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const outward = all.find(({ family, internal }) => family === 'IPv4' && !internal);
  return outward ? http.listeningOrigin.replace(/\/\/(0\.0\.0\.0|\[::\]):/, `//${outward.address}:`) : origin(http);
}

function egressError(error: unknown): EgressError {
  if (error instanceof EgressError) return error;
  throw error;
}

const serviceAddress = ({ hostname, port, protocol }: URL): ServiceAddress => ({
  host: hostname,
  port: Number(port) || (protocol === 'https:' ? 443 : 80),
});

/**
 * The first key is the operator's (CORRAL_API_KEY) or made here and kept in a private file. Undefined when there is
 * nothing to show: it was shown before, or it is the operator's own.
 */
async function letFirstKeyIn(keys: ApiKeyService, { apiKey, dataDir }: Config): Promise<string | undefined> {
  if (apiKey) return void (await keys.adopt(apiKey, 'CORRAL_API_KEY'));
  const file = join(dataDir, 'api-key');
  const known = await keys.anyKey();
  // Another node's first key serves all nodes; this one needs none of its own.
  const key = await createOnce(file, () =>
    known ? 'none' : `sk_${pick('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789', 40)}`,
  );
  if (key === 'none') return undefined;
  return (await keys.adopt(key, 'first key')) === 'added' ? key : undefined;
}
