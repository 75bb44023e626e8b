import type { Cluster } from '../cluster/service.ts';
import { newId } from '../lib/ids.ts';
import type { SessionService } from '../sessions/service.ts';
import { sessionStore } from '../sessions/store.ts';
import { poolMetrics } from '../pools/metrics.ts';
import { sessionsAnywhere } from '../pools/nodes/anywhere.ts';
import { sessionsHere } from '../pools/nodes/here.ts';
import { poolService } from '../pools/service.ts';
import { poolStore } from '../pools/store.ts';
import type { ProxyService } from '../proxies/service.ts';
import type { Ground } from './ground.ts';
import type { Organisation } from './organisation.ts';

export function openPools(
  { store, events, metrics, opened, log }: Ground,
  deps: { nodes: Cluster; org: Organisation; sessions: SessionService; proxies: ProxyService },
) {
  const { nodes, org, sessions, proxies } = deps;
  const { db, anchor, nodeId } = store;
  const noCaller = () => ({ requestId: newId('req_'), clientIp: '', caller: null, project: null });
  const pooled = sessionsHere({ db, sessions });
  const anywhere = sessionsAnywhere({
    here: pooled,
    store: poolStore(db),
    nodeId,
    ask: (node, request, signal) => nodes.ask(node, request, noCaller(), signal),
    log,
  });
  const pools = poolService({
    db,
    sessions: anywhere,
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
  return { pools, pooled, anywhere };
}
