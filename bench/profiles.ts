import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { corral } from './peers.ts';
import { median, type Row } from './rows.ts';

const turns = Number(process.env['BENCH_TURNS'] ?? 9);
const MB = 1_000_000;

type Corral = Awaited<ReturnType<typeof corral>>;

/**
 * What a profile costs: from asking for a session to having it, beside the same browser without one, all of them started cold; and
 * what saving it adds to the end. What the profiles hold does not compress, so their archives are as large as they say.
 */
export async function benchProfiles(): Promise<Row[]> {
  const dir = await mkdtemp(join(tmpdir(), 'corral-bench-'));
  const service = await corral(dir, { CORRAL_WARM_SPARES: 'off' });
  try {
    const profiles = { 'a new': 0, 'a 5 MB': 5 * MB, 'a 100 MB': 100 * MB };
    const ids = new Map<string, string>();
    const saves = new Map<string, number[]>();
    for (const [name, bytes] of Object.entries(profiles)) {
      const { id } = JSON.parse(await service.call('POST', '/profiles', {}));
      ids.set(name, id);
      await save(service, dir, id, bytes);
    }

    const starts: Record<string, { body: object; times: number[] }> = {
      'without a profile, headless shell': { body: {}, times: [] },
      'without a profile, full browser': { body: { stealth: true }, times: [] },
    };
    for (const [name, id] of ids) starts[`with ${name} profile`] = { body: { profile: { id } }, times: [] };
    for (let turn = -1; turn < turns; turn++) {
      for (const { body, times } of Object.values(starts)) {
        const took = await lifecycle(service, body);
        if (turn >= 0) times.push(took.start);
      }
    }
    for (const [name, id] of ids) {
      const times: number[] = [];
      for (let turn = 0; turn < Math.min(turns, 5); turn++)
        times.push((await lifecycle(service, { profile: { id, save_changes: true } })).end);
      saves.set(name, times);
    }

    const full = median(starts['without a profile, full browser']!.times);
    return [
      ...Object.entries(starts).map(([name, { times }]) => ({
        what: `start ${name}`,
        value: median(times),
        unit: 'ms',
        beside: 'the full browser without one',
        ratio: median(times) / full,
      })),
      ...[...saves].map(([name, times]) => ({
        what: `DELETE that saves ${name} profile`,
        value: median(times),
        unit: 'ms',
      })),
    ];
  } finally {
    await service.stop();
    await rm(dir, { recursive: true, force: true });
  }
}

async function lifecycle(service: Corral, body: object): Promise<{ start: number; end: number }> {
  const asked = performance.now();
  const { session_id } = JSON.parse(await service.call('POST', '/browsers', { headless: true, ...body }));
  const there = performance.now();
  await service.remove(session_id);
  return { start: there - asked, end: performance.now() - there };
}

/** Fills a profile as a site with much storage would: some hundred files. */
async function save(service: Corral, dir: string, id: string, bytes: number): Promise<void> {
  const body = { headless: true, profile: { id, save_changes: true } };
  const { session_id } = JSON.parse(await service.call('POST', '/browsers', body));
  const storage = join(dir, 'sessions', session_id, 'home/user-data/Default/File System/000');
  await mkdir(storage, { recursive: true, mode: 0o755 });
  const file = Math.max(25_000, bytes / 400);
  for (let written = 0; written < bytes; written += file)
    await writeFile(join(storage, String(written)), randomBytes(file), { mode: 0o644 });
  await service.remove(session_id);
}
