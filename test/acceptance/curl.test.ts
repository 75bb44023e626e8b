import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import type Kernel from '@onkernel/sdk';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startService, type Service } from '../support/service.ts';

const MIB = 2 ** 20;

/** A server that shows what it was sent, and has a few manners of its own. */
async function startTarget() {
  let sent = 0;
  const closed: string[] = [];
  const paths: Record<string, (request: IncomingMessage, response: ServerResponse, body: Buffer) => void> = {
    '/cookies': (_request, response) => {
      response.setHeader('set-cookie', ['one=1; Path=/', 'two=2; Path=/; HttpOnly; SameSite=Strict']);
      response.end('set');
    },
    '/gzip': (_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'application/json' });
      response.end(gzipSync('{"packed":true}'));
    },
    '/login': (_request, response) => response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end('who?'),
    '/file': (_request, response) => {
      response.writeHead(200, { 'content-disposition': 'attachment; filename=a.bin' });
      response.end(Buffer.from([0, 255, 128, 10]));
    },
    '/moved': (_request, response) => response.writeHead(303, { location: '/echo' }).end(),
    '/away': (request, response) => {
      response.writeHead(307, { location: `http://localhost:${request.socket.localPort}/echo` }).end();
    },
    '/kept': (_request, response) => response.writeHead(307, { location: '/echo' }).end(),
    '/never': () => {},
    '/broken': (_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('only this');
      setTimeout(() => response.destroy(), 50);
    },
    '/large': (_request, response) => {
      let left = 100;
      sent = 0;
      const more = () => {
        while (left-- > 0) {
          sent += MIB;
          if (!response.write(Buffer.alloc(MIB, left))) return void response.once('drain', more);
        }
        response.end();
      };
      more();
    },
    '/drip': (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const timer = setInterval(() => response.write('data: drop\n\n'), 20);
      response.once('close', () => (clearInterval(timer), closed.push('/drip')));
    },
  };
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const body = Buffer.concat(parts);
      const path = paths[new URL(request.url!, 'http://x').pathname];
      if (path) return path(request, response, body);
      response.setHeader('content-type', 'application/json');
      response.setHeader('x-several', ['a', 'b']);
      const { method, url, headers } = request;
      response.end(JSON.stringify({ method, url, headers, body: body.toString('base64') }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    url: (path: string) => `http://${host}${path}`,
    closed,
    /** What the site had to hand over of the last `/large`. */
    sent: () => sent,
    close: () => (server.closeAllConnections(), server.close()),
  };
}

let target: Awaited<ReturnType<typeof startTarget>>;
let service: Service;
let sdk: Kernel;

beforeAll(async () => {
  target = await startTarget();
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: '127.0.0.0/8,localhost' });
  sdk = service.sdk();
});
afterAll(async () => {
  await service.close();
  target.close();
});

