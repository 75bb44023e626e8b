import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { doctor } from './doctor.ts';

let dir: string;
beforeAll(async () => void (dir = await mkdtemp(join(tmpdir(), 'corral-doctor-test-'))));
afterAll(() => rm(dir, { recursive: true, force: true }));

/** A doctor that appends a letter to a file for each look, and then does this. */
async function patient(then: string, now?: () => number) {
  const looks = join(dir, `${Math.random()}`);
  const script = `${looks}.mjs`;
  await writeFile(script, `import { appendFileSync } from 'node:fs'; appendFileSync('${looks}', 'x'); ${then}`);
  const one = doctor({ dataDir: dir, allowUnsandboxed: false, script, ...(now ? { now } : {}) });
  return { ...one, looks: () => readFile(looks, 'utf8').catch(() => '') };
}

test('one check answers all requests while it runs or is fresh', async () => {
  let time = 0;
  const says = `console.log(JSON.stringify({ findings: [{ name: 'disk', well: true, saw: process.env.CORRAL_DATA_DIR }], mends: [] }))`;
  const { diagnose, looks } = await patient(says, () => time);
  const all = await Promise.all([diagnose(), diagnose(), diagnose()]);
  for (const one of all) expect(one).toMatchObject({ findings: [{ name: 'disk', saw: dir }], failure: undefined });
  await diagnose();
  expect(await looks()).toBe('x');
  time += 60_000;
  await diagnose();
  expect(await looks()).toBe('xx');
});

test('a required part that is missing is a finding; a failed check is reported', async () => {
  const missing = await patient(
    `console.log(JSON.stringify({ findings: [{ name: 'sandbox', well: false, required: true, saw: '', switched_off: 'browsers' }], mends: ['Mend.'] })); process.exitCode = 1`,
  );
  expect(await missing.diagnose()).toMatchObject({ findings: [{ well: false }], mends: ['Mend.'], failure: undefined });
  const broken = await patient(`throw new Error('broken')`);
  expect(await broken.diagnose()).toMatchObject({ findings: [], failure: expect.stringContaining('exited with 1') });
});

test('a look that hangs ends with the service', async () => {
  const { diagnose, looks, close } = await patient('setInterval(() => {}, 1000)');
  const look = diagnose();
  await expect.poll(looks, { timeout: 60_000 }).toBe('x');
  await close();
  expect(await look).toMatchObject({ failure: expect.stringContaining('SIGKILL') });
});
