import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeCertificate } from '../../../test/support/proxies.ts';
import { destinations, parseAllowList } from './destinations.ts';
import { directRequests } from './direct-request.ts';
import { reachThrough } from './proxy-check.ts';

const dir = mkdtempSync(join(tmpdir(), 'corral-direct-'));
const answer: http.RequestListener = (request, response) => {
  if (request.url === '/silent') return;
  if (request.url?.endsWith('/switch'))
    return void request.socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n');
  if (request.url === '/elsewhere') return void response.writeHead(302, { Location: '/' }).end();
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => void chunks.push(chunk));
  request.on('end', () => {
    const facts = {
      method: request.method,
      url: request.url,
      host: request.headers.host,
      key: request.headers['x-key'],
    };
    response.end(JSON.stringify({ ...facts, body: Buffer.concat(chunks).toString() }));
  });
};

let ca: string;
let plain: Server;
let secure: Server;
beforeAll(async () => {
  ca = makeCertificate(dir, '127.0.0.1');
  plain = http.createServer(answer);
  secure = https.createServer({ cert: ca, key: readFileSync(join(dir, 'key.pem')) }, answer);
  for (const server of [plain, secure]) await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
});
afterAll(async () => {
  for (const server of [plain, secure]) await new Promise((done) => server.close(done));
  rmSync(dir, { recursive: true, force: true });
});

const port = (server: Server) => (server.address() as AddressInfo).port;
const allow = destinations({ allow: parseAllowList('127.0.0.1') });
const request = directRequests({ allow });
const bounds = { timeoutMs: 30_000, mostBytes: 1000 };

describe('a request of the service', () => {
  test('has the method, headers and body it was given', async () => {
    const url = new URL(`http://127.0.0.1:${port(plain)}/a?b=c`);
    const { status, body } = await request(url, {
      ...bounds,
      method: 'POST',
      headers: { 'X-Key': 'k' },
      body: Buffer.from('hé'),
    });
    expect(status).toBe(200);
    expect(JSON.parse(body.toString())).toEqual({
      method: 'POST',
      url: '/a?b=c',
      host: url.host,
      key: 'k',
      body: 'hé',
    });
  });

  test('trusts the certificates it was given, by name and by address, and no others', async () => {
    for (const host of ['127.0.0.1', 'localhost']) {
      const url = new URL(`https://${host}:${port(secure)}/`);
      expect(await request(url, { ...bounds, ca })).toMatchObject({ status: 200 });
      await expect(request(url, bounds)).rejects.toMatchObject({
        code: 'bad_answer',
        message: expect.stringContaining('CERT'),
      });
    }
  });

  test('fails at once when the answer switches protocols, and so does the check of a proxy', async () => {
    const failed = { code: 'bad_answer', message: expect.stringContaining('without an answer') };
    await expect(request(new URL(`http://127.0.0.1:${port(plain)}/switch`), bounds)).rejects.toMatchObject(failed);
    const proxy = { protocol: 'http', host: '127.0.0.1', port: port(plain), bypassHosts: [] } as const;
    const checked = reachThrough(proxy, new URL('http://exit.test/switch'), { allow });
    await expect(checked).rejects.toMatchObject(failed);
  });

  test('follows no redirect, and cancels a request to a silent server', async () => {
    const at = (path: string) => new URL(`http://127.0.0.1:${port(plain)}${path}`);
    expect(await request(at('/elsewhere'), bounds)).toMatchObject({ status: 302, headers: { location: '/' } });
    await expect(request(at('/silent'), { ...bounds, timeoutMs: 200 })).rejects.toMatchObject({
      code: 'connect_timeout',
    });
    await expect(request(at('/'), { ...bounds, mostBytes: 5 })).rejects.toThrow(/more than 5 bytes/);
    const strict = directRequests({ allow: destinations({}) });
    await expect(strict(at('/'), bounds)).rejects.toMatchObject({ code: 'destination_refused' });
  });
});
