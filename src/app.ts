import { chmod, mkdir, stat } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { FastifyBaseLogger, FastifyRequest } from 'fastify';
import { callerByKey } from './api/caller.ts';
import { measureRequests, metricsRegistry } from './api/metrics.ts';
import { internalOrigin, origin } from './api/origin.ts';
import { httpServer, pathOf, type Server } from './api/server.ts';
import type { Probe } from './api/status.ts';
import { destinations, parseAllowList, type ServiceAddress } from './chromium/egress/destinations.ts';
import { openToolbox } from './chromium/guest/toolbox.ts';
import { detectIsolation } from './chromium/browser/launch.ts';
import { decompress } from './chromium/browser/profile-archive.ts';
import { refuseStrangers } from './cluster/agreement.ts';
import type { Settler } from './cluster/settlement.ts';
import { measureNodes } from './cluster/metrics.ts';
import { nodesProbe } from './cluster/probe.ts';
import { relay, relayChannel } from './cluster/relay.ts';
import { cluster, type Cluster } from './cluster/service.ts';
import { nodeStore } from './cluster/store.ts';
import { ConfigError, type Config } from './config.ts';
import { eventBus } from './events.ts';
import { extensionService } from './extensions/service.ts';
import { uploads } from './extensions/uploads.ts';
import { EgressError } from './chromium/egress/refusals.ts';
import { reachThrough } from './chromium/egress/proxy-check.ts';
import { diskSpace, type Space } from './lib/disk-space.ts';
import { newId } from './lib/ids.ts';
import { tokens } from './lib/tokens.ts';
import { undoOnFailure } from './lib/undo.ts';
import { apiKeyService } from './org/api-keys.ts';
import { auditService, type AuditService } from './org/audit.ts';
import { letFirstKeyIn } from './org/first-key.ts';
import { gatekeeper } from './org/gatekeeper.ts';
import { limitService } from './org/limits.ts';
import { projectService, type Occupancy } from './org/projects.ts';
import { storageService } from './org/storage.ts';
import { addresses as sessionAddresses, type Addresses, type Minter } from './sessions/addresses.ts';
import { browsers } from './sessions/browsers.ts';
import { recorderLog } from './sessions/logs/recorder-log.ts';
import { measureSessions } from './sessions/metrics.ts';
import { launchTrial } from './sessions/launch-trial.ts';
import { sessionProbes } from './sessions/probes.ts';
import { nodesWithSessions, settleLostNode } from './sessions/reconcile.ts';
import { replayService, type ReplayService } from './sessions/replays/service.ts';
import { replayStore } from './sessions/replays/store.ts';
import { rateLimit } from './sessions/rate-limit.ts';
import { sessionService, type SessionService } from './sessions/service.ts';
import { serveSessionSockets } from './sessions/sockets.ts';
import { sessionStore } from './sessions/store.ts';
import { profileMetrics } from './profiles/metrics.ts';
import { profileService } from './profiles/service.ts';
import { poolMetrics } from './pools/metrics.ts';
import { sessionsAnywhere } from './pools/nodes/anywhere.ts';
import { sessionsHere } from './pools/nodes/here.ts';
import { poolService } from './pools/service.ts';
import { poolStore } from './pools/store.ts';
import { proxyService, type ProxyService } from './proxies/service.ts';
import { everyRoute } from './routes.ts';
import { readUpstreams } from './proxies/upstreams.ts';
import { whereabouts, type Whereabouts } from './sessions/whereabouts.ts';
import type { Db } from './store/db.ts';
import { forgetHistory } from './store/history.ts';
import { openStore } from './store/open.ts';
import { openKeys, secretStore } from './store/secrets.ts';
import { version } from './version.ts';

/** File systems have about one inode per 16 KiB; sessions may use half of theirs. */
const filesPerMegabyte = 32;
/** Share of a session's bound that one file may take: a file that is too large is refused, and the session continues. */
const mostOfOneFile = 0.75;

export type App = Awaited<ReturnType<typeof buildApp>>;

