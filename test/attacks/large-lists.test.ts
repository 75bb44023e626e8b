import { afterAll, beforeAll, expect, test } from 'vitest';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';

const POOLS = 8;

/** Its browsers do not start: the pools are there to be listed. */
let service: Awaited<ReturnType<typeof measuredService>>;
beforeAll(async () => {
  service = await measuredService({ CORRAL_MAX_SESSIONS: String(POOLS), CORRAL_HEADLESS_SHELL: '/bin/false' });
}, 300_000);
afterAll(() => service?.close());

const policy = (names: number) =>
  Object.fromEntries(Array.from({ length: names }, (_, at) => [`k${at}`, 'x'.repeat(Math.floor(4_000_000 / names))]));
const declare = (engine_policy: object) =>
  service.call('POST', '/browser_pools', { size: 1, headless: true, fill_rate_per_minute: 0, engine_policy });

test('pools with policies of many names and bytes stop the service neither when they are made nor when they are read', async () => {
  const heavy = policy(45_000);
  const statuses: number[] = [];
  const made = await service.longestStop(async () =>
    statuses.push((await declare(heavy).catch(() => ({ status: 413 }))).status),
  );
  const taken = statuses.includes(201) ? heavy : policy(4900);
  while (statuses.filter((status) => status === 201).length < POOLS) statuses.push((await declare(taken)).status);
  const seen = new Set<string>();
  const list = async () => {
    for (let offset = 0; seen.size < POOLS; offset = seen.size)
      for (const { id } of (await service.call('GET', `/browser_pools?limit=100&offset=${offset}`)).body) seen.add(id);
  };
  const listed = await service.longestStop(async () => (seen.clear(), await list()));
  const [id] = seen;
  const read = await service.longestStop(() => service.call('GET', `/browser_pools/${id}`));
  for (const [what, stop] of Object.entries({ made, listed, read })) expect(stop, what).toBeLessThan(mostStopMs);
}, 300_000);
