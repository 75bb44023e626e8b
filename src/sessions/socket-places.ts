import { errors } from '../errors.ts';

interface Counted {
  readonly clientCount: number;
}

/**
 * The websockets that a session may have. A handshake takes its place before anything is awaited for it: a browser that does not respond keeps
 * handshakes waiting, and without places any number of them would pass a check of the open websockets.
 */
export function socketPlaces(most: number) {
  const arriving = new WeakMap<Counted, number>();

  return {
    /** Throws when there is no place left. Call the returned function when the websocket counts as open, or will not be opened. */
    take(session: Counted): () => void {
      const waiting = arriving.get(session) ?? 0;
      if (session.clientCount + waiting >= most) throw errors.too_many_connections({ most });
      arriving.set(session, waiting + 1);
      return () => void arriving.set(session, arriving.get(session)! - 1);
    },
  };
}