export interface AppOptions {
  config: Config;
  logger: FastifyBaseLogger;
  onFatal: (error: Error) => void;
  /** Replaces the real measurement of the data directory's disk, for tests. */
  space?: () => Space;
}

/**
 * The composition root: rooms are opened top to bottom, and closed bottom to top by the steps that `opened` collects.
 * Everything that runs is started here. The HTTP server is made early and listens last: while sessions end, clients still
 * get answers.
 */
export async function buildApp(options: AppOptions) {
  const { config, logger, onFatal } = options;
  return undoOnFailure(async (opened, closeAll) => {
    const ground = await openGround(options, opened);
    const { store, events, gate, metrics, masterKeys } = ground;
    const http = await httpServer({
      gate,
      logger,
      elsewhere: {
        ready: () => nodes.ready(),
        passengerOf: (request) => nodes.passengerOf(request),
        nodeFor: (asked) => where.ofRequest(asked),
        forward: (...request) => nodes.forward(...request),
      },
      trustProxy: config.trustProxy,
      audit: { record: (request, status, durationMs) => recordRequest(org.audit, request, status, durationMs) },
    });
    opened(() => http.close());
    measureRequests(http, metrics);

    const nodes = cluster({
      db: store.db,
      quick: store.quick,
      id: store.nodeId,
      version,
      keys: () => masterKeys.ring(),
      load: () => ({ capacity: config.capacity, running: sessions.counts().taken }),
      shared: config.databaseUrl !== '',
      settlers: ground.settlers,
      nodesInUse: nodesWithSessions,
      async givenUp() {
        await sessions.endSettled();
        await pools.catchUp();
      },
      events,
      onFatal,
      log: logger,
    });
    opened(() => nodes.leave()); // closed before the server, which waits for websockets: this ends those to other nodes
    listenToNodes(ground, nodes);

    const org = await openOrganisation(ground, nodes);
    const addresses = sessionAddresses({
      tokens: tokens(() => masterKeys.ring()),
      publicUrl: (nodeId) => (nodeId && nodes.publicUrlOf(nodeId)) || config.publicUrl || origin(http),
      leaseOf: (id) => sessions.leaseOf(id),
      lapseOf: (minter) => gate.lapseOf(minter),
    });
    const egress = openEgress(ground, nodes);
    const { proxies } = egress;
    const rooms = await openSessions(ground, { org, egress, addresses });
    const { sessions, replays } = rooms;
    const { pools, pooled } = openPools(ground, { nodes, org, sessions, proxies });

    const where = whereabouts({ sessions, addresses, nodes });
    const { audit, firstKey } = org;
    const everything = { ...ground, ...org, ...rooms, version, proxies, pools, pooled, addresses };
    for (const routes of everyRoute({ ...everything, rateLimit: rateLimit(config.rateLimit, store.db) }))
      await http.register(routes);
    serveSockets(ground, http, { sessions, addresses, where, nodes });
    http.addHook('onListen', async () => {
      const publicUrl = config.publicUrl || origin(http);
      const listening = (http.addresses() as AddressInfo[]).map(({ address, port }) => ({ host: address, port }));
      for (const address of [...listening, serviceAddress(new URL(publicUrl))]) egress.ourselves.add(address);
      await nodes.join({ internalUrl: config.internalUrl || internalOrigin(http), publicUrl });
      await pools.start();
    });
    await http.ready();
    proxies.start();
    opened(() => nodes.drain());
    const forgetting = forgetHourly(config, { audit, replays, db: store.db, log: logger });
    opened(() => clearInterval(forgetting));

    return { http, sessions, pools, replays, nodes, store, secrets: ground.secrets, firstKey, close: closeAll };
  });
}

type Ground = Awaited<ReturnType<typeof openGround>>;
type Organisation = Awaited<ReturnType<typeof openOrganisation>>;
type Egress = ReturnType<typeof openEgress>;

