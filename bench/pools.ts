import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../test/support/random.ts';
import { Page } from './page.ts';
import { corral } from './peers.ts';
import { median, percentile, type Row } from './rows.ts';

const clients = 50;
const size = 10;
/** The average time of a lease: of clients that only take and release it, and of clients that use it. */
const holdMs = { unused: 50, used: 5000 };
const seconds = Number(process.env['BENCH_POOL_SECONDS'] ?? 30);
const swaps = 15;
/** The default number of a node of that size. */
const spares = 8;

type Corral = Awaited<ReturnType<typeof corral>>;

/** Acquiring and releasing. The service is a process of its own, as users start it; the clients are here. */
export async function benchPools(): Promise<Row[]> {
  const undo: (() => Promise<unknown>)[] = [];
  async function start(settings: Record<string, string>): Promise<Corral> {
    const dir = await mkdtemp(join(tmpdir(), 'corral-bench-'));
    undo.push(() => rm(dir, { recursive: true, force: true }));
    const service = await corral(dir, { CORRAL_MAX_SESSIONS: String(5 * spares), ...settings });
    undo.push(() => service.stop());
    return service;
  }
  try {
    const rows = await oneBrowser(await start({}), await start({ CORRAL_WARM_SPARES: 'off' }));
    const service = await start({});
    return [...rows, ...(await crowd(service, 'unused')), ...(await crowd(service, 'used'))];
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

interface Lease {
  session_id: string;
  cdp_ws_url: string;
}

interface Pool {
  acquire(): Promise<Lease>;
  release(lease: Lease, reuse?: boolean): Promise<unknown>;
  full(): Promise<void>;
  remove(): Promise<unknown>;
}

async function poolOf({ call }: Corral, count: number): Promise<Pool> {
  const { id } = JSON.parse(await call('POST', '/browser_pools', { size: count, headless: true })) as { id: string };
  const path = `/browser_pools/${id}`;
  const pool = {
    async acquire(): Promise<Lease> {
      for (;;) {
        const answer = await call('POST', `${path}/acquire`, { acquire_timeout_seconds: 50 });
        if (answer !== '') return JSON.parse(answer) as Lease;
      }
    },
    release: ({ session_id }: Lease, reuse = true) => call('POST', `${path}/release`, { session_id, reuse }),
    async full() {
      const there = async () => (JSON.parse(await call('GET', path)) as { available_count: number }).available_count;
      for (const end = Date.now() + 60_000; (await there()) < count; await sleep(50))
        if (Date.now() > end) throw new Error(`The pool of ${count} is not full after a minute.`);
    },
    remove: () => call('DELETE', path, { force: true }),
  };
  await pool.full();
  return pool;
}

/** A browser to which somebody came is not lent again. */
async function use({ cdp_ws_url }: Lease): Promise<void> {
  const page = await Page.open(cdp_ws_url);
  await page.evaluate('1 + 1');
  page.close();
}

/** With no other client and a browser on the shelf; then a browser is released and the next acquire waits, with reuse and without. */
async function oneBrowser(warm: Corral, cold: Corral): Promise<Row[]> {
  const [fresh, relaunched] = [await poolOf(warm, 1), await poolOf(cold, 1)];
  const times = { acquire: [] as number[], release: [] as number[], fresh: [] as number[], relaunched: [] as number[] };
  for (let turn = 0; turn < swaps; turn++) {
    for (const [pool, into, reuse] of [
      [fresh, times.fresh, true],
      [relaunched, times.relaunched, false],
    ] as const) {
      const began = performance.now();
      const lease = await pool.acquire();
      if (reuse) times.acquire.push(performance.now() - began);
      await use(lease);
      const released = performance.now();
      await pool.release(lease, reuse);
      if (reuse) times.release.push(performance.now() - released);
      const next = await pool.acquire();
      into.push(performance.now() - released);
      await pool.release(next);
      await pool.full();
      await warm.until('corral_spares_headless', spares);
    }
  }
  await Promise.all([fresh.remove(), relaunched.remove()]);
  return [
    {
      what: 'acquire, a browser is on the shelf',
      value: median(times.acquire),
      unit: 'ms',
      beside: `p95 ${percentile(times.acquire, 95).toFixed(0)} ms`,
    },
    {
      what: 'release → the next holder has a clean browser, a spare is there',
      value: median(times.fresh),
      unit: 'ms',
      ratio: median(times.fresh) / median(times.relaunched),
      beside: `destroy and launch (${median(times.relaunched).toFixed(0)} ms); release itself is answered after ${median(times.release).toFixed(1)} ms`,
    },
  ];
}

/**
 * Fifty clients and ten browsers. The k-th lease is for the k-th browser that came free: ten at the start, then one whenever a
 * release was answered. The time between that moment (or the request, if later) and the answer is the
 * latency of the service; the rest is queueing.
 */
async function crowd(service: Corral, kind: 'unused' | 'used'): Promise<Row[]> {
  const pool = await poolOf(service, size);
  const random = seededRandom(7);
  const held = new Set<string>();
  const leases: { asked: number; answered: number }[] = [];
  const freed: number[] = Array(size).fill(performance.now());
  let twice = 0;
  const began = performance.now();
  const client = async () => {
    while (performance.now() - began < seconds * 1000) {
      const asked = performance.now();
      const lease = await pool.acquire();
      leases.push({ asked, answered: performance.now() });
      if (held.has(lease.session_id)) twice++;
      held.add(lease.session_id);
      if (kind === 'used') await use(lease);
      await sleep(holdMs[kind] * (0.5 + random(1000) / 1000));
      held.delete(lease.session_id);
      await pool.release(lease);
      freed.push(performance.now());
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  await pool.remove();
  const over = leases.map(({ asked, answered }, index) => Math.max(0, answered - Math.max(asked, freed[index]!)));
  const how = kind === 'used' ? `used and held for ${holdMs.used / 1000} s` : `held for ${holdMs.unused} ms, not used`;
  const beside = `${leases.length} leases, ${(leases.length / seconds).toFixed(1)} a second; two holders: ${twice} times`;
  const what = `${clients} clients, ${size} browsers, ${how}: wait over queueing`;
  return [
    { what: `${what}, median`, value: median(over), unit: 'ms', beside, bar: 'under 10 ms' },
    { what: `${what}, p99`, value: percentile(over, 99), unit: 'ms', bar: 'under 50 ms' },
  ];
}
