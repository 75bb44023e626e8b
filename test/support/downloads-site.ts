import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

/** A site that serves attachments, below /file/. */
export async function startDownloads() {
  const server = http.createServer((request, response) => {
    if (request.url?.startsWith('/file/')) response.setHeader('content-disposition', 'attachment');
    response.setHeader('content-type', 'text/html').end('downloaded');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return { server, host: `127.0.0.1:${port}`, alias: `localhost:${port}`, url: `http://127.0.0.1:${port}/` };
}
