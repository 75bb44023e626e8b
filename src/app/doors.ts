import type { Cluster } from '../cluster/service.ts';
import { browserlessService } from '../doors/browserless/service.ts';
import { doorSockets } from '../doors/sockets.ts';
import { steelService } from '../doors/steel/service.ts';
import type { ExtensionService } from '../extensions/service.ts';
import type { AuditService } from '../org/audit.ts';
import type { SessionsAnywhere } from '../pools/nodes/anywhere.ts';
import type { PoolService } from '../pools/service.ts';
import type { ProfileService } from '../profiles/service.ts';
import type { ProxyService } from '../proxies/service.ts';
import { rateLimit } from '../sessions/rate-limit.ts';
import type { SessionService } from '../sessions/service.ts';
import type { Ground } from './ground.ts';

/** Websockets for clients that create no session first, and the APIs of other services. They share the limit of `POST /browsers`. */
export function openDoors(
  { config, store, gate, events, log }: Ground,
  deps: {
    sessions: SessionService;
    pools: PoolService;
    /** Sessions of all nodes. */
    anywhere: Pick<SessionsAnywhere, 'stop'>;
    profiles: ProfileService;
    extensions: ExtensionService;
    proxies: ProxyService;
    nodes: Pick<Cluster, 'placeElsewhere'>;
    audit: AuditService;
    publicUrl: () => string;
  },
) {
  const { sessions, pools, nodes, audit, publicUrl, anywhere, ...rooms } = deps;
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
  const browserless = browserlessService({ sessions, limit });
  const steel = steelService({ ...rooms, sessions, stop: anywhere.stop, pages: browserless, events, log });
  return { limit, entrance, publicUrl, browserless, steel };
}
