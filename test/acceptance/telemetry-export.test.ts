import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type Kernel from '@onkernel/sdk';
import { chromium, type Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HarEntry } from '../../src/telemetry/export/har-entry.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { startService, type Service } from '../support/service.ts';

interface Har {
  log: { pages: { title: string; pageTimings: { onLoad: number } }[]; entries: HarEntry[] };
}

let site: Server;
let host: string;
/** What the site was asked for, and what it answered. */
const asked: string[] = [];
let collector: Awaited<ReturnType<typeof startOtlpReceiver>>;
let service: Service;
let sdk: Kernel;
/** The browser that opens the exports: it has DevTools, and shows the trace viewer. */
let viewer: Browser;
let id: string;
const patience = { timeout: 60_000 };
const on = { enabled: true };

const answers: Record<string, { status: number; type?: string; location?: string; body?: string | Buffer }> = {
  '/': {
    status: 200,
    type: 'text/html',
    body: `<!doctype html><title>Shop</title><link rel=icon href=data:,><link rel=stylesheet href=/style.css><img src=/dot.gif>
      <button onclick="console.warn('bought')">Buy</button>
      <script>
        const calls = [
          fetch('/api?q=1', { method: 'POST', body: '{"n":1}', headers: { 'content-type': 'application/json' } }),
          fetch('/old'), fetch('/missing'), fetch('/broken').catch(() => {}),
        ];
        Promise.all(calls).then(() => (document.title = 'Shop is open'));
      </script>`,
  },
  '/style.css': { status: 200, type: 'text/css', body: 'button { color: green }' },
  '/dot.gif': {
    status: 200,
    type: 'image/gif',
    body: Buffer.from('R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==', 'base64'),
  },
  '/api?q=1': { status: 201, type: 'application/json', body: '{"done":true}' },
  '/old': { status: 307, location: '/older' },
  '/older': { status: 302, location: '/new' },
  '/new': { status: 200, type: 'text/plain', body: 'moved' },
};

