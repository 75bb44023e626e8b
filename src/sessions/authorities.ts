import type { Log } from '../lib/log.ts';
import type { WebSocketReceiver, WebSocketSink } from '../lib/ws-sink.ts';
import type { Minter } from './addresses.ts';

/** Keys expire without anybody telling. */
const LOOK_EVERY_MS = 15_000;

/**
 * The websockets that are open, each with the key and the project under whose authority it came. One that was let in is not asked
 * again by itself, so whatever may have ended an authority has to ask for it: `recheck`.
 */
export function openAuthorities(vouches: (minter: Minter) => Promise<boolean>, log: Log) {
  const open = new Map<WebSocketSink, Minter>();
  const looking = setInterval(recheck, LOOK_EVERY_MS).unref();

  function recheck(): void {
    const minters = new Map([...open.values()].map((minter) => [`${minter.keyId} ${minter.projectId}`, minter]));
    for (const minter of minters.values()) void check(minter);
  }

  async function check({ keyId, projectId }: Minter): Promise<void> {
    try {
      if (await vouches({ keyId, projectId })) return;
    } catch (error) {
      // The database does not answer. What is open stays so until it does, as what runs does.
      return log.debug({ error: (error as Error).message }, 'socket.authority_unknown');
    }
    for (const [sink, minter] of open) {
      if (minter.keyId !== keyId || minter.projectId !== projectId) continue;
      sink.close(1008, 'The key of this connection was revoked or has expired, or its project is closed.');
    }
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
