import type { AddressInfo } from 'node:net';
import { measureRequests } from './api/metrics.ts';
import { internalOrigin, origin } from './api/origin.ts';
import { httpServer } from './api/server.ts';
import { cluster } from './cluster/service.ts';
import { tokens } from './lib/tokens.ts';
import { undoOnFailure } from './lib/undo.ts';
import { addresses as sessionAddresses } from './sessions/addresses.ts';
import { nodesWithSessions } from './sessions/reconcile.ts';
import { rateLimit } from './sessions/rate-limit.ts';
import { everyRoute } from './routes.ts';
import { whereabouts } from './sessions/whereabouts.ts';
import { version } from './version.ts';
import { type AppOptions, openGround } from './app/ground.ts';
import { listenToNodes } from './app/nodes.ts';
import { openOrganisation, recordRequest } from './app/organisation.ts';
import { openCredentials } from './app/credentials.ts';
import { openEgress, serviceAddress } from './app/egress.ts';
import { openSessions } from './app/sessions.ts';
import { serveSockets } from './app/sockets.ts';
import { openPools } from './app/pools.ts';
import { forgetHourly } from './app/forgetting.ts';
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
    const { credentials, providers, lookup } = openCredentials(ground, egress);
    const rooms = await openSessions(ground, { org, egress, addresses });
    const { sessions, replays, telemetry } = rooms;
    const { pools, pooled } = openPools(ground, { nodes, org, sessions, proxies });

    const where = whereabouts({ sessions, addresses, nodes });
    const { audit, firstKey } = org;
    const everything = {
      ...ground,
      ...org,
      ...rooms,
      version,
      proxies,
      credentials,
      providers,
      pools,
      pooled,
      addresses,
    };
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
    const forgetting = forgetHourly(config, { audit, replays, telemetry, db: store.db, log: logger });
    opened(() => clearInterval(forgetting));

    const { secrets } = ground;
    const opens = { http, sessions, pools, replays, telemetry, nodes, store, secrets, credentials: lookup, firstKey };
    return { ...opens, close: closeAll };
  });
}