beforeAll(async () => {
  site = createServer((request, response) => {
    request.resume();
    const url = request.url ?? '';
    if (url === '/broken') {
      asked.push(`${request.method} ${url} 0`);
      // Amid the body: a connection that ends before the head of an answer is tried again by Chromium.
      response.writeHead(200, { 'content-length': '100' });
      return void response.write('x', () => request.socket.destroy());
    }
    const { status, type, location, body } = answers[url] ?? { status: 404, type: 'text/plain', body: 'nothing' };
    asked.push(`${request.method} ${url} ${status}`);
    response.writeHead(status, { ...(type && { 'content-type': type }), ...(location && { location }) }).end(body);
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  host = `127.0.0.1:${(site.address() as AddressInfo).port}`;
  collector = await startOtlpReceiver();
  service = await startService({
    CORRAL_ALLOW_PRIVATE_HOSTS: host,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20collect',
  });
  sdk = service.sdk();
  viewer = await chromium.launch({ executablePath: '/usr/lib/chromium/chromium', args: ['--no-sandbox'] });

  const browser = { console: on, page: on, interaction: on, network: on, screenshot: on };
  const session = await sdk.browsers.create({ headless: true, timeout_seconds: 600, telemetry: { browser } });
  id = session.session_id;
  const client = await chromium.connectOverCDP(session.cdp_ws_url);
  const page = await client.contexts()[0]!.newPage();
  await page.goto(`http://${host}/`);
  await page.waitForFunction("document.title === 'Shop is open'", undefined, patience);
  await page.getByText('Buy').click();
  // They are captured beside the client, and may come a moment later.
  while (!(await everythingCaptured())) await sleep(250);
  await client.close();
}, 300_000);
afterAll(async () => {
  await viewer?.close();
  await service?.close();
  await collector?.close();
  site?.closeAllConnections();
  site?.close();
});

/** Every request with its end, the click and its message, and a picture. */
async function everythingCaptured(): Promise<boolean> {
  const types = new Map<string, number>();
  for await (const { event } of sdk.browsers.telemetry.events(id, { limit: 100, since: '1h' }))
    types.set(event.type, (types.get(event.type) ?? 0) + 1);
  const requests = types.get('network_request') ?? 0;
  const ended = (types.get('network_response') ?? 0) + (types.get('network_loading_failed') ?? 0);
  const rest = ['interaction_click', 'console_log', 'monitor_screenshot', 'page_load'];
  return requests >= asked.length && ended >= requests && rest.every((type) => types.has(type));
}

async function har(): Promise<Har> {
  const { status, body, headers } = await service.call('GET', `/browsers/${id}/telemetry/har`);
  expect({ status, type: headers.get('content-type') }).toEqual({ status: 200, type: 'application/json' });
  return body as Har;
}

/** The requests to the site, as the site has them. */
const toSite = ({ log }: Har) =>
  log.entries
    .filter(({ request }) => request.url.startsWith(`http://${host}/`))
    .map(
      ({ request, response }) => `${request.method} ${request.url.slice(`http://${host}`.length)} ${response.status}`,
    )
    .sort();

test('the HAR has each request as the server saw it, and DevTools imports it', async () => {
  const found = await har();
  expect(toSite(found)).toEqual([...asked].sort());
  expect(found.log.pages.find(({ title }) => title === `http://${host}/`)?.pageTimings.onLoad).toBeGreaterThan(0);
  const entry = (path: string) => found.log.entries.find(({ request }) => request.url === `http://${host}${path}`)!;
  expect(entry('/api?q=1')).toMatchObject({
    request: {
      postData: { mimeType: 'application/json', text: '{"n":1}' },
      queryString: [{ name: 'q', value: '1' }],
      bodySize: 7,
    },
    response: { httpVersion: 'http/1.1', content: { mimeType: 'application/json', text: '{"done":true}', size: 13 } },
    serverIPAddress: '127.0.0.1',
  });
  expect(entry('/old').response.redirectURL).toBe('/older');
  expect(entry('/broken').response).toMatchObject({ status: 0, _error: expect.stringContaining('net::') as string });
  expect(entry('/dot.gif').response.content.text).toBeUndefined();

  // DevTools itself, with the modules that Chromium ships.
  const devtools = await viewer.newPage();
  await devtools.goto('devtools://devtools/bundled/devtools_app.html', { waitUntil: 'commit' });
  const imported = (await devtools.evaluate(`(async (text) => {
    const har = await import('devtools://devtools/bundled/models/har/har.js');
    const { log } = new har.HARFormat.HARRoot(JSON.parse(text));
    return har.Importer.Importer.requestsFromHARLog(log).map((request) => ({
      url: request.url(),
      line: request.requestMethod + ' ' + request.statusCode,
      type: request.resourceType().name(),
      seconds: request.duration,
    }));
  })(${JSON.stringify(JSON.stringify(found))})`)) as { url: string; line: string; type: string; seconds: number }[];
  await devtools.close();
  expect(imported.map(({ url, line }) => `${line} ${url}`).sort()).toEqual(
    found.log.entries.map(({ request, response }) => `${request.method} ${response.status} ${request.url}`).sort(),
  );
  expect(imported.find(({ url }) => url === `http://${host}/`)).toMatchObject({ type: 'document' });
  expect(imported.every(({ seconds }) => seconds >= 0)).toBe(true);
});

test('the trace opens in the viewer of Playwright, with actions, pictures, console and network', async () => {
  const response = await fetch(`${service.url}/browsers/${id}/telemetry/trace`, {
    headers: { authorization: `Bearer ${service.key}` },
  });
  expect(response.headers.get('content-type')).toBe('application/zip');
  const folder = await mkdtemp(join(tmpdir(), 'corral-trace-'));
  const zip = join(folder, 'trace.zip');
  await writeFile(zip, Buffer.from(await response.arrayBuffer()));
  const cli = join(dirname(createRequire(import.meta.url).resolve('playwright-core/package.json')), 'cli.js');
  const shown = spawn(process.execPath, [cli, 'show-trace', '--host', '127.0.0.1', '--port', '0', zip], {
    env: { ...process.env, PWTEST_UNDER_TEST: '1' }, // opens no browser of its own
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const exited = once(shown, 'exit');
  const page = await viewer.newPage();
  try {
    let said = '';
    let url: string | undefined;
    for await (const piece of shown.stdout) if ((url = /Listening on (\S+)/.exec((said += piece))?.[1])) break;
    await page.goto(url!);
    const actions = page.locator('.action-title, .actions-list .tree-view-entry');
    await expect
      .poll(async () => (await actions.allInnerTexts()).join('\n'), patience)
      .toMatch(new RegExp(`Navigate to "http://${host}/"[\\s\\S]*Click "Buy"`));
    await actions.filter({ hasText: 'Click "Buy"' }).first().click();
    const picture = page.locator('.film-strip-frame, .aria-mode-view img').first();
    await picture.waitFor(patience);
    await page.getByRole('tab', { name: /Network/ }).click();
    await page.getByText('style.css').first().waitFor(patience);
    await page.getByRole('tab', { name: /Console/ }).click();
    await page.getByText('bought').first().waitFor(patience);
  } finally {
    await page.close();
    shown.kill();
    await exited;
    await rm(folder, { recursive: true, force: true });
  }
});

test('the exports are there after the session, and for its own project only', async () => {
  const before = toSite(await har());
  await sdk.browsers.deleteByID(id);
  expect(toSite(await har())).toEqual(before);
  const other = await sdk.projects.create({ name: 'other' });
  const elsewhere = { 'x-kernel-project-id': other.id };
  for (const kind of ['har', 'trace']) {
    const { status, body } = await service.call('GET', `/browsers/${id}/telemetry/${kind}`, undefined, elsewhere);
    expect([status, body.code]).toEqual([404, 'session_not_found']);
  }
});

test('the collector gets the session, its navigation, its API calls and its console as one trace', async () => {
  const named = (name: string) => collector.received.find((one) => one.name === name);
  await expect.poll(() => named('session') && named('bought'), patience).toBeTruthy();
  const session = named('session')!;
  expect(session.attributes).toMatchObject({ 'corral.session.id': id });
  // Spans and records of the log are sent apart, and the record of the same page may come first.
  const spans = collector.received.filter(({ kind }) => kind === 'span');
  const navigation = spans.find(({ attributes }) => attributes['url.full'] === `http://${host}/`);
  expect(navigation).toMatchObject({ name: 'navigation', traceId: session.traceId, parentId: session.spanId });
  expect(named('bought')).toMatchObject({ kind: 'log', traceId: session.traceId, status: 13 });
  expect(collector.headers[0]).toMatchObject({ authorization: 'Bearer collect' });
});
