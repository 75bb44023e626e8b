import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { tree } from '../src/chromium/sandbox/process-tree.ts';
import { startPages } from '../test/support/pages.ts';
import { rawChromium } from '../test/support/raw-chromium.ts';
import { Page } from './page.ts';
import { corral, playwrightServer, processorMs, rawLifecycle, residentMb, type Lifecycle } from './peers.ts';
import { lifecyclePicture } from './picture.ts';
import { median, percentile, type Row } from './rows.ts';

/** How many lifecycles the picture shows; a peer that is not in it gets a fifth of them. */
const turns = Number(process.env['BENCH_TURNS'] ?? 200);
const bars = { warm: 60, cold: 250 };
const atOnce = 8;
const many = 20;
const standing = 10;
const standbyMs = 20_000;

type Corral = Awaited<ReturnType<typeof corral>>;
type PlaywrightServer = Awaited<ReturnType<typeof playwrightServer>>;

/**
 * Starts, lifecycles and memory of sessions. Service, browsers and peers are separate processes. They take turns, one lifecycle each, so
 * that other load of the machine affects all of them.
 */
export async function benchSessions(): Promise<Row[]> {
  const undo: (() => Promise<unknown>)[] = [];
  async function start<T extends { stop(): Promise<unknown> }>(starting: Promise<T>): Promise<T> {
    const thing = await starting;
    undo.push(() => thing.stop());
    return thing;
  }
  async function startCorral(settings: Record<string, string>): Promise<Corral> {
    const dir = await mkdtemp(join(tmpdir(), 'corral-bench-'));
    undo.push(() => rm(dir, { recursive: true, force: true }));
    return start(corral(dir, settings));
  }

  try {
    const pages = await startPages();
    undo.push(() => pages.close());
    const allowed = { CORRAL_ALLOW_PRIVATE_HOSTS: pages.host };
    const warm = await startCorral({ ...allowed, CORRAL_WARM_SPARES: `headless:${atOnce},headful:1` }); // as it comes with 20 GiB or more
    const cold = await startCorral({ ...allowed, CORRAL_WARM_SPARES: 'off' });
    const server = await start(playwrightServer());
    return [
      ...(await memoryWhenIdle(warm, server)),
      ...(await oneAtATime({ warm, cold, server }, pages.url)),
      ...(await severalAtOnce({ warm, cold, server }, pages.url)),
      ...(await memoryInUse(warm, server, pages.url)),
      ...(await standby(cold, server, pages.url)),
    ];
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

interface Sides {
  warm: Corral;
  cold: Corral;
  server: PlaywrightServer;
}

const refilled = async (service: Corral) => {
  await service.until('corral_spares_headless', atOnce);
  await service.until('corral_spares_headful', 1);
};

/** Create → connect → goto → delete, and the picture of it. */
async function oneAtATime({ warm, cold, server }: Sides, url: string): Promise<Row[]> {
  const sides: { [name: string]: { life: Lifecycle; every: number; spare?: true; times: number[] } } = {
    warm: { life: warm.raw, every: 1, spare: true, times: [] },
    cold: { life: cold.raw, every: 1, times: [] },
    raw: { life: rawLifecycle, every: 1, times: [] },
    server: { life: server.lifecycle, every: 5, times: [] },
    'warm, Playwright': { life: warm.playwright, every: 5, spare: true, times: [] },
    'warm, Puppeteer': { life: warm.puppeteer, every: 5, spare: true, times: [] },
    'cold, Playwright': { life: cold.playwright, every: 5, times: [] },
    'cold, Puppeteer': { life: cold.puppeteer, every: 5, times: [] },
  };
  const load = loadavg()[0]!;
  for (let turn = -2; turn < turns; turn++) {
    if (turn > 0 && turn % 20 === 0) process.stderr.write(`  ${turn} of ${turns} lifecycles\n`);
    for (const { life, every, spare, times } of Object.values(sides)) {
      if (turn >= 0 && turn % every !== 0) continue;
      if (spare) await refilled(warm);
      const began = performance.now();
      await life(url);
      if (turn >= 0) times.push(performance.now() - began); // the first two warm up
      await refilled(warm); // or the refill would slow down the next measurement
    }
  }
  const of = (name: string) => median(sides[name]!.times);
  const beside = (value: number) =>
    `${(value / of('raw')).toFixed(2)} × raw Chromium (${of('raw').toFixed(0)} ms), ${(value / of('server')).toFixed(2)} × playwright run-server (${of('server').toFixed(0)} ms)`;
  await draw(sides['warm']!.times, sides['cold']!.times, sides['raw']!.times, load);

  return (['warm', 'cold'] as const).flatMap((kind) =>
    ['', ', Playwright', ', Puppeteer'].map((client) => ({
      what: `create → connect → goto → delete, ${kind}${client || ', raw CDP'}`,
      value: of(`${kind}${client}`),
      unit: 'ms',
      beside: beside(of(`${kind}${client}`)),
      ...(client === '' ? { bar: `under ${bars[kind]} ms` } : {}),
    })),
  );
}

async function draw(warm: number[], cold: number[], raw: number[], load: number): Promise<void> {
  const picture = lifecyclePicture(
    'Time to create a session, load a page and delete the session',
    `create → CDP connect → goto → delete; ${cpus().length} cores, load ${load.toFixed(1)} at the start; lines are medians`,
    [
      { name: 'cold', colour: '#b4540a', values: cold, median: median(cold), bar: bars.cold },
      { name: 'raw Chromium', colour: '#6b7480', values: raw, median: median(raw) },
      { name: 'warm', colour: '#0b6bcb', values: warm, median: median(warm), bar: bars.warm },
    ],
  );
  const out = join(import.meta.dirname, 'out');
  await mkdir(out, { recursive: true });
  await writeFile(join(out, 'lifecycles.svg'), picture);
}

/** The same, eight at a time: how long the slow ones take, as a multiple of one alone in the same state of the machine. */
async function severalAtOnce({ warm, cold, server }: Sides, url: string): Promise<Row[]> {
  const sides = [
    { name: 'warm', life: warm.raw, spare: true },
    { name: 'cold', life: cold.raw },
    { name: 'raw Chromium', life: rawLifecycle },
    { name: 'playwright run-server', life: server.lifecycle },
  ].map((side) => ({ ...side, alone: [] as number[], crowded: [] as number[] }));
  const timed = async (life: Lifecycle, times: number[]) => {
    const began = performance.now();
    await life(url);
    times.push(performance.now() - began);
  };
  for (let round = 0; round < Math.max(3, turns / 25); round++) {
    for (const { life, alone, crowded, spare } of sides) {
      for (let i = 0; i < 3; i++) {
        if (spare) await refilled(warm);
        await timed(life, alone);
      }
      if (spare) await refilled(warm);
      await Promise.all(Array.from({ length: atOnce }, () => timed(life, crowded)));
      await refilled(warm);
    }
  }
  const factor = ({ alone, crowded }: (typeof sides)[number]) => percentile(crowded, 95) / median(alone);
  const peers = sides.slice(2).map((side) => `${side.name}: ${factor(side).toFixed(1)} ×`);
  return sides.slice(0, 2).map((side) => ({
    what: `the same, ${atOnce} at a time, ${side.name}, p95 of ${side.crowded.length}, all answered`,
    value: percentile(side.crowded, 95),
    unit: 'ms',
    ratio: factor(side),
    beside: `one alone (${median(side.alone).toFixed(0)} ms); ${peers.join(', ')}`,
    bar: `under ${atOnce} ×`,
  }));
}

async function memoryWhenIdle(service: Corral, server: PlaywrightServer): Promise<Row[]> {
  await refilled(service);
  await sleep(2000);
  return [
    {
      what: 'memory of the service, idle',
      value: residentMb(service.pid),
      unit: 'MB',
      beside: `playwright run-server: ${residentMb(server.pid).toFixed(0)} MB`,
      bar: 'under 150 MB',
    },
  ];
}

async function memoryInUse(service: Corral, server: PlaywrightServer, url: string): Promise<Row[]> {
  const sessions: { id: string; page: Page }[] = [];
  const others: Awaited<ReturnType<PlaywrightServer['open']>>[] = [];
  try {
    for (let i = 0; i < many; i++) {
      const { session_id: id, cdp_ws_url: address } = await service.create();
      const page = await Page.open(address);
      await page.goto(url);
      sessions.push({ id, page });
    }
    await sleep(2000);
    const ours = residentMb(service.pid);
    await Promise.all(sessions.splice(0).map(({ id, page }) => (page.close(), service.remove(id))));
    for (let i = 0; i < many; i++) others.push(await server.open(url));
    await sleep(2000);
    return [
      {
        what: `memory of the service with ${many} sessions, after all of the above`,
        value: ours,
        unit: 'MB',
        beside: `playwright run-server: ${residentMb(server.pid).toFixed(0)} MB`,
        bar: 'under 250 MB',
      },
    ];
  } finally {
    for (const { id, page } of sessions) {
      page.close();
      await service.remove(id);
    }
    for (const browser of others) await browser.close();
  }
}

/** Ten idle sessions, each with a page, beside as many browsers that are just left open. */
async function standby(service: Corral, server: PlaywrightServer, url: string): Promise<Row[]> {
  const ids: string[] = [];
  for (let i = 0; i < standing; i++) {
    const { session_id: id, cdp_ws_url: address } = await service.create();
    const page = await Page.open(address);
    await page.goto(url);
    page.close();
    ids.push(id);
  }
  await service.until('corral_sessions_standby', standing);
  const ours = await share([service.pid]);
  for (const id of ids) await service.remove(id);

  const raws = await Promise.all(Array.from({ length: standing }, () => rawChromium('port')));
  for (const { endpoint } of raws) {
    const page = await Page.open(endpoint);
    await page.goto(url);
    page.close();
  }
  const raw = await share(raws.map(({ process }) => process.pid!));
  for (const browser of raws) await browser.stop();

  const others = [];
  for (let i = 0; i < standing; i++) others.push(await server.open(url));
  const theirs = await share([server.pid]);
  for (const browser of others) await browser.close();
  return [
    {
      what: `processor for ${standing} sessions on standby: service, database and browsers`,
      value: ours,
      unit: '% of a core',
      beside: `open and unused: raw Chromium ${raw.toFixed(1)} %, playwright run-server ${theirs.toFixed(1)} %`,
      bar: 'under 1 %',
    },
  ];
}

/** What these processes and everything below them take of one core, in percent. */
async function share(leaders: number[]): Promise<number> {
  const before = [...new Set(leaders.flatMap(tree))].map((pid) => ({ pid, ms: processorMs(pid) ?? 0 }));
  await sleep(standbyMs);
  const used = before.map(({ pid, ms }) => (processorMs(pid) ?? ms) - ms);
  return (used.reduce((sum, ms) => sum + ms, 0) / standbyMs) * 100;
}
