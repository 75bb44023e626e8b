import type { Proxy } from '../chromium/egress/proxy.ts';
import { newId } from '../lib/ids.ts';
import type { ProxyService } from '../proxies/service.ts';

/**
 * The proxy of a session's traffic; undefined for none. The label is new each time: a rotating proxy keeps its exit for as long as the
 * session keeps the proxy, and setting the same proxy again requests another exit.
 */
export async function wayOut(
  proxies: Pick<ProxyService, 'endpoint' | 'defaultEndpoint'>,
  projectId: string,
  { proxyId, stealth, defaultDisabled }: { proxyId: string | null; stealth: boolean; defaultDisabled: boolean },
): Promise<Proxy | undefined> {
  if (proxyId) return proxies.endpoint(projectId, proxyId, newId());
  return stealth && !defaultDisabled ? proxies.defaultEndpoint(newId()) : undefined;
}
