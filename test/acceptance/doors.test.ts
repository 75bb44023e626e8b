import { once } from 'node:events';
import { connect } from 'node:net';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectNothingLeft, leftovers, onTheMachine } from '../support/nothing-left.ts';
import { killBrowser } from '../support/kill-browser.ts';
import { RawClient } from '../support/mux-server.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Service } from '../support/service.ts';
import { upgrade } from '../support/upgrade.ts';

let pages: Pages;
let service: Service;
beforeAll(async () => {
  pages = await startPages();
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: pages.host, CORRAL_MAX_SESSIONS: '4' });
});
let stopped = false;
afterAll(async () => {
  if (!stopped) await service?.close();
  await pages?.close();
});

const at = (path: string) => service.url.replace('http', 'ws') + path;
const door = (query = '', path = '/connect') => at(`${path}?key=${service.key}&headless=true${query}`);
const active = async () => (await service.call('GET', '/browsers')).body;

describe('/connect', () => {
  afterEach(() => expectNothingLeft(service));

  test('makes a session for Playwright, as it asks, and ends it when Playwright leaves', async () => {
    const browser = await chromium.connectOverCDP(door('&name=mine&viewport.width=800&viewport.height=600'));
    const page = browser.contexts()[0]!.pages()[0]!;
    await page.goto(pages.url);
    await page.click('button');
    expect(await page.textContent('output')).toBe('1');
    expect(await active()).toMatchObject([{ name: 'mine', headless: true, viewport: { width: 800, height: 600 } }]);
    await browser.close();
    await expect.poll(active).toEqual([]);
  });

  test('makes one for Puppeteer, over CDP and over BiDi', async () => {
    for (const [path, protocol] of [
      ['/connect', 'cdp'],
      ['/connect/bidi', 'webDriverBiDi'],
    ] as const) {
      const browser = await puppeteer.connect({
        browserWSEndpoint: door('', path),
        protocol,
        defaultViewport: null,
      });
      const [page] = await browser.pages();
      await page!.goto(pages.url);
      expect(await page!.title()).toBe('A page');
      await browser.disconnect();
      await expect.poll(active).toEqual([]);
    }
  });

  test('keeps the session with keep_alive, and another client finds it by name', async () => {
    const first = await RawClient.open(door('&keep_alive=true&name=kept'));
    const { targetId } = await first.result<{ targetId: string }>('Target.createTarget', { url: 'about:blank' });
    await first.close();
    const second = await RawClient.open(at(`/connect?session=kept&key=${service.key}`));
    const { targetInfos } = await second.result<{ targetInfos: { targetId: string }[] }>('Target.getTargets');
    expect(targetInfos.map((one) => one.targetId)).toContain(targetId);
    await second.close();
    expect(await active()).toMatchObject([{ name: 'kept' }]);
  });

  test('leases a browser of a pool and gives it back', async () => {
    const { body: pool } = await service.call('POST', '/browser_pools', { name: 'warm', size: 1, headless: true });
    const counts = async () => (await service.call('GET', `/browser_pools/${pool.id}`)).body;
    const client = await RawClient.open(at(`/connect?pool=warm&tags.of=door&key=${service.key}`));
    expect(await client.result('Browser.getVersion')).toHaveProperty('product');
    expect(await counts()).toMatchObject({ acquired_count: 1 });
    const busy = await upgrade(at(`/connect?pool=warm&acquire_timeout_seconds=0&key=${service.key}`));
    expect(busy).toMatchObject({ status: 503, body: { code: 'pool_busy' } });
    await client.close();
    await expect.poll(counts).toMatchObject({ acquired_count: 0 });
    await service.call('DELETE', `/browser_pools/${pool.id}`, { force: true });
  });

  test('refuses with a status before the upgrade, and keeps the key to itself', async () => {
    const refused = async (query: string, headers = {}) => upgrade(at(`/connect?${query}`), headers);
    expect(await refused('headless=true')).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    expect(await refused('key=sk-wrong-key')).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    const { status, text } = await refused(`key=${service.key}&headles=true`);
    expect([status, text]).toEqual([400, expect.stringContaining('Did you mean headless?')]);
    expect(await refused(`key=${service.key}&start_url=%00`)).toMatchObject({ status: 400 });
    expect(await refused(`key=${service.key}&project=none`)).toMatchObject({ status: 404 });
    expect(await refused(`key=${service.key}&session=none`)).toMatchObject({ status: 404 });
    expect(await refused(`key=${service.key}&pool=none`)).toMatchObject({ status: 404 });
    const authorization = `Bearer ${service.key}`;
    expect(await refused('profile=none', { authorization })).toMatchObject({
      body: { code: 'invalid_input', message: expect.stringContaining("no profile has the name 'none'") },
    });

    const clients = await Promise.all([1, 2, 3, 4].map(() => RawClient.open(door())));
    expect(await refused(`key=${service.key}&headless=true`)).toMatchObject({ status: 529 });
    await Promise.all(clients.map((client) => client.close()));

    const since = new Date(Date.now() - 3_600_000).toISOString();
    const until = new Date(Date.now() + 60_000).toISOString();
    const audit = await service.call('GET', `/audit-logs?start=${since}&end=${until}&limit=100`);
    const entries = audit.body.filter(({ path }: { path: string }) => path === '/connect');
    expect(entries.map(({ status }: { status: number }) => status)).toEqual(
      expect.arrayContaining([101, 400, 404, 529]),
    );
    expect(audit.text + service.log.join('')).not.toContain(service.key);
    expect(audit.text + service.log.join('')).not.toContain('sk-wrong-key');
  });

  test('creates nothing for a client that disconnects before its session is ready', async () => {
    const { hostname, port } = new URL(service.url);
    for (const leave of ['end', 'destroy', 'resetAndDestroy'] as const) {
      const socket = connect(Number(port), hostname).on('error', () => {});
      await once(socket, 'connect');
      const over = once(socket, 'close');
      const lines = [
        `GET /connect?key=${service.key}&headless=true HTTP/1.1`,
        'Host: corral',
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ];
      socket.write(`${lines.join('\r\n')}\r\n\r\n`);
      await expect.poll(() => service.app.sessions.counts().taken).toBeGreaterThan(0);
      socket[leave]();
      socket.resume();
      await over;
      await expect.poll(() => leftovers(service)).toEqual([]);
    }
  });

  test('closes the websocket when its session ends', async () => {
    const client = await RawClient.open(door());
    const [{ session_id }] = await active();
    await service.call('DELETE', `/browsers/${session_id}`);
    expect(await client.closed).toMatchObject({ code: 1001, reason: 'The session was deleted.' });
  });

  test('reports a browser crash to the client, and ends the session unless it is to be kept', async () => {
    const [once, kept] = await Promise.all([
      RawClient.open(door()),
      RawClient.open(door('&keep_alive=true&name=back')),
    ]);
    const ids = (await active()).map((one: { session_id: string }) => one.session_id);
    for (const id of ids) await killBrowser(service, id);
    for (const client of [once, kept])
      expect(await client.closed).toMatchObject({ code: 1012, reason: expect.stringContaining('crashed') });
    await expect.poll(active, { timeout: 60_000 }).toMatchObject([{ name: 'back' }]);
    // The same session has another browser by then.
    const again = await RawClient.open(at(`/connect?session=back&key=${service.key}`));
    expect(await again.result('Browser.getVersion')).toHaveProperty('product');
    await again.close();
  });
});

