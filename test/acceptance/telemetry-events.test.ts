import type Kernel from '@onkernel/sdk';
import { once } from 'node:events';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { killBrowser } from '../support/kill-browser.ts';
import { RawClient } from '../support/mux-server.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Service } from '../support/service.ts';

let pages: Pages;
let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  pages = await startPages();
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: pages.host });
  sdk = service.sdk();
});
afterAll(async () => {
  await service?.close();
  await pages?.close();
});

type Envelope = Kernel.Browsers.TelemetryEventsResponse;
const on = { enabled: true };
const off = { enabled: false };
const patience = { timeout: 60_000 };

const create = (telemetry?: Kernel.BrowserCreateParams['telemetry']) =>
  sdk.browsers.create({ headless: true, timeout_seconds: 300, ...(telemetry === undefined ? {} : { telemetry }) });

async function eventsOf(id: string, query: Kernel.Browsers.TelemetryEventsParams = {}): Promise<Envelope[]> {
  const found: Envelope[] = [];
  for await (const event of sdk.browsers.telemetry.events(id, { limit: 100, ...query })) found.push(event);
  return found;
}
const typesOf = async (id: string) => (await eventsOf(id)).map(({ event }) => event.type);

/** The categories that are on, as a reply names them. */
const captured = ({ telemetry }: { telemetry?: Kernel.BrowserCreateResponse['telemetry'] }) =>
  telemetry &&
  Object.entries(telemetry.browser ?? {})
    .filter(([, { enabled }]) => enabled)
    .map(([name]) => name);

describe('the capture', () => {
  test('is returned by create, get, update and list, and follows each update', async () => {
    const plain = await create();
    expect(plain.telemetry).toBeNull();
    await sdk.browsers.deleteByID(plain.session_id);

    const session = await create({ browser: { control: on, system: off, connection: off, captcha: off } });
    const { session_id: id } = session;
    expect(captured(session)).toEqual(['control']);
    expect(captured(await sdk.browsers.retrieve(id))).toEqual(['control']);
    const update = async (telemetry: Kernel.BrowserUpdateParams['telemetry']) =>
      captured(await sdk.browsers.update(id, { telemetry }));
    expect(await update({ browser: { system: on } })).toEqual(['control', 'system']);
    expect(await update({})).toEqual(['control', 'system']);
    expect(await update(null)).toEqual(['control', 'system']);
    expect(await update({ enabled: true, browser: { captcha: off } })).toEqual(['control', 'connection', 'system']);
    expect(await update({ enabled: false })).toBeNull();
    for await (const listed of sdk.browsers.list()) expect(listed.telemetry).toBeNull();
    await sdk.browsers.deleteByID(id);
  });

  test.each([
    [{ enabled: false, browser: { console: on } }, 'telemetry.browser.console'],
    [{ browser: { consoles: on } }, 'telemetry.browser.consoles'],
    [{ browser: { monitor: on } }, 'telemetry.browser.monitor'],
    [{ browser: { console: { enabled: 'yes' } } }, 'telemetry.browser.console.enabled'],
    [{ export: {} }, 'telemetry.export'],
  ])('%j is refused, and the field is named', async (telemetry, field) => {
    const refused = { status: 400, body: { code: 'invalid_input', message: expect.stringContaining(field) } };
    expect(await service.call('POST', '/browsers', { headless: true, telemetry })).toMatchObject(refused);
    expect(await service.call('POST', '/browser_pools', { size: 1, headless: true, telemetry })).toMatchObject(refused);
  });

  test('of a lease combines those of its pool and of its acquire, and ends with it', async () => {
    const pool = await sdk.browserPools.create({
      size: 1,
      headless: true,
      telemetry: { browser: { control: on, connection: on, system: off, captcha: off } },
    });
    const baseline = ['control', 'connection'];
    expect(captured(pool.browser_pool_config)).toEqual(baseline);
    const renewed = await sdk.browserPools.update(pool.id, { telemetry: { browser: { control: off } } });
    expect(captured(renewed.browser_pool_config)).toEqual(['connection']);

    const lease = await sdk.browserPools.acquire(pool.id, { telemetry: { browser: { system: on } } });
    expect(captured(lease)).toEqual(['connection', 'system']);
    const stream = await sdk.browsers.telemetry.stream(lease.session_id);
    const client = await RawClient.open(lease.cdp_ws_url);
    await expect.poll(() => typesOf(lease.session_id), patience).toContain('cdp_connect');
    await sdk.browserPools.release(pool.id, { session_id: lease.session_id });
    const seen: string[] = [];
    for await (const { event } of stream) seen.push(event.type); // ends with the lease
    expect(seen[0]).toBe('cdp_connect');
    client.socket.close();

    const next = await sdk.browserPools.acquire(pool.id, {});
    expect(captured(next)).toEqual(['connection']);
    const stopped = await sdk.browserPools.update(pool.id, { telemetry: { enabled: false } });
    expect(stopped.browser_pool_config.telemetry).toBeUndefined();
    await sdk.browserPools.delete(pool.id, { force: true });
  });
});

