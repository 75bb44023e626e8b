import http from 'node:http';
import type { Socket } from 'node:net';
import { listenOnLoopback } from './listen.ts';

/**
 * A proxy that knows the sites of a test, by plain http, and no other: it writes down every host that it is asked for, and refuses the
 * others. What a browser asks for by itself is in its list, on machines with and without the internet.
 */
export async function startRecordingProxy(sites: Record<string, http.RequestListener>) {
  const asked: string[] = [];
  const server = http.createServer((request, response) => {
    asked.push(new URL(request.url ?? '/', `http://${request.headers.host}`).href);
    const site = sites[request.headers.host ?? ''];
    if (site) site(request, response);
    else response.writeHead(502).end();
  });
  // The gateway of a session makes a tunnel for plain http, too.
  server.on('connect', (request, socket: Socket) => {
    const host = request.url?.replace(/:80$/, '') ?? '';
    socket.on('error', () => {});
    if (!(host in sites)) {
      asked.push(host);
      return void socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    }
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    server.emit('connection', socket);
  });
  const { port, close } = await listenOnLoopback(server);
  return { port, close, asked };
}
