import type { Cluster } from '../cluster/service.ts';
import { browserlessService } from '../doors/browserless/service.ts';
import { doorSockets } from '../doors/sockets.ts';
import type { AuditService } from '../org/audit.ts';
import type { PoolService } from '../pools/service.ts';
import { rateLimit } from '../sessions/rate-limit.ts';
import type { SessionService } from '../sessions/service.ts';
import type { Ground } from './ground.ts';

/** Websockets for clients that create no session first, and the APIs of other services. They share the limit of `POST /browsers`. */
export function openDoors(
  { config, store, gate, log }: Ground,
  deps: {
    sessions: SessionService;
    pools: PoolService;
    nodes: Pick<Cluster, 'placeElsewhere'>;
    audit: AuditService;
    publicUrl: () => string;
  },
) {
  const { sessions, pools, nodes, audit, publicUrl } = deps;
  const limit = rateLimit(config.rateLimit, store.db);
  const entrance = doorSockets({
    sessions,
    pools,
    gate,
    limit,
    placeElsewhere: () => nodes.placeElsewhere(),
    record: (entry) =>
      audit.record(entry).catch((error: Error) => log.error({ path: entry.path, error }, 'audit.not_recorded')),
    log,
  });
  return { limit, entrance, publicUrl, browserless: browserlessService({ sessions, limit }) };
}
