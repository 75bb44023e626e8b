import type { Socket } from 'node:net';
import { destinations, parseAllowList, type ServiceAddress } from '../chromium/egress/destinations.ts';
import type { OwnEndpoint } from '../chromium/egress/gateway.ts';
import type { Cluster } from '../cluster/service.ts';
import { EgressError } from '../chromium/egress/refusals.ts';
import { reachThrough } from '../chromium/egress/proxy-check.ts';
import { proxyService } from '../proxies/service.ts';
import type { Ground } from './ground.ts';

export type Egress = ReturnType<typeof openEgress>;

/** Where sessions' traffic may go. Browsers may reach neither the other nodes nor this service, except their own CDP address. */
export function openEgress(
  { config, store, secrets, upstreams, opened, log }: Ground,
  deps: { nodes: Cluster; userOf: (proxyId: string) => Promise<string | undefined> },
) {
  /** The addresses this service listens on; filled once it does. */
  const ourselves = new Set<ServiceAddress>();
  const service = {
    *[Symbol.iterator]() {
      yield* ourselves;
      for (const url of deps.nodes.addresses()) yield serviceAddress(url);
    },
  };
  /** The public URL, once there is one, and what takes the connections of sessions to it; set by the rooms above. */
  const inside = {
    url: undefined as URL | undefined,
    enter: (_sessionId: string, socket: Socket, _head: Buffer): void => void socket.destroy(),
  };
  const ownEndpointOf = (sessionId: string): OwnEndpoint => ({
    isAt(host, port) {
      if (inside.url?.protocol !== 'http:') return false;
      const own = serviceAddress(inside.url);
      return own.host === host.toLowerCase() && own.port === port;
    },
    enter: (socket, head) => inside.enter(sessionId, socket, head),
  });
  const allow = destinations({ allow: config.allowPrivateHosts.flatMap(parseAllowList), service });
  const refuseHost = (host: string, port: number) => allow.check(host, port).then(() => undefined, egressError);
  const proxies = proxyService({
    db: store.db,
    secrets,
    upstreams,
    refuseHost,
    reach: (proxy, url) => reachThrough(proxy, url, { allow }),
    checkUrl: config.proxyCheckUrl,
    checkMinutes: config.proxyCheckMinutes,
    userOf: deps.userOf,
    log,
  });
  opened(() => proxies.close());
  return { ourselves, inside, ownEndpointOf, allow, refuseHost, proxies };
}

export const serviceAddress = ({ hostname, port, protocol }: URL): ServiceAddress => ({
  host: hostname,
  port: Number(port) || (protocol === 'https:' ? 443 : 80),
});

function egressError(error: unknown): EgressError {
  if (error instanceof EgressError) return error;
  throw error;
}
