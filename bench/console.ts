import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser as Viewers } from 'playwright-core';
import { tree } from '../src/chromium/sandbox/process-tree.ts';
import { silent } from '../src/lib/log.ts';
import { visitStore } from '../src/store/open.ts';
import { sql } from '../src/store/sql.ts';
import { viewers } from '../test/support/live-view.ts';
import { startPages } from '../test/support/pages.ts';
import { Page } from './page.ts';
import { corral, processorMs } from './peers.ts';
import { median, type Row } from './rows.ts';

const loads = Number(process.env['BENCH_TURNS'] ?? 10);
const many = 1000;
const tiles = 20;
const watchMs = 20_000;

type Corral = Awaited<ReturnType<typeof corral>>;

/** The first thing that a person can use on each screen: a session to click on, or the text of an empty list. */
const screens = {
  overview: { path: '/console', empty: '.snippet', full: '[aria-label="Newest sessions"] a' },
  sessions: { path: '/console/sessions', empty: '.snippet', full: '[aria-label="Sessions"] a' },
};

/** The load time of the console, and the cost of its wall of pictures for the service. */
export async function benchConsole(): Promise<Row[]> {
  const dir = await mkdtemp(join(tmpdir(), 'corral-bench-'));
  const pages = await startPages();
  const looking = await viewers();
  const service = await corral(dir, {
    CORRAL_ALLOW_PRIVATE_HOSTS: pages.host,
    CORRAL_WARM_SPARES: 'off',
    CORRAL_MAX_SESSIONS: String(tiles),
  });
  try {
    return [
      ...(await wall(service, looking.browser, pages.url)),
      ...(await firstScreens(service, looking.browser, 0)),
      ...(await withRows(dir, () => firstScreens(service, looking.browser, many))),
    ];
  } finally {
    await service.stop();
    await looking.stop();
    await pages.close();
    await rm(dir, { recursive: true, force: true });
  }
}

/**
 * Running sessions of this node that are only rows. They are inserted into the database of this service, because a thousand browsers fit no
 * machine that this runs on. The console lists rows, so it shows them as sessions.
 */
async function withRows(dataDir: string, measure: () => Promise<Row[]>): Promise<Row[]> {
  const store = await visitStore({ dataDir, databaseUrl: '', log: silent });
  try {
    await store.db
      .rows(sql`insert into sessions (id, project_id, node_id, state, name, tags, headless, stealth, gpu, kiosk_mode,
        timeout_seconds, viewport_width, viewport_height, start_url, awake_since)
      select 'bench' || n, p.id, (select id from nodes limit 1), 'live', 'agent ' || n, '{"team": "bench", "env": "test"}', true, false,
        false, false, 3600, 1280, 720, 'https://shop.example/orders/' || n, now()
      from projects p, generate_series(1, ${many}::integer) n where p.is_default`);
    const rows = await measure();
    await store.db.rows(sql`delete from sessions where id like 'bench%'`);
    return rows;
  } finally {
    await store.close();
  }
}

/** Each screen in a browser that has never seen the service, in turns with the service's shortest answer in the same browser. */
async function firstScreens(service: Corral, browser: Viewers, sessions: number): Promise<Row[]> {
  const times: Record<string, number[]> = { raw: [], overview: [], sessions: [] };
  for (let turn = -1; turn < loads; turn++) {
    for (const [name, list] of Object.entries(times)) {
      const screen = name === 'raw' ? undefined : screens[name as keyof typeof screens];
      const selector = screen ? (sessions === 0 ? screen.empty : screen.full) : 'body';
      const took = await timeTo(service, browser, screen?.path ?? '/health', selector);
      if (turn >= 0) list.push(took); // the first warms up
    }
  }
  const raw = median(times['raw']!);
  return Object.keys(screens).map((name) => ({
    what: `${name === 'overview' ? 'the overview' : 'the list of sessions'}, with ${sessions} sessions`,
    value: median(times[name]!),
    unit: 'ms',
    beside: `slowest ${Math.max(...times[name]!).toFixed(0)} ms, of ${loads}; raw Chromium with GET /health ${raw.toFixed(0)} ms`,
  }));
}

/** Milliseconds from the begin of the navigation to the frame that shows an element. */
async function timeTo({ url, key }: Corral, browser: Viewers, path: string, selector: string): Promise<number> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  try {
    await context.addInitScript(
      `if (location.pathname.startsWith('/console')) sessionStorage.setItem('corral.identity', ${JSON.stringify(JSON.stringify({ key }))});
      (function look() {
        if (!document.querySelector(${JSON.stringify(selector)})) return requestAnimationFrame(look);
        requestAnimationFrame(() => (document.documentElement.dataset.shownAt = performance.now()));
      })()`,
    );
    const page = await context.newPage();
    await page.goto(url + path);
    // The console's policy lets no string be evaluated in the page, so it is an attribute that is waited for.
    const shown = page.locator('html[data-shown-at]');
    await shown.waitFor({ state: 'attached', timeout: 120_000 });
    return Number(await shown.getAttribute('data-shown-at'));
  } finally {
    await context.close();
  }
}

/** Sessions in use, so that none is in standby, with and without a viewer. */
async function wall(service: Corral, browser: Viewers, url: string): Promise<Row[]> {
  const ids: string[] = [];
  const used: Page[] = [];
  try {
    for (let n = 0; n < tiles; n++) {
      const { session_id: id, cdp_ws_url: address } = await service.create();
      ids.push(id);
      const page = await Page.open(address);
      used.push(page);
      await page.goto(url);
    }
    const alone = await share(service.pid);
    const context = await browser.newContext({ viewport: { width: 1600, height: 1400 } });
    await context.addInitScript(
      `sessionStorage.setItem('corral.identity', ${JSON.stringify(JSON.stringify({ key: service.key }))})`,
    );
    const page = await context.newPage();
    await page.goto(`${service.url}/console/sessions?wall=true`);
    await page
      .locator('.wall img')
      .nth(tiles - 1)
      .waitFor({ timeout: 120_000 });
    const watched = await share(service.pid);
    await context.close();
    const of = (what: string, value: number, before: number): Row => ({
      what: `${what}, the wall of ${tiles} thumbnails open`,
      value,
      unit: '% of a core',
      beside: `without it ${before.toFixed(1)} %`,
    });
    return [
      of('the service', watched.service, alone.service),
      of('the service, its database and all browsers', watched.all, alone.all),
    ];
  } finally {
    for (const page of used) page.close();
    for (const id of ids) await service.remove(id);
  }
}

/** What the service, and the service with everything below it, take of one core, in per cent. */
async function share(leader: number): Promise<{ service: number; all: number }> {
  const before = tree(leader).map((pid) => ({ pid, ms: processorMs(pid) ?? 0 }));
  const began = performance.now();
  await sleep(watchMs);
  const used = before.map(({ pid, ms }) => ({ pid, ms: (processorMs(pid) ?? ms) - ms }));
  const per = 100 / (performance.now() - began);
  const all = used.reduce((sum, { ms }) => sum + ms, 0) * per;
  return { service: (used.find(({ pid }) => pid === leader)?.ms ?? 0) * per, all };
}
