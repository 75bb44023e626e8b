import type { Proxy } from '../chromium/egress/proxy.ts';
import { newId } from '../lib/ids.ts';
import type { ProxyService } from '../proxies/service.ts';

/**
 * What a session's traffic leaves by; undefined for no proxy. The label is new each time: a rotating proxy keeps its exit for as long as
 * the session keeps the proxy, and giving the session the same proxy again is asking for another exit.
 */
export async function wayOut(
  proxies: Pick<ProxyService, 'endpoint' | 'defaultEndpoint'>,
  projectId: string,
  { proxyId, stealth, defaultDisabled }: { proxyId: string | null; stealth: boolean; defaultDisabled: boolean },
): Promise<Proxy | undefined> {
  if (proxyId) return proxies.endpoint(projectId, proxyId, newId());
  return stealth && !defaultDisabled ? proxies.defaultEndpoint(newId()) : undefined;
}
