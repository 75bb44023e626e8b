import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

const ofTheUpgrade = new Set(['connection', 'upgrade', 'http2-settings']);

/**
 * An upgrade to anything but a websocket is an invitation that a server may decline by answering as if it had not been made
 * (RFC 9110, 7.8). Java's own client invites to `h2c` with each first request on a plain connection, bodies included. Node hands
 * over the connection instead; it gets it back here, with the request's head as it was but for the invitation.
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