/** What every room depends on: the store, its keys, events, metrics; and the lists that rooms add to. */
async function openGround({ config, logger, onFatal, space }: AppOptions, opened: (close: () => unknown) => void) {
  const { dataDir, databaseUrl, diskReserve } = config;
  const upstreams = await readUpstreams(config.proxyUpstreams).catch(asConfigError);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  // Without a sandbox, the user of a session reaches its directory by the path. It may pass through this one, and list and read nothing.
  if (config.allowUnsandboxed && process.getuid?.() === 0) await chmod(dataDir, 0o711);
  const disk = diskSpace(dataDir, diskReserve === undefined ? undefined : diskReserve * 2 ** 20, space);
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
  opened(() => store.close());
  const { db, anchor } = store;
  const events = eventBus();
  const gate = gatekeeper({ db, trusted: () => anchor.listening });
  anchor.on('corral_org', () => gate.forget());
  anchor.onGap(() => gate.forget());
  const probes: Probe[] = [{ name: 'store', required: true, check: () => store.ping().then(() => undefined) }];
  return {
    config,
    log: logger,
    opened,
    upstreams,
    disk,
    masterKeys,
    store,
    secrets: secretStore(db, masterKeys),
    events,
    metrics: metricsRegistry(),
    gate,
    probes,
    /** Run for a lost node, by the node that gives it up. */
    settlers: [settleLostNode({ events, log: logger })] as Settler[],
    /** Reasons why a project cannot be deleted. */
    occupancies: [] as Occupancy[],
  };
}

/** Nodes that join and leave, and the events of other nodes. */
function listenToNodes({ store, events, probes, metrics, log }: Ground, nodes: Cluster) {
  const { anchor, db } = store;
  anchor.on('corral_nodes', () => void nodes.refresh());
  anchor.onGap(() => void nodes.refresh());
  const relayed = relay({ db, id: nodes.id, events, which: ['project.closed'], log });
  anchor.on(relayChannel, (payload) => relayed.hear(payload));
  probes.push(nodesProbe(nodes));
  measureNodes(metrics, nodes);
}

async function openOrganisation({ config, store, events, gate, occupancies, settlers }: Ground, nodes: Cluster) {
  const { db, quick, nodeId } = store;
  const changed = () => gate.forget();
  const projects = projectService({ db, events, changed, occupancies });
  const keys = apiKeyService({ db, changed });
  const limits = limitService({ db, projects, capacity: async () => nodes.capacity() });
  const audit = auditService({ db, quick });
  await projects.ensureDefault();
  const firstKey = await letFirstKeyIn(keys, config);
  const storage = storageService({ db, nodeId, mostBytes: config.projectStorage * 2 ** 20 });
  await storage.nodeLost(nodeId);
  settlers.push((lost, tx) => storage.nodeLost(lost, tx));
  return { projects, keys, limits, audit, storage, firstKey };
}

/** Where sessions' traffic may go. Browsers may reach neither this service nor the other nodes. */
function openEgress({ config, store, secrets, upstreams, occupancies, opened, log }: Ground, nodes: Cluster) {
  /** The addresses this service listens on; filled once it does. */
  const ourselves = new Set<ServiceAddress>();
  const service = {
    *[Symbol.iterator]() {
      yield* ourselves;
      for (const url of nodes.addresses()) yield serviceAddress(url);
    },
  };
  const allow = destinations({ allow: config.allowPrivateHosts.flatMap(parseAllowList), service });
  const proxies = proxyService({
    db: store.db,
    secrets,
    upstreams,
    refuseHost: (host, port) => allow.check(host, port).then(() => undefined, egressError),
    reach: (proxy, url) => reachThrough(proxy, url, { allow }),
    checkUrl: config.proxyCheckUrl,
    checkMinutes: config.proxyCheckMinutes,
    log,
  });
  opened(() => proxies.close());
  occupancies.push((projectId) => proxies.occupancy(projectId));
  return { ourselves, allow, proxies };
}

