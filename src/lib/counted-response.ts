import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Requests of one connection that may wait for their answers. Browsers and HTTP clients send one at a time. */
const MOST = 8;

/** Tells Node's parser that another protocol follows, so that it reads nothing more of this chunk. */
const STOP = 2;

const waiting = new WeakMap<Socket, number>();

/**
 * Bounds the requests that a client sends on one connection without waiting for answers (pipelining). Node emits all requests of a chunk in
 * one turn of the event loop: 64 KiB have thousands, and stopped the service for seconds. A connection with more than `MOST` is closed.
 * Node creates a response for each request before anything else is done, also for those that it answers by itself. Each request counts
 * until its turn is over, even if it is answered in the same turn.
 */
export class CountedResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  constructor(...given: ConstructorParameters<typeof ServerResponse<R>>) {
    super(...given);
    const { socket } = given[0];
    const count = (waiting.get(socket) ?? 0) + 1;
    waiting.set(socket, count);
    if (count > MOST) cut(socket);
    else this.once('close', () => setImmediate(answered, socket));
  }
}

function answered(socket: Socket): void {
  waiting.set(socket, waiting.get(socket)! - 1);
}

/** Node parses the rest of a chunk also for a closed connection, 25 µs for each request. The parser is not part of its documented API. */
function cut(socket: Socket & { parser?: { onIncoming: () => number } | null }): void {
  socket.destroy();
  if (socket.parser) socket.parser.onIncoming = () => STOP;
}
