import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeCertificate } from '../../../test/support/proxies.ts';
import { destinations, parseAllowList } from './destinations.ts';
import { directRequests } from './direct-request.ts';
import { reachThrough } from './proxy-check.ts';

const dir = mkdtempSync(join(tmpdir(), 'corral-handshake-'));
const port = (server: Server) => (server.address() as AddressInfo).port;
const allow = destinations({ allow: parseAllowList('127.0.0.1') });

let ca: string;
/** Speaks only ciphers with a Diffie-Hellman exchange of its own numbers. */
let expensive: https.Server;
let proxy: Server;
let handshakes = 0;
beforeAll(async () => {
  ca = makeCertificate(dir, '127.0.0.1', 'rsa:2048');
  const options = { cert: ca, key: readFileSync(join(dir, 'key.pem')), dhparam: 'auto' };
  expensive = https.createServer(
    { ...options, ciphers: 'DHE-RSA-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' },
    (_, response) => response.end('ok'),
  );
  expensive.on('secureConnection', () => handshakes++);
  proxy = http.createServer().on('connect', (_, client: net.Socket) => {
    client.write('HTTP/1.1 200 OK\r\n\r\n');
    const site = net.connect(port(expensive), '127.0.0.1').on('error', () => {});
    client.on('error', () => {}).pipe(site);
    site.pipe(client);
  });
  for (const server of [expensive, proxy]) await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
});
afterAll(async () => {
  for (const server of [expensive, proxy]) await new Promise((done) => server.close(done));
  rmSync(dir, { recursive: true, force: true });
});

test.each<[string, string, () => Promise<unknown>]>([
  [
    'proxy',
    'proxy_bad_answer',
    () =>
      reachThrough(
        { protocol: 'https', host: '127.0.0.1', port: port(expensive), ca, bypassHosts: [] },
        new URL('http://127.0.0.1:9/'),
        { allow },
      ),
  ],
  [
    'site behind a proxy',
    'bad_answer',
    () =>
      reachThrough(
        { protocol: 'http', host: '127.0.0.1', port: port(proxy), bypassHosts: [] },
        new URL(`https://127.0.0.1:${port(expensive)}/`),
        { allow },
      ),
  ],
  [
    'server of a request',
    'bad_answer',
    () =>
      directRequests({ allow })(new URL(`https://127.0.0.1:${port(expensive)}/`), {
        ca,
        timeoutMs: 30_000,
        mostBytes: 1000,
      }),
  ],
])('a %s does not choose the numbers of a Diffie-Hellman exchange', async (_, code, ask) => {
  await expect(ask()).rejects.toMatchObject({ code });
  expect(handshakes).toBe(0);
});
