import type { Log } from '../lib/log.ts';
import type { WebSocketReceiver, WebSocketSink } from '../lib/ws-sink.ts';
import type { LapseOf, Minter } from './addresses.ts';
import { endings } from './state.ts';

/** Keys expire without anybody telling. */
const LOOK_EVERY_MS = 15_000;
const keyEnded = 'The key of this connection was revoked or has expired.';

/**
 * The websockets that are open, each with the key and the project under whose authority it came. One that was let in is not asked
 * again by itself, so whatever may have ended an authority has to ask for it: `recheck`.
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
      // The database does not answer. What is open stays so until it does, as what runs does.
      return log.debug({ error: (error as Error).message }, 'socket.authority_unknown');
    }
    if (!lapse) return;
    // A project that closes ends its sessions too. A client is told the same by either.
    const [code, reason] = lapse === 'project' ? [1001, endings.project_closed] : [1008, keyEnded];
    for (const [sink, minter] of open)
      if (minter.keyId === keyId && minter.projectId === projectId) sink.close(code, reason);
  }

  return {
    recheck,

    /** Attaches a websocket that ends with its authority. */
    during(minter: Minter, attach: (sink: WebSocketSink) => WebSocketReceiver) {
      return (sink: WebSocketSink): WebSocketReceiver => {
        open.set(sink, minter);
        const receiver = attach(sink);
        void check(minter); // it may have ended since it let this one in
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
