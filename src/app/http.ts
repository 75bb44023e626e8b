import type { AddressInfo } from 'node:net';
import { measureRequests } from '../api/metrics.ts';
import { httpServer } from '../api/server.ts';
import type { Cluster } from '../cluster/service.ts';
import type { Invitees } from '../logins/hosted/invitee.ts';
import type { PoolService } from '../pools/service.ts';
import type { Addresses } from '../sessions/addresses.ts';
import type { Whereabouts } from '../sessions/whereabouts.ts';
import type { Deployments } from './deployments.ts';
import { serviceAddress, type Egress } from './egress.ts';
import type { Ground } from './ground.ts';
import { recordRequest, type Organisation } from './organisation.ts';
import { reportCalls, type Reported } from './telemetry.ts';

type Server = Awaited<ReturnType<typeof openServer>>;

/** The HTTP server. It is made before the rooms that it asks about a request, so it gets each by a function. */
export async function openServer(
  { gate, config, metrics, opened, log }: Ground,
  rooms: {
    invitees: () => Invitees;
    nodes: () => Cluster;
    where: () => Whereabouts;
    org: () => Organisation;
    addresses: () => Addresses;
  } & Reported,
) {
  const http = await httpServer({
    gate,
    invitations: {
      isOne: (given) => rooms.invitees().isOne(given),
      admit: (token, params) => rooms.invitees().admit(token, params),
    },
    pathAt: (host, path) => rooms.addresses().pathAt(host, path),
    sessionTokens: { admit: (token, purpose) => rooms.addresses().admit(token, purpose) },
    logger: log,
    elsewhere: {
      ready: () => rooms.nodes().ready(),
      passengerOf: (request) => rooms.nodes().passengerOf(request),
      nodeFor: (asked) => rooms.where().ofRequest(asked),
      forward: (...request) => rooms.nodes().forward(...request),
    },
    trustProxy: config.trustProxy,
    bodySeconds: config.bodySeconds,
    audit: { record: (request, status, durationMs) => recordRequest(rooms.org().audit, request, status, durationMs) },
  });
  opened(() => http.close());
  measureRequests(http, metrics);
  reportCalls(http, rooms);
  return http;
}

/** Joins the cluster and starts what needs the service's address. Resolves when that is done. */
export function startOnListen(
  { loop }: Ground,
  http: Server,
  {
    egress,
    nodes,
    pools,
    work,
    publicUrl,
    internalUrl,
  }: {
    egress: Egress;
    nodes: Cluster;
    pools: PoolService;
    work: Deployments;
    publicUrl: () => string;
    internalUrl: () => string;
  },
): Promise<void> {
  return new Promise((resolve) => {
    http.addHook('onListen', async () => {
      loop.start();
      const listening = (http.addresses() as AddressInfo[]).map(({ address, port }) => ({ host: address, port }));
      egress.inside.url = new URL(publicUrl());
      for (const address of [...listening, serviceAddress(new URL(publicUrl()))]) egress.ourselves.add(address);
      await nodes.join({ internalUrl: internalUrl(), publicUrl: publicUrl() });
      await pools.start();
      work.start();
      resolve();
    });
  });
}
