import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { sql } from '../src/store/sql.ts';
import { rawChromium } from '../test/support/raw-chromium.ts';
import { startService, type Service } from '../test/support/service.ts';
import { Page } from './page.ts';
import { corral, residentMb } from './peers.ts';
import { median, type Row } from './rows.ts';

const loads = 20;
/** After each load: bodies and a picture are read then, and would slow down the next one. The others wait as long. */
const restMs = 1000;
const capturingSessions = 20;
const million = Number(process.env['BENCH_EVENTS'] ?? 1_000_000);
const on = { enabled: true };
const everything = {
  browser: {
    console: on,
    page: on,
    interaction: on,
    network: on,
    control: on,
    connection: on,
    system: on,
    screenshot: on,
    captcha: on,
  },
};

/** What capturing costs a page, what a session sustains, and how the archive grows and answers. */
export async function benchTelemetry(): Promise<Row[]> {
  const site = new Worker(new URL('many-requests.ts', import.meta.url));
  const [port] = (await once(site, 'message')) as [number];
  const host = `127.0.0.1:${port}`;
  try {
    const rows = await inItsProcess(host);
    const service = await startService({ CORRAL_LOG_LEVEL: 'warn' });
    try {
      return [...rows, ...(await archive(service))];
    } finally {
      await service.close();
    }
  } finally {
    await site.terminate();
  }
}

/** The service is a process of its own here, as users start it. */
async function inItsProcess(host: string): Promise<Row[]> {
  const dir = await mkdtemp(join(tmpdir(), 'corral-bench-'));
  const service = await corral(dir, { CORRAL_ALLOW_PRIVATE_HOSTS: host, CORRAL_WARM_SPARES: 'off' });
  try {
    const rows = await loadTimes(service, `http://${host}`);
    return [...rows, await memory(service, `http://${host}/empty`)];
  } finally {
    await service.stop();
    await rm(dir, { recursive: true, force: true });
  }
}

type Started = Awaited<ReturnType<typeof corral>>;

async function create({ call }: Started, telemetry?: object): Promise<{ session_id: string; cdp_ws_url: string }> {
  return JSON.parse(await call('POST', '/browsers', { headless: true, timeout_seconds: 3600, telemetry }));
}

async function timed(page: Page, url: string): Promise<number> {
  const start = performance.now();
  await page.goto(url);
  return performance.now() - start;
}

/**
 * Those that are compared take turns, so that a busy machine is busy for all of them. Every other round goes the other way, so that
 * none always comes after the same.
 */
async function loadTimes(service: Started, site: string): Promise<Row[]> {
  const raw = [await rawChromium('port'), await rawChromium('port')];
  const watched = await create(service, everything);
  const sides = {
    off: await Page.open((await create(service)).cdp_ws_url),
    on: await Page.open(watched.cdp_ws_url),
    heard: await Page.open((await create(service)).cdp_ws_url),
    raw: await Page.open(raw[0]!.endpoint),
    listening: await Page.open(raw[1]!.endpoint),
  };
  // Nothing is captured, but the client hears the same events of Chromium that a capture needs.
  await sides.heard.listenToNetwork();
  await sides.listening.listenToNetwork();
  const names = Object.keys(sides) as (keyof typeof sides)[];
  const measure = async (path: string) => {
    const times = { off: [], on: [], heard: [], raw: [], listening: [] } as Record<keyof typeof sides, number[]>;
    for (let round = -1; round < loads; round++) {
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const took = await timed(sides[name], site + path);
        if (round >= 0) times[name].push(took); // the first load is not like the others
        await sleep(restMs);
      }
    }
    const [value, off] = [median(times.on), median(times.off)];
    return {
      value,
      ratio: value / off,
      heard: median(times.heard) / off,
      ofChromium: median(times.listening) / median(times.raw),
    };
  };
  const [page, empty] = [await measure('/page'), await measure('/empty')];
  const perSecond = await sustained(service, watched.session_id, sides.on);
  for (const side of Object.values(sides)) side.close();
  for (const browser of raw) await browser.stop();
  const chromium = ({ heard, ofChromium }: { heard: number; ofChromium: number }) =>
    `nothing captured (${heard.toFixed(2)} × if only the client hears Network events; ${ofChromium.toFixed(2)} × in Chromium alone)`;
  return [
    {
      what: 'load of a page with 300 requests, 20 ms away, everything captured',
      value: page.value,
      unit: 'ms',
      ratio: page.ratio,
      beside: chromium(page),
      bar: '≤ 1.15',
    },
    {
      what: 'the same with empty answers that are there at once',
      value: empty.value,
      unit: 'ms',
      ratio: empty.ratio,
      beside: chromium(empty),
    },
    { what: 'console messages a session sustains, archived', value: perSecond, unit: 'events/s' },
  ];
}

async function sustained(service: Started, id: string, page: Page): Promise<number> {
  const said = 20_000;
  const started = performance.now();
  await page.evaluate(`for (let n = 0; n < ${said}; n++) console.log('message ' + n)`);
  let seen = 0;
  while (seen < said && performance.now() - started < 120_000) {
    const events = await service.call('GET', `/browsers/${id}/telemetry/events?category=console&order=desc&limit=1`);
    seen = Number(/message (\d+)/.exec(events)?.[1] ?? -1) + 1;
  }
  return seen / ((performance.now() - started) / 1000);
}

async function archive(service: Service): Promise<Row[]> {
  const { session_id: id } = await service.sdk().browsers.create({ headless: true, telemetry: { enabled: true } });
  const projectId = (await service.call('GET', '/org/projects')).body[0].id as string;
  const { telemetry, store } = service.app;
  const journal = telemetry.capturing(id, projectId)!;
  for (let n = 0; n < million; n++) {
    const data = { request_id: `req_${n}`, operation_id: 'browserCurl', status: 200, duration_ms: n % 1000 };
    journal.add({ ts: Date.now() * 1000, type: 'api_call', category: 'control', source: { kind: 'kernel_api' }, data });
    if (n % 2000 === 0) await telemetry.page(id, { limit: 1, order: 'desc' }); // waits until they are written
  }
  const answers: number[] = [];
  for (let n = 0; n < 20; n++) {
    const start = performance.now();
    const { status, body } = await service.call('GET', `/browsers/${id}/telemetry/events?order=desc&limit=100`);
    answers.push(performance.now() - start);
    if (status !== 200 || body.length !== 100) throw new Error(`The archive answered ${status}.`);
  }
  const bytes = await store.db.row<{ bytes: string }>(
    sql`select coalesce(sum(octet_length(packed)), 0) as bytes from telemetry_chunks where session_id = ${id}`,
  );
  return [
    { what: 'an event in the archive (API calls)', value: Number(bytes!.bytes) / million, unit: 'bytes' },
    { what: 'the last 100 of a million events', value: median(answers), unit: 'ms' },
  ];
}

/** Each session loads a page twice and keeps it open. */
async function memory(service: Started, url: string): Promise<Row> {
  for (let n = 0; n < capturingSessions; n++) {
    const page = await Page.open((await create(service, everything)).cdp_ws_url);
    for (let load = 0; load < 2; load++) await page.goto(url);
  }
  await sleep(2000);
  return {
    what: `memory of the service with ${capturingSessions} capturing sessions`,
    value: residentMb(service.pid),
    unit: 'MB',
    bar: '≤ 250',
  };
}
