import type { Log } from '../lib/log.ts';
import type { WebSocketReceiver, WebSocketSink } from '../lib/ws-sink.ts';
import type { LapseOf, Minter } from './addresses.ts';
import { endings } from './state.ts';

/** The expiry of a key raises no event, so keys are checked at this interval. */
const LOOK_EVERY_MS = 15_000;
const keyEnded = 'The key of this connection was revoked or has expired.';

/**
 * The open websockets, each with the key and the project it was opened with. An open websocket is not checked again by itself, so every
 * event that may end a key or a project calls `recheck`.
 */
export function openAuthorities(lapseOf: LapseOf, log: Log) {
  const open = new Map<WebSocketSink, Minter>();
  const looking = setInterval(recheck, LOOK_EVERY_MS).unref();

  function recheck(): void {
    const minters = new Map([...open.values()].map((minter) => [`${minter.keyId} ${minter.projectId}`, minter]));
    for (const minter of minters.values()) void check(minter);
  }

  async function check({ keyId, projectId }: Minter): Promise<void> {
    let lapse: 'key' | 'project' | undefined;
    try {
      lapse = await lapseOf({ keyId, projectId });
    } catch (error) {
      // The database does not answer. Open websockets stay open until it does, as running sessions do.
      return log.debug({ error: (error as Error).message }, 'socket.authority_unknown');
    }
    if (!lapse) return;
    // A closed project ends its sessions too. The client gets the same code and reason either way.
    const [code, reason] = lapse === 'project' ? [1001, endings.project_closed] : [1008, keyEnded];
    for (const [sink, minter] of open)
      if (minter.keyId === keyId && minter.projectId === projectId) sink.close(code, reason);
  }

  return {
    recheck,

    /** Attaches a websocket that is closed when its key or project ends. */
    during(minter: Minter, attach: (sink: WebSocketSink) => WebSocketReceiver) {
      return (sink: WebSocketSink): WebSocketReceiver => {
        open.set(sink, minter);
        const receiver = attach(sink);
        void check(minter); // the key or project may have ended since the handshake
        return {
          receive: (data, binary) => receiver.receive(data, binary),
          flush: () => receiver.flush(),
          closed() {
            open.delete(sink);
            receiver.closed();
          },
        };
      };
    },

    close: () => clearInterval(looking),
  };
}
