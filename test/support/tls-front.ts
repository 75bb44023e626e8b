import { mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer as createFileServer } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { listenOnLoopback } from './listen.ts';
import { makeCertificate } from './proxies.ts';

/** What ends TLS before a service, as operators have it, and a server of files beside it; both with a certificate that no system knows. */
export async function startTlsFront() {
  const dir = mkdtempSync(join(tmpdir(), 'corral-tls-'));
  const cert = makeCertificate(dir, '127.0.0.1');
  const key = readFileSync(join(dir, 'key.pem'));
  let service: URL | undefined;
  let files: { authorization: string; read: (path: string) => Promise<Buffer | undefined> } | undefined;

  const front = await listenOnLoopback(
    createServer({ cert, key }, (client) => {
      const upstream = connect(Number(service?.port), service?.hostname);
      client.on('error', () => upstream.destroy()).on('close', () => upstream.destroy());
      upstream.on('error', () => client.destroy()).on('close', () => client.destroy());
      client.pipe(upstream).pipe(client);
    }),
  );
  const server = await listenOnLoopback(
    createFileServer({ cert, key }, async (request, response) => {
      if (!files || request.headers.authorization !== files.authorization)
        return response.writeHead(401, { 'www-authenticate': 'Basic realm="files"' }).end();
      const file = await files.read(request.url ?? '');
      return response.writeHead(file ? 200 : 404).end(file);
    }),
  );
  return {
    url: `https://127.0.0.1:${front.port}`,
    /** The port of the files. */
    files: server.port,
    /** The path of the certificate. */
    ca: join(dir, 'cert.pem'),
    leadTo: (to: URL) => void (service = to),
    serve: (authorization: string, read: (path: string) => Promise<Buffer | undefined>) =>
      void (files = { authorization, read }),
    async close() {
      await front.close();
      await server.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
