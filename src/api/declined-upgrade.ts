import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

const ofTheUpgrade = new Set(['connection', 'upgrade', 'http2-settings']);

/**
 * A server may decline an upgrade by answering as if it had not been requested (RFC 9110, 7.8); all but websockets are
 * declined. Java's own client offers `h2c` with the first request on every plain connection, bodies included. Node hands
 * the connection over instead of answering; this gives it back, with the request's head unchanged except for the upgrade.
 */
export function declineUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (!ofTheUpgrade.has(name.toLowerCase())) lines.push(`${name}: ${rawHeaders[i + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}