async function openIsolation({ config, log }: Ground) {
  const { dataDir, databaseUrl } = config;
  const isolation = await detectIsolation({
    full: config.chromium,
    headlessShell: config.headlessShell,
    uids: config.sessionUids,
    reservedUids: databaseUrl === '' ? [(await stat(join(dataDir, 'postgres'))).uid] : [],
  }).catch(asConfigError);
  for (const reason of isolation.reasons) log.warn({ reason }, 'degraded');
  if (!isolation.sandboxed) void isolation.whenSandboxed.then(() => log.info({}, 'sandbox.granted'));
  return isolation;
}

/** Profiles and extensions, which sessions are made with. */
async function openBelongings({ config, store, secrets, events, metrics, disk, ...ground }: Ground, org: Organisation) {
  const { db, quick, nodeId } = store;
  const { storage } = org;
  const profiles = profileService({
    db,
    quick,
    secrets,
    events,
    metrics: profileMetrics(metrics),
    nodeId,
    disk: config.databaseUrl === '' ? disk : undefined,
    storage,
    decompress,
    log: ground.log,
  });
  await profiles.start();
  ground.settlers.push((lost, tx) => profiles.nodeLost(lost, tx));
  ground.occupancies.push((projectId) => profiles.occupancy(projectId));
  const incoming = uploads(join(config.dataDir, 'uploads'), disk);
  await incoming.sweep();
  const extensions = extensionService({ db, uploads: incoming, storage, storeUrl: config.chromeStoreUrl });
  ground.occupancies.push((projectId) => extensions.occupancy(projectId));
  return { profiles, extensions };
}

async function openSessions(
  ground: Ground,
  { org, egress, addresses }: { org: Organisation; egress: Egress; addresses: Addresses },
) {
  const { config, store, events, disk, opened, settlers, occupancies, log } = ground;
  const { dataDir } = config;
  const isolation = await openIsolation(ground);
  const { profiles, extensions } = await openBelongings(ground, org);
  const toolbox = openToolbox(join(dataDir, 'tools'));
  opened(() => toolbox.ready.catch(() => {})); // it may still be being filled
  const launcher = browsers({
    dir: join(dataDir, 'sessions'),
    isolation,
    toolbox,
    allowUnsandboxed: config.allowUnsandboxed,
    allow: egress.allow,
    launchSeconds: config.launchSeconds,
    limits: {
      memoryBytes: config.sessionMemory * 2 ** 20,
      pids: config.sessionPids,
      cpus: config.sessionCpus,
      fileBytes: config.sessionDisk * 2 ** 20 * mostOfOneFile,
    },
    log,
  });
  const trial = launchTrial(launcher);
  opened(() => trial.close());
  const sessions = sessionService({
    store: sessionStore(store.db),
    browsers: launcher,
    profiles,
    extensions,
    addresses,
    sessionCap: (projectId) => org.limits.sessionCap(projectId),
    proxies: egress.proxies,
    nodeId: store.nodeId,
    capacity: config.capacity,
    spares: config.spares,
    disk,
    mostOnDisk: { bytes: config.sessionDisk * 2 ** 20, inodes: config.sessionDisk * filesPerMegabyte },
    events,
    log,
  });
  const recorder = recorderLog();
  const replays = replayService({
    store: replayStore(store.db),
    sessions,
    addresses,
    dir: join(dataDir, 'replays'),
    confinement: isolation,
    nodeId: store.nodeId,
    days: config.replayDays,
    mostBytes: config.replayMegabytes * 2 ** 20,
    disk,
    storage: org.storage,
    say: (sessionId, line) => recorder.say(sessionId, line),
    log,
  });
  opened(() => replays.close()); // after the sessions: their recordings are finished then
  opened(() => sessions.close());
  events.on('session.started', (facts) => replays.sessionStarted(facts));
  events.on('session.returned', ({ sessionId }) => replays.sessionReturned(sessionId));
  events.on('session.ended', ({ sessionId }) => {
    replays.sessionEnded(sessionId);
    recorder.forget(sessionId);
  });
  events.on('project.closed', () => sessions.endClosedProjects());
  store.anchor.onGap(() => sessions.endClosedProjects());
  settlers.push(async (lost, tx) => {
    await replayStore(tx).loseAll(lost);
    return () => {};
  });
  occupancies.push((projectId) => sessions.occupancy(projectId));
  ground.probes.push(...sessionProbes(isolation, config.allowUnsandboxed, trial.check));
  measureSessions(ground.metrics, sessions);
  await sessions.start();
  await replays.open();
  return { profiles, extensions, sessions, replays, recorder };
}

