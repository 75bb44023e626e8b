import type { AddressInfo } from 'node:net';
import { measureRequests } from './api/metrics.ts';
import { internalOrigin, origin } from './api/origin.ts';
import { httpServer } from './api/server.ts';
import { cluster } from './cluster/service.ts';
import { tokens } from './lib/tokens.ts';
import { undoOnFailure } from './lib/undo.ts';
import { addresses as sessionAddresses } from './sessions/addresses.ts';
import { nodesWithSessions } from './sessions/reconcile.ts';
import { nodesWithRuns } from './deployments/reconcile.ts';
import { everyRoute } from './routes.ts';
import { whereabouts } from './sessions/whereabouts.ts';
import { version } from './version.ts';
import { type AppOptions, openGround } from './app/ground.ts';
import { listenToNodes } from './app/nodes.ts';
import { openAbout } from './app/about.ts';
import { openOrganisation, recordRequest } from './app/organisation.ts';
import { openConsole } from './app/console.ts';
import { openDoors } from './app/doors.ts';
import { openCredentials } from './app/credentials.ts';
import { openLogins } from './app/logins.ts';
import { openMcp } from './app/mcp.ts';
import { openEgress, serviceAddress } from './app/egress.ts';
import { openSessions } from './app/sessions.ts';
import { serveSockets } from './app/sockets.ts';
import { openPools } from './app/pools.ts';
import { openDeployments } from './app/deployments.ts';
import { forgetHourly } from './app/retention.ts';
import { reportCalls } from './app/telemetry.ts';

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
    const { store, events, gate, metrics, masterKeys } = ground;
    const http = await httpServer({
      gate,
      invitations: {
        isOne: (given) => invitees.isOne(given),
        admit: (token, params) => invitees.admit(token, params),
      },
      pathAt: (host, path) => addresses.pathAt(host, path),
      sessionTokens: { admit: (token, purpose) => addresses.admit(token, purpose) },
      logger,
      elsewhere: {
        ready: () => nodes.ready(),
        passengerOf: (request) => nodes.passengerOf(request),
        nodeFor: (asked) => where.ofRequest(asked),
        forward: (...request) => nodes.forward(...request),
      },
      trustProxy: config.trustProxy,
      bodySeconds: config.bodySeconds,
      audit: { record: (request, status, durationMs) => recordRequest(org.audit, request, status, durationMs) },
    });
    opened(() => http.close());
    measureRequests(http, metrics);
    reportCalls(http, { telemetry: () => telemetry, sessions: () => sessions, addresses: () => addresses });

    const nodes = cluster({
      db: store.db,
      quick: store.quick,
      id: store.nodeId,
      version,
      keys: () => masterKeys.ring(),
      load: () => ({ capacity: config.capacity, running: sessions.counts().taken }),
      shared: config.databaseUrl !== '',
      settlers: ground.settlers,
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

    const org = await openOrganisation(ground, nodes);
    const addresses = sessionAddresses({
      tokens: tokens(() => masterKeys.ring()),
      publicUrl: (nodeId) => (nodeId && nodes.publicUrlOf(nodeId)) || config.publicUrl || origin(http),
      sessionHosts: config.sessionHosts,
      projectOf: (id) => sessions.projectOf(id),
      leaseOf: (id) => sessions.leaseOf(id),
      lapseOf: (minter) => gate.lapseOf(minter),
    });
    const egress = openEgress(ground, nodes);
    const { proxies } = egress;
    const { credentials, providers, lookup } = openCredentials(ground, egress);
    const rooms = await openSessions(ground, {
      org,
      egress,
      addresses,
      refuseInvocation: (projectId, id) => work.invocations.refuseUnlessActive(projectId, id),
    });
    const { sessions, replays, telemetry } = rooms;
    const { pools, pooled, anywhere } = openPools(ground, { nodes, org, sessions, proxies });
    const publicUrl = () => config.publicUrl || origin(http);
    const { logins, schedule, invitees } = await openLogins(ground, { egress, lookup, rooms, publicUrl });
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
      proxies,
      credentials,
      providers,
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
    let begun = () => {};
    const started = new Promise<void>((resolve) => (begun = resolve));
    http.addHook('onListen', async () => {
      ground.loop.start();
      const listening = (http.addresses() as AddressInfo[]).map(({ address, port }) => ({ host: address, port }));
      egress.inside.url = new URL(publicUrl());
      for (const address of [...listening, serviceAddress(new URL(publicUrl()))]) egress.ourselves.add(address);
      await nodes.join({ internalUrl: internalUrl(), publicUrl: publicUrl() });
      await pools.start();
      work.start();
      begun();
    });
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
