import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
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

/** The cost of capturing for a page, the event rate of a session, and size and speed of the archive. */
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

/** A way to load the page: the actions before and after. */
interface Way {
  page: Page;
  before(): Promise<unknown>;
  after(): Promise<unknown>;
}

/**
 * All ways of Corral are those of one browser, and both ways of Chromium those of another: two browsers that were started in the same way
 * differed by a seventh. The ways take turns, each begins when the machine is quiet, and every other round goes the other way round.
 */
async function loadTimes(service: Started, site: string): Promise<Row[]> {
  const raw = await rawChromium('port');
  const { session_id: id, cdp_ws_url } = await create(service);
  const [page, rawPage] = [await Page.open(cdp_ws_url), await Page.open(raw.endpoint)];
  const capture = (telemetry: object) => service.call('PATCH', `/browsers/${id}`, { telemetry });
  const plain = (page: Page): Way => ({ page, before: async () => {}, after: async () => {} });
  const listening = (page: Page): Way => ({
    page,
    before: () => page.listenToNetwork(true),
    after: () => page.listenToNetwork(false),
  });
  const ways = {
    off: plain(page),
    on: { page, before: () => capture(everything), after: () => capture({ enabled: false }) },
    // Nothing is captured, but the client hears the same events of Chromium that a capture needs.
    heard: listening(page),
    raw: plain(rawPage),
    rawHeard: listening(rawPage),
  };
  const [full, empty] = [await inTurns(ways, `${site}/page`), await inTurns(ways, `${site}/empty`)];
  await ways.on.before();
  const perSecond = await sustained(service, id, page);
  page.close();
  rawPage.close();
  await raw.stop();
  return [
    { what: 'load of a page with 300 requests, 20 ms away, everything captured', ...beside(full), bar: '≤ 1.15' },
    { what: 'the same with empty answers that are there at once', ...beside(empty) },
    { what: 'console messages a session sustains, archived', value: perSecond, unit: 'events/s' },
  ];
}

async function inTurns<Name extends string>(ways: Record<Name, Way>, url: string): Promise<Record<Name, number>> {
  const names = Object.keys(ways) as Name[];
  const times = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (let round = -1; round < loads; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const { page, before, after } = ways[name];
      await before();
      await quiet();
      const start = performance.now();
      await page.goto(url);
      if (round >= 0) times[name].push(performance.now() - start); // the first load is not like the others
      await quiet(); // bodies and a picture are read after a load
      await after();
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(times[name])])) as Record<Name, number>;
}

/** Resolves when the processors were almost idle for half a second, or after ten seconds on a busy machine. */
async function quiet(): Promise<void> {
  let [calm, before] = [0, processorTimes()];
  for (let look = 0; look < 66 && calm < 3; look++) {
    await sleep(150);
    const now = processorTimes();
    calm = (now.busy - before.busy) / (now.all - before.all) < 0.12 ? calm + 1 : 0;
    before = now;
  }
}

function processorTimes(): { busy: number; all: number } {
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  const cores = cpus().map(({ times }) => times);
  const all = sum(cores.flatMap((times) => Object.values(times)));
  return { busy: all - sum(cores.map(({ idle }) => idle)), all };
}

function beside({ off, on, heard, raw, rawHeard }: Record<'off' | 'on' | 'heard' | 'raw' | 'rawHeard', number>) {
  const ratio = (of: number, to: number) => (of / to).toFixed(2);
  return {
    value: on,
    unit: 'ms',
    ratio: on / off,
    beside: `nothing captured (${ratio(heard, off)} × if only the client hears Network events; ${ratio(rawHeard, raw)} × in Chromium alone)`,
  };
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