function openPools(
  { store, events, metrics, opened, settlers, occupancies, log }: Ground,
  deps: { nodes: Cluster; org: Organisation; sessions: SessionService; proxies: ProxyService },
) {
  const { nodes, org, sessions, proxies } = deps;
  const { db, anchor, nodeId } = store;
  const nobody = () => ({ requestId: newId('req_'), clientIp: '', caller: null, project: null });
  const pooled = sessionsHere({ db, sessions });
  const pools = poolService({
    db,
    sessions: sessionsAnywhere({
      here: pooled,
      store: poolStore(db),
      nodeId,
      ask: (node, request, signal) => nodes.ask(node, request, nobody(), signal),
      log,
    }),
    make: sessions.makePooled,
    resolve: sessions.resolve,
    place: nodes.place,
    events,
    metrics: poolMetrics(metrics),
    nodeId,
    allowance: {
      capacity: async () => nodes.capacity(),
      sessionCap: (projectId) => org.limits.sessionCap(projectId),
      usage: (within, projectId, except) => sessionStore(within).lockUsage(projectId, except),
    },
    refuseUnknownProxy: (projectId, proxyId) => proxies.refuseUnknown(projectId, proxyId),
    log,
  });
  opened(() => pools.close());
  anchor.on('corral_pools', (message) => pools.hear(message));
  anchor.onGap(() => void pools.catchUp().catch((error: Error) => log.warn({ error: error.message }, 'pools.gap')));
  settlers.push((lost, tx) => pools.nodeLost(lost, tx));
  occupancies.push((projectId) => pools.occupancy(projectId));
  return { pools, pooled };
}

function serveSockets(
  { gate, store, opened, log }: Ground,
  http: Server,
  deps: { sessions: SessionService; addresses: Addresses; where: Whereabouts; nodes: Cluster },
) {
  const who = (request: IncomingMessage) => callerByKey(request, gate);
  const lapseOf = (minter: Minter) => gate.lapseOf(minter);
  const sockets = serveSessionSockets(http.server, { ...deps, who, lapseOf, log });
  opened(() => sockets.close());
  store.anchor.on('corral_org', sockets.recheck);
  store.anchor.onGap(sockets.recheck);
}

function recordRequest(audit: AuditService, request: FastifyRequest, status: number, durationMs: number) {
  return audit
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
    .catch((error: Error) => request.log.error({ requestId: request.id, error }, 'audit.not_recorded'));
}

/** Removes what is older than the operator wants to keep. */
function forgetHourly(
  config: Config,
  deps: { audit: AuditService; replays: ReplayService; db: Db; log: FastifyBaseLogger },
) {
  const { audit, replays, db, log } = deps;
  const notPruned = (what: string) => (error: Error) => log.warn({ error: error.message }, `${what}.not_pruned`);
  const forget = () => {
    void audit.removeOlderThan(config.auditDays).catch(notPruned('audit'));
    void replays.expire().catch(notPruned('replays'));
    void forgetHistory(db, config.historyDays).catch(notPruned('history'));
  };
  return setInterval(forget, 60 * 60 * 1000).unref();
}

function asConfigError(error: Error): never {
  throw new ConfigError([error.message]);
}

function egressError(error: unknown): EgressError {
  if (error instanceof EgressError) return error;
  throw error;
}

const serviceAddress = ({ hostname, port, protocol }: URL): ServiceAddress => ({
  host: hostname,
  port: Number(port) || (protocol === 'https:' ? 443 : 80),
});