test('requests, clients and viewers of a session are reported, live and afterwards', async () => {
  const session = await create({ enabled: true });
  const { session_id: id } = session;
  const { body: project } = await service.call('POST', '/org/projects', { name: 'Telemetry of others' });
  const theirs = { 'X-Kernel-Project-Id': project.id };
  const stream = await sdk.browsers.telemetry.stream(id, { replay: 'all' });
  const live: Envelope[] = [];
  const ended = (async () => {
    for await (const event of stream) live.push(event);
  })();

  await sdk.browsers.computer.captureScreenshot(id);
  await service.call('POST', `/browsers/${id}/computer/click_mouse`, { x: 'left' });
  await service.call('GET', `/browsers/${id}`, undefined, theirs); // of another project: no event
  await (await fetch(`${session.base_url}/curl/raw?url=${encodeURIComponent(pages.url)}`)).text();
  const client = await RawClient.open(session.cdp_ws_url);
  await client.ask('Browser.getVersion');
  client.socket.close();
  const viewer = new WebSocket(
    session.browser_live_view_url!.replace(/^http/, 'ws').replace('/live?', '/live/socket?'),
  );
  await once(viewer, 'open');
  viewer.close();
  const seen = () => live.map(({ event }) => event.type);
  await expect.poll(seen, patience).toEqual(expect.arrayContaining(['cdp_disconnect', 'live_view_disconnect']));
  await expect.poll(() => seen().filter((type) => type === 'api_call').length, patience).toBe(3);

  await sdk.browsers.deleteByID(id);
  await ended;
  const archived = await eventsOf(id);
  expect(archived).toEqual(live);
  expect(archived.map(({ seq }) => seq)).toEqual(archived.map((_, index) => index + 1));
  const calls = archived.flatMap(({ event }) => (event.type === 'api_call' ? [event.data!] : []));
  // The request that deletes a session is not among them, however long its answer takes.
  expect(calls).toMatchObject([
    { operation_id: 'takeScreenshot', status: 200 },
    { operation_id: 'clickMouse', status: 400 },
    { operation_id: 'browserCurlRaw', status: 200 },
  ]);
  for (const { request_id } of calls) expect(request_id).toMatch(/^req_/);
  const connections = archived.filter(({ event }) => event.category === 'connection').map(({ event }) => event);
  const of = (type: string) => connections.find((event) => event.type === type);
  expect(connections).toHaveLength(4);
  expect(of('cdp_connect')).toMatchObject({ source: { kind: 'kernel_api' } });
  expect(of('cdp_disconnect')).toMatchObject({ data: { reason: 'client_close', message_count: 2 } });
  expect(of('live_view_disconnect')).toMatchObject({
    data: { session_id: (of('live_view_connect') as { data: { session_id: string } }).data.session_id },
  });

  expect((await service.call('GET', `/browsers/${id}/telemetry/events`, undefined, theirs)).status).toBe(404);
  expect((await service.call('GET', `/browsers/${id}/telemetry/stream`)).status).toBe(404);
  expect((await eventsOf(id, { order: 'desc', limit: 1 })).map(({ seq }) => seq)).toEqual(
    archived.map(({ seq }) => seq).toReversed(),
  );
});

test('page events are captured from the first request on, and continue in another browser after a crash', async () => {
  const { session_id: id } = await sdk.browsers.create({
    headless: true,
    timeout_seconds: 300,
    start_url: pages.url,
    telemetry: { browser: { network: on, page: on, console: on } },
  });
  await expect.poll(() => typesOf(id), patience).toContain('page_load');
  const requests = async () =>
    (await eventsOf(id, { category: ['network'] })).flatMap(({ event }) =>
      event.type === 'network_request' ? [event.data?.url] : [],
    );
  expect(await requests()).toContain(pages.url);
  await killBrowser(service, id);
  await expect.poll(() => typesOf(id), patience).toContain('monitor_reconnected');
  const before = (await requests()).length;
  const { cdp_ws_url } = await sdk.browsers.retrieve(id);
  const browser = await chromium.connectOverCDP(cdp_ws_url);
  await browser.contexts()[0]!.pages()[0]!.goto(pages.url);
  await browser.close();
  await expect.poll(async () => (await requests()).length, patience).toBeGreaterThan(before);
  await sdk.browsers.deleteByID(id);
});

test('a crash of the browser is reported, and a stream resumes after it where its reader left', async () => {
  const { session_id: id } = await create({ browser: { connection: off } });
  await killBrowser(service, id);
  await expect.poll(() => typesOf(id), patience).toContain('service_crashed');
  const [crash] = await eventsOf(id, { category: ['system'] });
  expect(crash!.event).toMatchObject({ data: { service_name: 'chromium', phase: 'running' } });
  await sdk.browsers.retrieve(id);
  await expect.poll(async () => (await eventsOf(id)).length, patience).toBeGreaterThan(crash!.seq);

  const response = await fetch(`${service.url}/browsers/${id}/telemetry/stream`, {
    headers: { authorization: `Bearer ${service.key}`, 'Last-Event-ID': String(crash!.seq) },
  });
  expect(response.headers.get('x-sse-content-type')).toBe('application/json');
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let received = '';
  for (let part = await reader.read(); !part.done; part = await reader.read())
    if ((received += part.value).includes('data: {"seq":')) break;
  expect(received).toMatch(new RegExp(`^(: .*\n\n)*id: ${crash!.seq + 1}\ndata: \\{"seq":${crash!.seq + 1},`));
  await reader.cancel();
  await sdk.browsers.deleteByID(id);
});

test('a question that cannot be answered is refused, and its field is named', async () => {
  const { session_id: id } = await create();
  const questions = {
    'events?category=consoles': 'category',
    'events?limit=101': 'limit',
    'events?since=yesterday': 'since',
    'events?order=desc&since=5m': 'since',
    'events?order=sideways': 'order',
    'events?offset=77': 'offset',
    'stream?replay=some': 'replay',
  };
  for (const [path, field] of Object.entries(questions))
    expect(await service.call('GET', `/browsers/${id}/telemetry/${path}`), path).toMatchObject({
      status: 400,
      body: { code: 'invalid_input', message: expect.stringContaining(field) },
    });
  await sdk.browsers.deleteByID(id);
});
