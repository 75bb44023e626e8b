import type { IncomingMessage } from 'node:http';
import { callerByKey } from '../api/caller.ts';
import type { Server } from '../api/server.ts';
import type { Cluster } from '../cluster/service.ts';
import type { Addresses, Minter } from '../sessions/addresses.ts';
import type { SessionService } from '../sessions/service.ts';
import { serveSessionSockets } from '../sessions/sockets.ts';
import type { Whereabouts } from '../sessions/whereabouts.ts';
import type { Ground } from './ground.ts';

export function serveSockets(
  { gate, store, opened, log }: Ground,
  http: Server,
  deps: { sessions: SessionService; addresses: Addresses; where: Whereabouts; nodes: Cluster },
) {
  const who = (request: IncomingMessage) => callerByKey(request, gate);
  const lapseOf = (minter: Minter) => gate.lapseOf(minter);
  const sockets = serveSessionSockets(http.server, { ...deps, who, lapseOf, log });
  opened(() => sockets.close());
  store.anchor.on('corral_org', sockets.recheck);
  store.anchor.onGap(sockets.recheck);
}
