import http from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Reading } from './dial.ts';
import { plainReader, type PlainReader } from './plain-body.ts';
import { EgressError } from './refusals.ts';

type Created = (error: Error | null, socket: Duplex) => void;
/** Node's `createConnection`. */
export type CreateConnection = (args: http.ClientRequestArgs, created: Created) => undefined;

/** Connections for plain http: each has its own reader, and some are kept for the next request to the same destination. */
export function plainConnections({ mostIdle }: { mostIdle: number }) {
  const idle = new Set<Socket>();
  const readers = new WeakMap<Socket, PlainReader>();

  return {
    readerOf: (socket: Socket) => readers.get(socket),

    /** Passes an open connection to Node's client. It closes when the peer ends its side; otherwise an idle connection would outlive the peer. */
    handOver(opened: (onread: Reading) => Promise<Socket>, created: Created): undefined {
      const reader = plainReader();
      opened(reader)
        .then((socket) => {
          if (reader.spoiled) {
            socket.destroy();
            throw new EgressError('bad_answer', 'The server spoke before it was asked, which is not HTTP.');
          }
          reader.socket = socket;
          readers.set(socket, reader);
          socket.once('close', () => idle.delete(socket));
          socket.allowHalfOpen = false;
          return created(null, socket);
        })
        .catch((error: Error) => created(error, new Socket())); // the type requires a socket; it is not used
    },

    /** Keeps connections for the next request to the same destination, while the agent `isCurrent`. */
    agent(createConnection: CreateConnection, isCurrent: (agent: http.Agent) => boolean): http.Agent {
      const agent = new (class extends http.Agent {
        override createConnection = createConnection;

        override keepSocketAlive(socket: Socket) {
          if (idle.size >= mostIdle || !isCurrent(agent)) return false;
          const kept: unknown = super.keepSocketAlive(socket); // a boolean, although its type is void
          if (kept) idle.add(socket);
          return kept;
        }

        override reuseSocket(socket: Socket, request: http.ClientRequest) {
          super.reuseSocket(socket, request);
          idle.delete(socket);
        }
      })({ keepAlive: true, maxFreeSockets: mostIdle, timeout: 30_000 }); // idle time; less if the server requests it
      return agent;
    },
  };
}
