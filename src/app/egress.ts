import { destinations, parseAllowList, type ServiceAddress } from '../chromium/egress/destinations.ts';
import type { Cluster } from '../cluster/service.ts';
import { EgressError } from '../chromium/egress/refusals.ts';
import { reachThrough } from '../chromium/egress/proxy-check.ts';
import { proxyService } from '../proxies/service.ts';
import type { Ground } from './ground.ts';

export type Egress = ReturnType<typeof openEgress>;

/** Where sessions' traffic may go. Browsers may reach neither this service nor the other nodes. */
export function openEgress({ config, store, secrets, upstreams, occupancies, opened, log }: Ground, nodes: Cluster) {
  /** The addresses this service listens on; filled once it does. */
  const ourselves = new Set<ServiceAddress>();
  const service = {
    *[Symbol.iterator]() {
      yield* ourselves;
      for (const url of nodes.addresses()) yield serviceAddress(url);
    },
  };
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
    log,
  });
  opened(() => proxies.close());
  occupancies.push((projectId) => proxies.occupancy(projectId));
  return { ourselves, allow, refuseHost, proxies };
}

export const serviceAddress = ({ hostname, port, protocol }: URL): ServiceAddress => ({
  host: hostname,
  port: Number(port) || (protocol === 'https:' ? 443 : 80),
});

function egressError(error: unknown): EgressError {
  if (error instanceof EgressError) return error;
  throw error;
}
