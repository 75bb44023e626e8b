import type { IncomingMessage } from 'node:http';
import { connect as connectTcp, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { passedOnHeaders } from './headers.ts';

const connectMs = 5000;

export interface Upgrade {
  request: IncomingMessage;
  socket: Duplex;
  head: Buffer;
}

/**
 * Passes an upgrade to another server and joins the two connections byte by byte: the client gets the answer of that
 * server, its 101 or its error. Rejects when the server cannot be reached; nothing was sent to the client then.
 */
export async function splice(
  { request, socket, head }: Upgrade,
  origin: URL,
  credential: [name: string, value: string],
  signal: AbortSignal,
): Promise<void> {
  const far = await connect(origin, signal);
  // The client disconnected during connect. (The caller has already attached an error listener.)
  if (socket.destroyed) return void far.destroy();
  if (socket instanceof Socket) socket.setNoDelay(true).setKeepAlive(true, 30_000).setTimeout(0);
  far.setNoDelay(true).setKeepAlive(true, 30_000);

  const headers = [...passedOnHeaders(request), 'Host', origin.host, ...upgradeHeaders(request), ...credential];
  let text = `${request.method} ${request.url} HTTP/1.1\r\n`;
  for (let at = 0; at < headers.length; at += 2) text += `${headers[at]}: ${headers[at + 1]}\r\n`;
  far.write(`${text}\r\n`, 'latin1');
  if (head.length > 0) far.write(head);

  const cut = () => far.destroy();
  signal.addEventListener('abort', cut, { once: true });
  far.on('error', () => {}); // `close` follows
  far.once('close', (failed) => {
    signal.removeEventListener('abort', cut);
    leave(socket, failed);
  });
  socket.once('close', () => leave(far, false));
  socket.pipe(far);
  far.pipe(socket);
}

/** Data that was already written is still delivered, unless the other end is broken. */
function leave(socket: Duplex, broken: boolean) {
  if (!broken && socket instanceof Socket) socket.destroySoon();
  else socket.destroy();
}

function* upgradeHeaders({ headers }: IncomingMessage): Generator<string> {
  yield* ['Connection', 'Upgrade', 'Upgrade', headers.upgrade ?? 'websocket'];
}

function connect(origin: URL, signal: AbortSignal): Promise<Socket> {
  const secure = origin.protocol === 'https:';
  const to = {
    host: origin.hostname.replace(/^\[|\]$/g, ''),
    port: Number(origin.port) || (secure ? 443 : 80),
  };
  return new Promise((resolve, reject) => {
    const socket = secure ? connectTls({ ...to, servername: to.host }) : connectTcp(to);
    const fail = (error: Error) => {
      socket.destroy();
      reject(error);
    };
    const late = setTimeout(() => fail(new Error(`no connection within ${connectMs / 1000} s`)), connectMs);
    const abort = () => fail(new Error('it went away'));
    signal.addEventListener('abort', abort, { once: true });
    socket.once('error', fail);
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      socket.off('error', fail);
      resolve(socket);
    });
    socket.once('close', () => signal.removeEventListener('abort', abort));
    const settle = () => clearTimeout(late);
    socket.once(secure ? 'secureConnect' : 'connect', settle).once('close', settle);
  });
}
