import type { IncomingMessage } from 'node:http';
import { callerByKey } from '../api/caller.ts';
import { clientAddress } from '../api/client-address.ts';
import type { Server } from '../api/server.ts';
import type { Cluster } from '../cluster/service.ts';
import type { Addresses, Minter } from '../sessions/addresses.ts';
import type { SessionService } from '../sessions/service.ts';
import { type Entrance, serveSessionSockets } from '../sessions/sockets.ts';
import type { Whereabouts } from '../sessions/whereabouts.ts';
import type { Egress } from './egress.ts';
import type { Ground } from './ground.ts';

export function serveSockets(
  { config, gate, store, opened, log }: Ground,
  http: Server,
  {
    egress,
    ...deps
  }: {
    egress: Egress;
    sessions: SessionService;
    addresses: Addresses;
    where: Whereabouts;
    nodes: Cluster;
    entrance: Entrance;
  },
) {
  const who = (request: IncomingMessage, clientIp: string) => callerByKey(request, clientIp, gate);
  const lapseOf = (minter: Minter) => gate.lapseOf(minter);
  const sockets = serveSessionSockets(http.server, {
    ...deps,
    who,
    clientAddress: clientAddress(config.trustProxy),
    lapseOf,
    searchUrl: config.searchUrl,
    log,
  });
  opened(() => sockets.close());
  egress.inside.enter = sockets.fromInside;
  store.anchor.on('corral_org', sockets.recheck);
  store.anchor.onGap(sockets.recheck);
}
