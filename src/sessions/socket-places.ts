import { errors } from '../errors.ts';
import type { ClientKind } from './clients.ts';

interface Counted {
  readonly clientCount: number;
  readonly sight: { readonly uses: Readonly<Record<ClientKind, number>> };
}

/**
 * The websockets that a session may have, and those of some kinds. A handshake takes its place before anything is awaited for it: a browser
 * that does not respond keeps handshakes waiting, and without places any number of them would pass a check of the open websockets.
 */
export function socketPlaces(most: number, mostOfKind: Partial<Record<ClientKind, number>> = {}) {
  const arriving = new WeakMap<Counted, ClientKind[]>();

  return {
    /** Throws when there is no place left. Call the returned function when the websocket counts as open, or will not be opened. */
    take(session: Counted, kind: ClientKind): () => void {
      const waiting = arriving.get(session) ?? [];
      if (session.clientCount + waiting.length >= most) throw errors.too_many_connections({ most });
      const mostSuch = mostOfKind[kind] ?? most;
      const such = session.sight.uses[kind] + waiting.filter((other) => other === kind).length;
      if (such >= mostSuch) throw errors.too_many_connections({ most: mostSuch, kind });
      waiting.push(kind);
      arriving.set(session, waiting);
      return () => void waiting.splice(waiting.indexOf(kind), 1);
    },
  };
}