describe.each([{ headless: true }, { headless: false }])(
  'a request through the browser, headless: $headless',
  (shape) => {
    let browser: Awaited<ReturnType<typeof sdk.browsers.create>>;
    beforeAll(async () => {
      browser = await sdk.browsers.create({ ...shape, timeout_seconds: 300 });
    });
    afterAll(() => sdk.browsers.deleteByID(browser.session_id));

    const curl = (body: Parameters<typeof sdk.browsers.curl>[1]) => sdk.browsers.curl(browser.session_id, body);

    test('is sent as requested, and its response is returned unchanged', async () => {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const) {
        const body = ['GET', 'OPTIONS'].includes(method) ? undefined : `{"from":"${method}"}`;
        const answer = await curl({
          url: target.url('/echo?a=1#part'),
          method,
          headers: { 'X-Mine': 'yes', 'Content-Type': 'application/json' },
          ...(body && { body }),
        });
        const seen = JSON.parse(answer.body);
        expect(answer).toMatchObject({ status: 200, headers: { 'x-several': ['a', 'b'] } });
        expect(seen).toMatchObject({ method, url: '/echo?a=1', headers: { 'x-mine': 'yes', accept: '*/*' } });
        expect(seen.headers['user-agent']).toMatch(/Chrome\/\d+/);
        expect(Buffer.from(seen.body, 'base64').toString()).toBe(body ?? '');
      }
      expect(await curl({ url: target.url('/echo'), method: 'HEAD' })).toMatchObject({ status: 200, body: '' });
    });

    test('shares the cookies of the browser, both ways', async () => {
      const { headers } = await curl({ url: target.url('/cookies') });
      expect(headers['set-cookie']).toEqual(['one=1; Path=/', 'two=2; Path=/; HttpOnly; SameSite=Strict']);
      const sent = JSON.parse((await curl({ url: target.url('/echo'), method: 'POST', body: 'x' })).body);
      expect(sent.headers.cookie).toBe('one=1; two=2');
      const own = JSON.parse((await curl({ url: target.url('/echo'), headers: { Cookie: 'mine=1' } })).body);
      expect(own.headers.cookie).toBe('mine=1');

      const playwright = await chromium.connectOverCDP(browser.cdp_ws_url);
      try {
        const [context] = playwright.contexts();
        const there = await context!.cookies(target.url('/'));
        expect(there.map(({ name }) => name).sort()).toEqual(['one', 'two']);
      } finally {
        await playwright.close();
      }
    });

    test('is not visible to clients of the browser', async () => {
      const playwright = await chromium.connectOverCDP(browser.cdp_ws_url);
      try {
        const [context] = playwright.contexts();
        const before = context!.pages().length;
        const opened: string[] = [];
        context!.on('page', (page) => opened.push(page.url()));
        const cdp = await playwright.newBrowserCDPSession();
        const heard: string[] = [];
        cdp.on('Target.targetCreated', ({ targetInfo }) => heard.push(`${targetInfo.type} ${targetInfo.url}`));
        await cdp.send('Target.setDiscoverTargets', { discover: true, filter: [{}] as never });
        heard.length = 0;
        await Promise.all(
          Array.from({ length: 4 }, (_, i) => curl({ url: target.url(`/echo?${i}`), headers: { 'X-Round': 'two' } })),
        );
        const page = await context!.newPage(); // events of the client’s own pages arrive, in order
        await page.goto(target.url('/echo'));
        await page.close();
        const { targetInfos } = await cdp.send('Target.getTargets', { filter: [{}] as never });
        const known = await service.call('GET', `${new URL(browser.base_url!).pathname}/json/list`);
        expect(heard.filter((what) => /^(page|tab|other) /.test(what)).length).toBe(2); // the page and its tab
        expect(opened).toHaveLength(1);
        expect(context!.pages()).toHaveLength(before);
        expect(targetInfos.filter(({ type }) => type === 'page')).toHaveLength(before);
        expect(known.body.filter(({ type }: { type: string }) => type === 'page')).toHaveLength(before);
      } finally {
        await playwright.close();
      }
    });

    test('follows redirects, unpacks, and takes every answer for an answer', async () => {
      const moved = await curl({ url: target.url('/moved'), method: 'POST', body: 'x', headers: { 'X-Mine': 'on' } });
      expect(JSON.parse(moved.body)).toMatchObject({ method: 'GET', url: '/echo', headers: { 'x-mine': 'on' } });
      const kept = await curl({ url: target.url('/kept'), method: 'PUT', body: 'still' });
      expect(JSON.parse(kept.body)).toMatchObject({ method: 'PUT', body: Buffer.from('still').toString('base64') });
      expect(await curl({ url: target.url('/gzip') })).toMatchObject({ status: 200, body: '{"packed":true}' });
      expect(await curl({ url: target.url('/login') })).toMatchObject({ status: 401, body: 'who?' });
      const file = await curl({ url: target.url('/file'), response_encoding: 'base64' });
      expect(Buffer.from(file.body, 'base64')).toEqual(Buffer.from([0, 255, 128, 10]));
    });

    test('sends credentials only to the requested server, not to another after a redirect', async () => {
      const headers = { Authorization: 'Bearer mine', Cookie: 'secret=1', 'X-Mine': 'on', 'Content-Type': 'text/x' };
      const seen = async (path: string, more = {}) =>
        JSON.parse((await curl({ url: target.url(path), headers, ...more })).body).headers as Record<string, string>;
      const away = await seen('/away');
      expect(away).toMatchObject({ host: target.host.replace('127.0.0.1', 'localhost'), 'x-mine': 'on' });
      expect(away.authorization).toBeUndefined();
      expect(away.cookie ?? '').not.toContain('secret');
      expect(await seen('/kept')).toMatchObject({ authorization: 'Bearer mine', cookie: 'secret=1' });
      const moved = await seen('/moved', { method: 'POST', body: 'x' });
      expect(moved).toMatchObject({ authorization: 'Bearer mine' });
      expect(moved['content-type']).toBeUndefined(); // there is no content any more
    });

    test('reports failures of the request', async () => {
      const failing = async (url: string, more = {}) =>
        service.call('POST', `/browsers/${browser.session_id}/curl`, { url, ...more });
      expect(await failing('http://127.0.0.1:1/')).toMatchObject({
        status: 502,
        body: { code: 'transport_failed', net_error_name: 'ERR_UNSAFE_PORT', net_error: -312 },
      });
      expect(await failing('http://127.0.0.1:9/')).toMatchObject({ status: 502 });
      expect(await failing('http://10.255.0.1/')).toMatchObject({
        status: 502,
        body: { net_error_name: 'ERR_ACCESS_DENIED' },
      });
      expect(await failing(target.url('/').replace('http:', 'https:'))).toMatchObject({
        status: 502,
        body: { net_error_name: 'ERR_SSL_PROTOCOL_ERROR' },
      });
      expect(await failing(target.url('/broken'))).toMatchObject({ status: 502 });
      const late = await failing(target.url('/never'), { timeout_ms: 1000 });
      expect(late).toMatchObject({ status: 502, body: { net_error_name: 'ERR_TIMED_OUT' } });
      for (const wrong of [
        { url: 'ftp://x/' },
        { url: 'file:///etc/passwd' },
        { url: 'nonsense' },
        { url: target.url('/'), headers: { Host: 'other' } },
        { url: target.url('/'), headers: { 'X-A': 'a\r\nX-B: b' } },
        { url: target.url('/'), body: 'with a GET' },
        { url: target.url('/'), unknown: true },
        { url: target.url('/'), timeout_ms: 10 },
      ]) {
        expect(await failing(wrong.url, wrong)).toMatchObject({ status: 400 });
      }
    });

    // What the service does with the request and its client is the same for both browsers.
    test.runIf(shape.headless)('streams, with the SDK’s fetch', async () => {
      const url = target.url('/echo');
      const sent = Buffer.from([0, 1, 2, 253, 254, 255]);
      const answer = await sdk.browsers.fetch(browser.session_id, url, {
        method: 'POST',
        body: sent,
        headers: { 'X-Mine': 'yes', Authorization: 'Basic abc' },
      });
      const seen = (await answer.json()) as { headers: Record<string, string> };
      expect(seen).toMatchObject({ method: 'POST', body: sent.toString('base64') });
      expect(seen.headers).toMatchObject({ 'x-mine': 'yes', authorization: 'Basic abc' });
      expect(Object.keys(seen.headers).filter((name) => /stainless|kernel|corral/.test(name))).toEqual([]);
      expect(seen.headers['user-agent']).toMatch(/Chrome\/\d+/);

      const packed = await sdk.browsers.fetch(browser.session_id, target.url('/gzip'));
      expect(packed.headers.get('content-security-policy'), 'opened in a browser, it runs nothing in our name').toBe(
        "default-src 'none'; sandbox",
      );
      expect(await packed.json()).toEqual({ packed: true });
      const cookies = await sdk.browsers.fetch(browser.session_id, target.url('/cookies'));
      expect(cookies.headers.getSetCookie()).toHaveLength(2);

      const large = await sdk.browsers.fetch(browser.session_id, target.url('/large'));
      let bytes = 0;
      for await (const part of large.body as unknown as AsyncIterable<Uint8Array>) {
        // While the client reads no further, the site is held back too: nothing on the way takes all of it into memory.
        if (bytes === 0) {
          expect(await curl({ url: target.url('/echo') })).toMatchObject({ status: 200 });
          expect(target.sent()).toBeLessThan(80 * MIB);
        }
        bytes += part.length;
      }
      expect(bytes).toBe(100 * MIB);
    });

    test.runIf(shape.headless)('waits in line for no longer than it may take', async () => {
      target.closed.length = 0;
      const leaving = new AbortController();
      // From four hosts: Chromium keeps no more than six connections to one.
      const streams = Array.from({ length: 16 }, (_, i) =>
        sdk.browsers.fetch(browser.session_id, target.url('/drip').replace('0.0.1', `0.0.${1 + (i % 4)}`), {
          signal: leaving.signal,
        }),
      );
      try {
        await Promise.all(streams);
        const asked = { url: target.url('/echo'), timeout_ms: 1000 };
        const late = await service.call('POST', `/browsers/${browser.session_id}/curl`, asked);
        expect(late).toMatchObject({ status: 502, body: { net_error_name: 'ERR_TIMED_OUT' } });
      } finally {
        leaving.abort();
      }
      expect(await curl({ url: target.url('/echo') })).toMatchObject({ status: 200 });
      await expect.poll(() => target.closed, { timeout: 60_000 }).toHaveLength(16); // before the next test counts its own
    });

    test.runIf(shape.headless)('ends when its client hangs up', async () => {
      target.closed.length = 0;
      const leaving = new AbortController();
      const stream = await sdk.browsers.fetch(browser.session_id, target.url('/drip'), { signal: leaving.signal });
      const reader = stream.body!.getReader();
      await reader.read();
      leaving.abort();
      await expect.poll(() => target.closed, { timeout: 60_000 }).toEqual(['/drip']);

      // And while nothing has been answered yet.
      const { port } = new URL(service.url);
      const path = `${new URL(browser.base_url!).pathname}/curl/raw?url=${encodeURIComponent(target.url('/never'))}`;
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`));
      await new Promise((resolve) => setTimeout(resolve, 200));
      socket.destroy();
      expect(await curl({ url: target.url('/echo') })).toMatchObject({ status: 200 });
    });
  },
);

test('only with a token of the session, or the key of its project', async () => {
  const { body: other } = await service.call('POST', '/org/projects', { name: 'other' });
  const browser = await sdk.browsers.create({ headless: true });
  const url = target.url('/echo');
  const stranger = { 'x-kernel-project-id': other.id };
  expect(await service.call('POST', `/browsers/${browser.session_id}/curl`, { url }, stranger)).toMatchObject({
    status: 404,
  });
  expect(await service.call('GET', `/browser/kernel/nothing/curl/raw?url=${url}`)).toMatchObject({ status: 401 });
  const cdpToken = new URL(browser.cdp_ws_url).searchParams.get('jwt');
  expect(await service.call('GET', `/browser/kernel/${cdpToken}/curl/raw?url=${url}`)).toMatchObject({ status: 403 });
  await sdk.browsers.deleteByID(browser.session_id);
  expect(await service.call('POST', `/browsers/${browser.session_id}/curl`, { url })).toMatchObject({ status: 404 });
});
