import { internalOrigin, origin } from './api/origin.ts';
import { nodesProbe } from './cluster/probe.ts';
import { cluster } from './cluster/service.ts';
import { tokens } from './lib/tokens.ts';
import { undoOnFailure } from './lib/undo.ts';
import { addresses as sessionAddresses } from './sessions/addresses.ts';
import { nodesWithSessions, settleLostNode } from './sessions/reconcile.ts';
import { nodesWithRuns } from './deployments/reconcile.ts';
import { everyRoute } from './routes.ts';
import { whereabouts } from './sessions/whereabouts.ts';
import { version } from './version.ts';
import { type AppOptions, openGround } from './app/ground.ts';
import { listenToNodes } from './app/nodes.ts';
import { openAbout } from './app/about.ts';
import { openOrganisation } from './app/organisation.ts';
import { openServer, startOnListen } from './app/http.ts';
import { openConsole } from './app/console.ts';
import { openDoors } from './app/doors.ts';
import { openCredentials } from './app/credentials.ts';
import { openLogins } from './app/logins.ts';
import { openMcp } from './app/mcp.ts';
import { openEgress } from './app/egress.ts';
import { openSessions, type OnDisk } from './app/sessions.ts';
import { serveSockets } from './app/sockets.ts';
import { openPools } from './app/pools.ts';
import { openDeployments } from './app/deployments.ts';
import { forgetHourly } from './app/retention.ts';

export type App = Awaited<ReturnType<typeof buildApp>>;

/**
 * The composition root: rooms are opened top to bottom, and closed bottom to top by the steps that `opened` collects.
 * Everything that runs is started here. The HTTP server is made early and listens last: while sessions end, clients still
 * get answers.
 */
export async function buildApp(options: AppOptions) {
  const { config, logger, onFatal } = options;
  return undoOnFailure(async (opened, closeAll) => {
    const ground = await openGround(options, opened);
    const { store, events, gate, masterKeys } = ground;
    const http = await openServer(ground, {
      invitees: () => invitees,
      addresses: () => addresses,
      nodes: () => nodes,
      where: () => where,
      org: () => org,
      telemetry: () => telemetry,
      sessions: () => sessions,
    });

    const nodes = cluster({
      db: store.db,
      quick: store.quick,
      id: store.nodeId,
      version,
      keys: () => masterKeys.ring(),
      load: () => ({ capacity: config.capacity, running: sessions.counts().taken }),
      shared: config.databaseUrl !== '',
      settlers: () => [
        settleLostNode({ events, log: logger }),
        org.storage.nodeLost,
        rooms.profiles.nodeLost,
        pools.nodeLost,
        nodeLostInLogins,
        work.nodeLost,
      ],
      nodesInUse: async (within) => [...(await nodesWithSessions(within)), ...(await nodesWithRuns(within))],
      async givenUp() {
        await sessions.endSettled();
        await work.endSettled();
        await pools.catchUp();
      },
      events,
      onFatal,
      log: logger,
    });
    opened(() => nodes.leave()); // closed before the server, which waits for websockets: this ends those to other nodes
    listenToNodes(ground, nodes);

    const org = await openOrganisation(ground, nodes, () => [
      proxies,
      credentials,
      rooms.profiles,
      rooms.extensions,
      sessions,
      pools,
      logins,
      work.deployments,
    ]);
    const addresses = sessionAddresses({
      tokens: tokens(() => masterKeys.ring()),
      publicUrl: (nodeId) => (nodeId && nodes.publicUrlOf(nodeId)) || config.publicUrl || origin(http),
      sessionHosts: config.sessionHosts,
      projectOf: (id) => sessions.projectOf(id),
      leaseOf: (id) => sessions.leaseOf(id),
      lapseOf: (minter) => gate.lapseOf(minter),
    });
    const egress = openEgress(ground, { nodes, userOf: (proxyId) => logins.usesProxy(proxyId) });
    const { proxies } = egress;
    const publicUrl = () => config.publicUrl || origin(http);
    const typed = openCredentials(ground, egress, publicUrl);
    const { credentials, lookup } = typed;
    /** Empty until deployments are open: sessions start before them. */
    let appsOnDisk: OnDisk = { takers: [], makers: [] };
    const rooms = await openSessions(ground, {
      org,
      egress,
      addresses,
      refuseInvocation: (projectId, id) => work.invocations.refuseUnlessActive(projectId, id),
      apps: () => appsOnDisk,
    });
    const { sessions, replays, telemetry } = rooms;
    const { pools, pooled, anywhere } = openPools(ground, { nodes, org, sessions, proxies });
    const {
      logins,
      schedule,
      invitees,
      nodeLost: nodeLostInLogins,
    } = await openLogins(ground, { egress, ...typed, rooms, publicUrl, waitSeconds: config.loginWaitSeconds });
    const work = await openDeployments(ground, {
      nodes,
      org,
      egress,
      sessions,
      isolation: rooms.isolation,
      endSession: anywhere.stop,
      publicUrl,
      listensAt: () => origin(http),
    });
    appsOnDisk = work.onDisk;
    const console = openConsole(ground, { org, nodes, publicUrl });
    const doors = openDoors(ground, { ...rooms, pools, anywhere, proxies, nodes, audit: org.audit, publicUrl });
    const internalUrl = () => config.internalUrl || internalOrigin(http);
    const about = openAbout(ground, { isolation: rooms.isolation, nodes, publicUrl, internalUrl });
    const where = whereabouts({ sessions, addresses, nodes });
    const everything = {
      ...ground,
      ...org,
      ...rooms,
      version,
      probes: [ground.probe, nodesProbe(nodes), ...rooms.probes],
      proxies,
      ...typed,
      logins,
      pools,
      pooled,
      addresses,
      work,
      console,
      doors,
      about,
      rateLimit: doors.limit,
      mcp: openMcp(ground, () => origin(http)),
    };
    for (const routes of everyRoute(everything)) await http.register(routes);
    serveSockets(ground, http, { egress, sessions, addresses, where, nodes, entrance: doors.entrance });
    const started = startOnListen(ground, http, { egress, nodes, pools, work, publicUrl, internalUrl });
    await http.ready();
    proxies.start();
    schedule.start();
    opened(() => nodes.drain());
    const forgetting = forgetHourly(config, {
      audit: org.audit,
      replays,
      telemetry,
      sessionLogs: rooms.sessionLogs.kept,
      deployments: work,
      db: store.db,
      log: logger,
    });
    opened(() => clearInterval(forgetting));

    const opens = { http, sessions, pools, replays, telemetry, nodes, store, schedule };
    return {
      ...opens,
      secrets: ground.secrets,
      credentials: lookup,
      firstKey: org.firstKey,
      links: console.links,
      /** It listens, is a member of the cluster, and its rooms run. */
      started,
      close: closeAll,
    };
  });
}
