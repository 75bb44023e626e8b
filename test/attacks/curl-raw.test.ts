import { mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Agent, createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { requireSandbox } from '../support/sandbox.ts';
import { listenOnLoopback } from '../support/listen.ts';
import { makeCertificate } from '../support/proxies.ts';
import { startService, type Service } from '../support/service.ts';

await requireSandbox();

/** Response headers that change settings of an origin: here of the service's own, under whose address the browser reads the response. */
const aboutTheOrigin: Record<string, string> = {
  'Accept-CH': 'Sec-CH-UA-Full-Version-List',
  'Alt-Svc': 'h3="evil.example:443"; ma=2592000',
  'Attribution-Reporting-Register-Source': '{"destination":"https://evil.example"}',
  'Clear-Site-Data': '"*"',
  'Content-Security-Policy-Report-Only': "default-src 'none'; report-uri https://evil.example/csp",
  'Critical-CH': 'Sec-CH-UA-Full-Version-List',
  'Cross-Origin-Embedder-Policy-Report-Only': 'require-corp; report-to="evil"',
  'Cross-Origin-Opener-Policy': 'same-origin; report-to="evil"',
  'Document-Policy': 'force-load-at-top',
  'Expect-CT': 'max-age=86400, enforce, report-uri="https://evil.example/ct"',
  'Feature-Policy': "camera 'none'",
  Link: '<https://evil.example/x.js>; rel=preload; as=script',
  NEL: '{"report_to":"evil","max_age":2592000,"success_fraction":1}',
  'Origin-Agent-Cluster': '?0',
  'Origin-Trial': 'token',
  'Permissions-Policy': 'camera=(), report-to=evil',
  'Public-Key-Pins': 'pin-sha256="x"; max-age=5184000; report-uri="https://evil.example"',
  Refresh: '0; url=https://evil.example/',
  'Report-To': '{"group":"evil","max_age":2592000,"endpoints":[{"url":"https://evil.example/r"}]}',
  'Reporting-Endpoints': 'evil="https://evil.example/r"',
  'Service-Worker-Allowed': '/',
  'Set-Login': 'logged-in',
  SourceMap: 'https://evil.example/map',
  'Speculation-Rules': '"https://evil.example/rules.json"',
  'Strict-Transport-Security': 'max-age=63072000; includeSubDomains',
  'Use-As-Dictionary': 'match="/*"',
  'X-SourceMap': 'https://evil.example/map',
};

const site = createServer((_request, response) => {
  for (const [name, value] of Object.entries(aboutTheOrigin)) response.setHeader(name, value);
  response.setHeader('Content-Security-Policy', "script-src 'unsafe-inline'; report-uri https://evil.example/csp");
  response.setHeader('Referrer-Policy', 'unsafe-url');
  response.setHeader('Set-Cookie', 'planted=1; Path=/');
  response.setHeader('ETag', '"v1"');
  response.setHeader('X-Of-The-Site', 'kept');
  response.setHeader('Content-Type', 'text/html');
  response.end('<script>document.title = 1</script>');
});

let service: Service;
let address: string;
beforeAll(async () => {
  await listenOnLoopback(site);
  const { port } = site.address() as AddressInfo;
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${port}` });
  const { base_url } = await service.sdk().browsers.create({ headless: true, timeout_seconds: 600 });
  address = `${base_url}/curl/raw?url=${encodeURIComponent(`http://127.0.0.1:${port}/`)}`;
});
afterAll(async () => {
  await service?.close();
  site.close();
});

test('a site says nothing about our origin', async () => {
  const { status, headers } = await fetch(address);
  expect(status).toBe(200);
  const said = Object.keys(aboutTheOrigin).filter((name) => headers.has(name));
  expect(said).toEqual([]);
  // Reports and referrers would carry the address, and the address carries the token.
  expect(headers.get('content-security-policy')).toBe("default-src 'none'; sandbox");
  expect(headers.get('referrer-policy')).toBe('no-referrer');
  expect(headers.get('x-content-type-options')).toBe('nosniff');
});

test('the client receives the other headers of the site', async () => {
  const { headers } = await fetch(address);
  expect(headers.get('etag')).toBe('"v1"');
  expect(headers.get('x-of-the-site')).toBe('kept');
  expect(headers.getSetCookie()).toEqual(['planted=1; Path=/']);
});

describe('a browser', () => {
  const asBrowser = (mode: string, dest: string) =>
    service.call('GET', address.slice(service.url.length), undefined, {
      'sec-fetch-mode': mode,
      'sec-fetch-dest': dest,
      'sec-fetch-site': 'cross-site',
    });

  test.each([
    ['navigate', 'document'],
    ['navigate', 'iframe'],
    ['navigate', 'frame'],
    ['navigate', 'embed'],
    ['navigate', 'object'],
    ['websocket', 'document'],
    ['same-origin', 'worker'],
    ['same-origin', 'serviceworker'],
    ['cors', 'sharedworker'],
    ['no-cors', 'script'],
    ['no-cors', 'style'],
    ['nested-navigate', 'document'],
    ['no-cors', 'image'],
  ])('does not load it (%s, %s)', async (mode, dest) => {
    const answer = await asBrowser(mode, dest);
    expect(answer).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    expect(answer.text).not.toContain('<script>');
  });

  test('reads it by a script, and gets no cookie of the site for our origin', async () => {
    const answer = await asBrowser('cors', 'empty');
    expect(answer.status).toBe(200);
    expect(answer.headers.getSetCookie()).toEqual([]);
  });
});

/** The body of an answer, on the one connection of the agent. */
const bodyOn = (agent: Agent, url: string) =>
  new Promise<string>((resolve, reject) => {
    get(url, { agent }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => resolve(text));
    }).on('error', reject);
  });

test('a site that sends more than it announces does not answer the next request of the connection', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'corral-tls-'));
  const cert = makeCertificate(dir, '127.0.0.1');
  const forged = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged';
  // Through the tunnel of https, the browser gets what no gateway has read.
  const liar = createTlsServer({ cert, key: readFileSync(join(dir, 'key.pem')) }, (socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      const lengths = 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close';
      socket.write(`HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n${lengths}\r\n\r\n5\r\nhello\r\n`);
      setTimeout(() => socket.end(`${forged.length.toString(16)}\r\n${forged}\r\n0\r\n\r\n`), 1000);
    });
  });
  const { port, close } = await listenOnLoopback(liar);
  const lied = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${port}` });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const trusted = cert.replaceAll(/-----[^-]+-----|\s/g, '');
    const { base_url } = await lied.sdk().browsers.create({
      headless: true,
      timeout_seconds: 600,
      chrome_policy: { CACertificates: [trusted] },
    });
    const raw = `${base_url}/curl/raw?url=${encodeURIComponent(`https://127.0.0.1:${port}/`)}`;
    expect(await bodyOn(agent, raw)).toBe(`hello${forged}`);
    expect(await bodyOn(agent, `${lied.url}/health`)).toBe('{"status":"ok"}');
  } finally {
    agent.destroy();
    await lied.close();
    await close();
    await rm(dir, { recursive: true, force: true });
  }
});
