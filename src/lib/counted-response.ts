import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Requests of one connection that may wait for their answers. Browsers and HTTP clients send one at a time. */
const MOST = 8;
/** The same for all connections together: each costs 20 µs before its handling can be put off. */
const MOST_IN_ALL = 500;

/** Marks the rest as another protocol for Node's parser, which then reads nothing more of this chunk. */
const STOP = 2;

const waiting = new WeakMap<Socket, number>();
/** Requests that were sent on a connection with an unanswered request. */
let pipelined = 0;

/**
 * Bounds the requests that a client sends on one connection without waiting for answers (pipelining). Node emits all requests of a chunk in
 * one turn of the event loop: 64 KiB have thousands, and stopped the service for seconds. A connection with more than `MOST` is closed, and so
 * is a connection that pipelines beyond `MOST_IN_ALL`: HTTP lets a client repeat pipelined requests on a new connection.
 * Node creates a response for each request before anything else is done, also for those that it answers by itself. Each request counts
 * until its turn is over, even if it is answered in the same turn.
 */
export class CountedResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  constructor(...given: ConstructorParameters<typeof ServerResponse<R>>) {
    super(...given);
    const { socket } = given[0];
    const before = waiting.get(socket);
    if (before === undefined) socket.once('close', () => forget(socket));
    const count = (before ?? 0) + 1;
    waiting.set(socket, count);
    if (count > 1) pipelined++;
    if (count > MOST || (count > 1 && pipelined > MOST_IN_ALL)) cut(socket);
    this.once('close', () => setImmediate(answered, socket));
  }
}

function answered(socket: Socket): void {
  if (socket.destroyed) return;
  const count = waiting.get(socket)!;
  waiting.set(socket, count - 1);
  if (count > 1) pipelined--;
}

/** Node emits no `close` for responses that wait for their turn when the connection closes. */
function forget(socket: Socket): void {
  pipelined -= Math.max(0, waiting.get(socket)! - 1);
}

function cut(socket: Socket): void {
  socket.destroy();
  stopParsing(socket);
}

/** Node parses the rest of a chunk also for a closed connection, 25 µs for each request. The parser is not part of its documented API. */
export function stopParsing(socket: Socket & { parser?: { onIncoming: () => number } | null }): void {
  if (socket.parser) socket.parser.onIncoming = () => STOP;
}
