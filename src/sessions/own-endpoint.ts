import http, { type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { UnsniffedResponse } from '../lib/nosniff.ts';

/** A websocket upgrade from inside a session. */
export interface InsideUpgrade {
  sessionId: string;
  request: IncomingMessage;
  socket: Duplex;
  head: Buffer;
}

export const ownEndpointOnly =
  'From inside a session its own cdp_ws_url can be reached, and nothing else of the service that runs it.';

/**
 * The way of a session to its own CDP address: an extension of a driver opens it from inside. The gateway hands such connections over
 * with the session that they come from. This small server answers them, never the service's own, so that nothing
 * else of the service can be reached by what a request says. `upgrade` judges the address and its token. Such a client does not keep the
 * session awake.
 */
export function ownEndpoints(upgrade: (given: InsideUpgrade) => void) {
  const sessions = new WeakMap<Duplex, string>();
  const server = http.createServer({
    ServerResponse: UnsniffedResponse,
    maxHeaderSize: 16 * 1024,
    headersTimeout: 10_000,
    requestTimeout: 10_000,
    connectionsCheckingInterval: 5000,
  });
  server.on('request', (_request, response) => {
    const body = JSON.stringify({ code: 'forbidden', message: ownEndpointOnly });
    response.writeHead(403, { 'content-type': 'application/json', connection: 'close' }).end(body);
  });
  server.on('upgrade', (request, socket, head) => {
    const sessionId = sessions.get(request.socket);
    if (sessionId === undefined) socket.destroy();
    else upgrade({ sessionId, request, socket, head });
  });
  server.on('clientError', (_error, socket) => socket.destroy());
  // Node checks for slow headers once its server listens. This server never listens: connections are passed to it.
  server.emit('listening');

  return {
    enter(sessionId: string, socket: Socket, head: Buffer): void {
      sessions.set(socket, sessionId);
      if (head.length > 0) socket.unshift(head);
      server.emit('connection', socket);
    },
    close: () => void server.close(),
  };
}
