import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { manyOwners, uidRange } from './owners.ts';
import { startTime } from './process-tree.ts';

const whole = '         0          0 4294967295\n';
const container = '         0     100000      65536\n';
let at: string;

beforeEach(() => {
  at = mkdtempSync(join(tmpdir(), 'corral-uids-'));
});
afterEach(() => rmSync(at, { recursive: true, force: true }));

test('the user namespace maps the default range', () => {
  expect(uidRange('', [whole, whole]).first).toBe(1_879_100_000);
  expect(uidRange('', [container, container])).toEqual({ first: 30_000, last: 49_999 });
  expect(() => uidRange('', ['0 1000 1\n', '0 1000 1\n'])).toThrow(/CORRAL_SESSION_UIDS .* such as/);
});

test('a range that is set has to be one, and mapped', () => {
  expect(uidRange('5000-5999', [whole, whole])).toEqual({ first: 5000, last: 5999 });
  for (const wrong of ['5000', '5000-5001', '0-4000', '6000-5000', 'a-b', '1000-4294967295'])
    expect(() => uidRange(wrong, [whole, whole]), wrong).toThrow('such as 30000-49999');
  expect(() => uidRange('60000-69999', [container, container])).toThrow('not all of these');
  expect(() => uidRange('60000-69999', [whole, container])).toThrow('not all of these');
});

const range = { first: 700_000, last: 700_003 };

test('no uid is given twice, by two services on one machine neither, and reserved ones never', () => {
  const [one, two] = [manyOwners(range, { at, reserved: [700_002] }), manyOwners(range, { at, reserved: [700_002] })];
  const uids = [one.claim(), two.claim(), one.claim()].map(({ uid }) => uid);
  expect(uids.sort((a, b) => a - b)).toEqual([700_000, 700_001, 700_003]);
  expect(() => two.claim()).toThrow('Every uid of CORRAL_SESSION_UIDS is in use');
});

test('a released uid is free when its directory is removed', () => {
  const owners = manyOwners(range, { at });
  const dir = `${at}-home`;
  mkdirSync(dir);
  const claims = [owners.claim(dir), owners.claim(), owners.claim(), owners.claim()];
  claims[0]!.release();
  expect(() => owners.claim()).toThrow('in use');
  rmSync(dir, { recursive: true });
  expect(owners.claim().uid).toBe(claims[0]!.uid);
});

test.runIf(process.getuid?.() === 0)('nor while one of its processes lives', async () => {
  const owners = manyOwners(range, { at });
  const claims = [owners.claim(), owners.claim(), owners.claim(), owners.claim()];
  const { uid } = claims[0]!;
  const sleeper = spawn('sleep', ['600'], { uid, gid: uid, cwd: '/', stdio: 'ignore' });
  await once(sleeper, 'spawn');
  claims[0]!.release();
  expect(() => owners.claim()).toThrow('in use');
  sleeper.kill('SIGKILL');
  await once(sleeper, 'exit');
  expect(owners.claim().uid).toBe(uid);
});

test('claims of a killed service are free when its directories are removed and its processes have exited', () => {
  const dir = `${at}-left`;
  mkdirSync(dir);
  writeFileSync(join(at, '700000'), `4194304 1 ${dir}`); // no process has that number
  writeFileSync(join(at, '700001'), `4194304 1 ${at}-removed`);
  writeFileSync(join(at, '700002'), `${process.ppid} ${startTime(process.ppid)} `); // another service, which lives
  manyOwners(range, { at });
  expect(readdirSync(at).sort()).toEqual(['700000', '700002']);
  rmSync(dir, { recursive: true });
  manyOwners(range, { at });
  expect(readdirSync(at)).toEqual(['700002']);
});

test('a removed directory of claims leaves no rejection without a handler, and freeing is tried again', async () => {
  const unhandled: unknown[] = [];
  const hear = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', hear);
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  try {
    const owners = manyOwners(range, { at });
    const { uid, release } = owners.claim();
    rmSync(at, { recursive: true });
    release();
    vi.runOnlyPendingTimers();
    await expect.poll(() => vi.getTimerCount() > 0 || unhandled.length > 0).toBe(true); // the next try is due
    mkdirSync(at);
    writeFileSync(join(at, String(uid)), `${process.pid} ${startTime(process.pid)} `);
    vi.runOnlyPendingTimers();
    await expect.poll(() => readdirSync(at)).toEqual([]);
    expect(unhandled).toEqual([]);
  } finally {
    vi.useRealTimers();
    process.off('unhandledRejection', hear);
  }
});