describe('a client of Browserless', () => {
  afterEach(() => expectNothingLeft(service));

  const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${service.url}${path}${path.includes('?') ? '&' : '?'}token=${service.key}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'cache-control': 'no-cache', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    return {
      status: answer.status,
      type: answer.headers.get('content-type'),
      bytes: Buffer.from(await answer.arrayBuffer()),
    };
  };
  const scripted = `data:text/html,<title>Late</title><h1 class=big>Hello</h1><script>
    setTimeout(() => document.body.append(Object.assign(document.createElement('p'), { id: 'late', textContent: 'there' })), 50)
  </script>`;

  test('connects to / and to /chromium, and by http through /json/version', async () => {
    for (const address of [at(`/?token=${service.key}`), at(`/chromium?token=${service.key}&stealth=false`)]) {
      const browser = await puppeteer.connect({ browserWSEndpoint: address });
      const page = await browser.newPage();
      await page.goto(pages.url);
      expect(await page.title()).toBe('A page');
      await browser.close();
      await expect.poll(active).toEqual([]);
    }
    const browser = await chromium.connectOverCDP(`${service.url}?token=${service.key}`);
    expect(browser.version()).toMatch(/^\d+\./);
    await browser.close();
    expect(await upgrade(at(`/?token=${service.key}&blockAds=true`))).toMatchObject({
      status: 400,
      body: { code: 'feature_not_available' },
    });
  });

  test('gets content, screenshots and PDFs', async () => {
    const html = await post('/content', {
      url: scripted,
      waitForSelector: { selector: '#late', timeout: 20_000 },
      waitForFunction: { fn: "async () => document.title === 'Late'", timeout: 20_000 },
    });
    expect(html).toMatchObject({ status: 200, type: 'text/html; charset=utf-8' });
    expect(html.bytes.toString()).toContain('<p id="late">there</p>');

    const full = await post('/screenshot', { url: pages.url, options: { fullPage: true, type: 'png' } });
    expect(full).toMatchObject({ status: 200, type: 'image/png' });
    expect(full.bytes.subarray(1, 4).toString()).toBe('PNG');
    expect(full.bytes.readUInt32BE(20)).toBeGreaterThan(5000); // the page is that high
    const inBase64 = await post('/screenshot', {
      html: '<h1>Hi</h1>',
      viewport: { width: 300, height: 200 },
      options: { type: 'jpeg', quality: 50, encoding: 'base64' },
    });
    expect(Buffer.from(inBase64.bytes.toString(), 'base64').subarray(0, 2)).toEqual(Buffer.from([0xff, 0xd8]));

    const paper = await post('/pdf', { html: '<h1>Hi</h1>', options: { format: 'A4', printBackground: true } });
    expect(paper).toMatchObject({ status: 200, type: 'application/pdf' });
    expect(paper.bytes.subarray(0, 5).toString()).toBe('%PDF-');
  });

  test('scrapes elements and runs functions inside the session', async () => {
    const scraped = await post('/scrape', { url: scripted, elements: [{ selector: 'h1' }] });
    expect(JSON.parse(scraped.bytes.toString())).toEqual({
      data: [
        {
          selector: 'h1',
          results: [
            expect.objectContaining({ text: 'Hello', html: 'Hello', attributes: [{ name: 'class', value: 'big' }] }),
          ],
        },
      ],
    });
    const code = `export default async function ({ page, context }) {
      await page.goto(context.url);
      return { data: { title: await page.title() }, type: 'application/json' };
    }`;
    const ran = await post('/function', { code, context: { url: pages.url } });
    expect([ran.type, JSON.parse(ran.bytes.toString())]).toEqual([
      expect.stringMatching(/^application\/json/),
      { title: 'A page' },
    ]);
    const raw = await post('/function', 'export default async () => { throw new Error("oh no") }', {
      'content-type': 'application/javascript',
    });
    expect([raw.status, JSON.parse(raw.bytes.toString())]).toMatchObject([
      400,
      { code: 'function_failed', message: expect.stringContaining('oh no') },
    ]);
  });

  test('gets an error for features that are not available, and keeps its key out of the logs', async () => {
    const refused = async (path: string, body: unknown) => {
      const { status, bytes } = await post(path, body);
      return { status, code: JSON.parse(bytes.toString()).code };
    };
    const refusals = [
      await refused('/content', { url: pages.url, rejectRequestPattern: ['x'] }),
      await refused('/content', {}),
      await refused('/content', { url: pages.url, surprise: 1 }),
      await refused('/content?launch={}', { url: pages.url }),
      await refused('/content', { url: 'http://127.0.0.1:1/' }),
      await refused('/content', { html: 'x', waitForSelector: { selector: '#never', timeout: 100 } }),
    ];
    expect(refusals).toEqual([
      { status: 400, code: 'feature_not_available' },
      { status: 400, code: 'invalid_input' },
      { status: 400, code: 'invalid_input' },
      { status: 400, code: 'feature_not_available' },
      { status: 502, code: 'page_not_loaded' },
      { status: 504, code: 'page_timed_out' },
    ]);
    const patient = { html: '<b>x</b>', bestAttempt: true, waitForSelector: { selector: '#never', timeout: 100 } };
    expect((await post('/content', patient)).bytes.toString()).toContain('<b>x</b>');
    expect((await fetch(`${service.url}/content?token=wrong`, { method: 'POST' })).status).toBe(401);
    expect(service.log.join('')).not.toContain(service.key);
  });
});

test('a service that stops notifies the clients of /connect, also those whose session is not ready yet', async () => {
  const client = await RawClient.open(door());
  const making = upgrade(door()).then(
    ({ status, socket }) => (socket?.destroy(), status),
    () => 'hung up' as const,
  );
  await expect.poll(() => service.app.sessions.counts().taken).toBe(2);
  stopped = true;
  const closing = service.close();
  expect(await client.closed).toMatchObject({ code: 1001, reason: 'The service was stopped.' });
  // Its session was made just in time, or it is refused before the upgrade.
  expect([101, 503, 'hung up']).toContain(await making);
  await closing;
  expect(onTheMachine(service.dataDir)).toEqual([]);
});
