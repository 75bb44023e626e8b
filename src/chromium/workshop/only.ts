import type { Destinations } from '../egress/destinations.ts';
import { EgressError } from '../egress/refusals.ts';

/** A server that may be reached, and the rules that its address has to satisfy. */
interface Allowed {
  readonly url: string;
  readonly by: Destinations;
}

/** Allows these servers and no other: a build reaches its registry and its repository. */
export function only(allowed: readonly Allowed[]): Destinations {
  const servers = allowed.map(({ url, by }) => {
    const { hostname, port, protocol } = new URL(url);
    return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) || (protocol === 'https:' ? 443 : 80), by };
  });
  function rulesFor(host: string, port: number): Destinations {
    const asked = host
      .replace(/^\[(.*)\]$/, '$1')
      .replace(/\.$/, '')
      .toLowerCase();
    const found = servers.find((server) => server.host === asked && server.port === port);
    if (found) return found.by;
    const known = servers.map((server) => `${server.host}:${server.port}`).join(' and ');
    throw new EgressError('destination_refused', `A build may reach ${known}, and not ${asked}:${port}.`, {
      remedy: 'Packages come from the registry in CORRAL_NPM_REGISTRY.',
    });
  }
  return {
    check: async (host, port) => rulesFor(host, port).check(host, port),
    checkUnresolved: (host, port) => rulesFor(host, port).checkUnresolved(host, port),
  };
}
