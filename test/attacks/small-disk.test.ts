import Kernel, { toFile } from '@onkernel/sdk';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Space } from '../../src/lib/disk-space.ts';
import { zipOf } from '../support/extension-zip.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { asRoot, requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';
import { smallDisk } from '../support/small-disk.ts';

await requireSandbox();

const MIB = 2 ** 20;
const [DISK_MB, RESERVE_MB] = [1500, 300];
/** What a build unpacks to, and how many of them the project may store: more than fit on the disk. */
const BUILD_MB = 200;
const STORED_BUILDS = 7;

const filesIn = (path: string): string[] => {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
};

/** Root mounts a file system. For other users the space is calculated from the files of sessions and of unpacked builds. */
function disk(): { path: string; space?: () => Space; remove(): void } {
  if (asRoot) return smallDisk(DISK_MB, 180_000);
  const path = mkdtempSync(join(tmpdir(), 'corral-disk-'));
  const homesIn = (dir: string) => filesIn(join(path, dir)).map((name) => join(path, dir, name, 'home'));
  const space = () => {
    const big = [...homesIn('sessions'), ...homesIn('workshop/builds')].flatMap((home) =>
      filesIn(home)
        .filter((name) => name.startsWith('big-'))
        .map((name) => statSync(join(home, name), { throwIfNoEntry: false })?.blocks ?? 0),
    );
    const [bytes, inodes] = [DISK_MB * MIB, 180_000];
    const usedBytes = 300 * MIB + big.reduce((sum, blocks) => sum + blocks * 512, 0); // the database, and the service's tools
    const freeBytes = Math.max(0, bytes - usedBytes);
    return { bytes, usedBytes, freeBytes, inodes, usedInodes: 0, freeInodes: inodes };
  };
  return { path, space, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** With it in the zip, nothing is installed. */
const sdkPackage = {
  'node_modules/@onkernel/sdk/package.json': '{"name":"@onkernel/sdk","main":"index.js"}',
  'node_modules/@onkernel/sdk/index.js': 'exports.apps = require("./core/app-framework.js").apps;',
  'node_modules/@onkernel/sdk/core/app-framework.js':
    'exports.apps = []; exports.appRegistry = { getApps: () => exports.apps };',
};

/** While it is built, an app makes a file that takes nothing: the archive has its zeros, and unpacking writes them. */
const holeyApp = (name: string) => `
const fs = require('node:fs');
try { fs.writeFileSync(__dirname + '/big-hole', ''); fs.truncateSync(__dirname + '/big-hole', ${BUILD_MB * MIB}); } catch {}
require('@onkernel/sdk').apps.push({ name: '${name}', getActions: () => [{ name: 'run', handler: async () => 'ran' }] });
`;

describe('on a small disk', () => {
  let small: ReturnType<typeof disk>;
  let service: Service;
  let neighbour: Awaited<ReturnType<typeof chromium.connectOverCDP>>;
  let greedy: Record<string, string>;
  let neighbours: string;
  beforeAll(async () => {
    small = disk();
    service = await startService(
      {
        CORRAL_DATA_DIR: small.path,
        CORRAL_DISK_RESERVE_MB: String(RESERVE_MB),
        CORRAL_PROJECT_STORAGE_MB: String(BUILD_MB * STORED_BUILDS + 50),
      },
      small,
    );
    const { body } = await service.call('POST', '/org/projects', { name: 'greedy' });
    greedy = { 'x-kernel-project-id': body.id };
    const { session_id, cdp_ws_url } = await service.sdk().browsers.create({ headless: true, timeout_seconds: 600 });
    neighbours = session_id;
    neighbour = await chromium.connectOverCDP(cdp_ws_url); // so that it stays awake
    const script = 'head -c 20000000 /dev/urandom >~/big-own';
    await service.sdk().browsers.process.exec(session_id, { command: 'sh', args: ['-c', script] });
  }, 300_000);
  afterAll(async () => {
    await neighbour?.close();
    if (neighbours) await service.call('DELETE', `/browsers/${neighbours}`);
    if (service) await expectNothingLeft(service);
    await service?.close({ keep: true });
    small?.remove();
  });

  const neighbourLives = () => neighbour.contexts()[0]!.pages()[0]!.evaluate('6 * 7');
  const settingOf = async (name: string) =>
    (await service.call('GET', '/about')).body.settings.find((one: { name: string }) => one.name === name).value;

  test('builds of one project that unpack to all of it end no session, and count for their project', async () => {
    const client = new Kernel({
      apiKey: service.key,
      baseURL: service.url,
      maxRetries: 0,
      timeout: 110_000,
      defaultHeaders: greedy,
    });
    const invoke = async (n: number) => {
      const ran = await client.invocations.create({ app_name: `holey-${n}`, action_name: 'run', version: 'latest' });
      expect(ran, ran.status_reason).toMatchObject({ status: 'succeeded' });
    };
    const outcomes: string[] = [];
    for (let n = 0; n <= STORED_BUILDS; n++) {
      const zip = await zipOf({ ...sdkPackage, 'index.js': holeyApp(`holey-${n}`) });
      const { id } = await client.deployments.create({
        file: await toFile(zip, 'app.zip'),
        entrypoint_rel_path: 'index.js',
      });
      const settled = async () => {
        const { status, status_reason } = await client.deployments.retrieve(id);
        return ['queued', 'in_progress'].includes(status) ? undefined : `${status} ${status_reason ?? ''}`;
      };
      await expect.poll(settled, { timeout: 100_000, interval: 200 }).toBeDefined();
      outcomes.push((await settled())!);
      // Its worker stays, with its build.
      if (outcomes.at(-1)!.startsWith('running')) await invoke(n);
      expect(await neighbourLives()).toBe(42);
    }
    expect(service.log.join('\n')).toContain('disk.relieved'); // they have filled it
    expect(outcomes.slice(0, STORED_BUILDS)).toEqual(Array.from({ length: STORED_BUILDS }, () => 'running '));
    expect(outcomes.at(-1)).toMatch(/^failed .*CORRAL_PROJECT_STORAGE_MB/);
    // A build that was removed is unpacked again.
    await invoke(0);
    expect(await neighbourLives()).toBe(42);
    for (const { id } of (await client.deployments.list()).getPaginatedItems()) await client.deployments.delete(id);
  }, 600_000);

  test('a session has a quarter of the free space, unless a setting says more', async () => {
    const most = Number(await settingOf('CORRAL_SESSION_DISK_MB'));
    expect(most).toBeGreaterThanOrEqual(64);
    expect(most).toBeLessThanOrEqual((DISK_MB - RESERVE_MB) / 4);
  });

  test('sessions of one project that fill it have no create of another refused, and their project waits', async () => {
    // As fast as a disk is, all of them together: what they write while the service of a busy machine has no turn has to fit into the reserve.
    const script =
      'cd; for i in $(seq 600); do dd if=/dev/zero of=big-$i bs=1M count=5 status=none; sleep 0.1; done; sleep 600';
    const attackers: string[] = [];
    for (let n = 0; n < 4; n++) {
      const { status, body } = await service.call(
        'POST',
        '/browsers',
        { headless: true, timeout_seconds: 600 },
        greedy,
      );
      expect(status, JSON.stringify(body)).toBe(200);
      attackers.push(body.session_id);
    }
    for (const id of attackers)
      await service.call('POST', `/browsers/${id}/process/spawn`, { command: 'sh', args: ['-c', script] }, greedy);
    const reasons = new Map<string, string>();
    const answers: unknown[] = [];
    for (const end = Date.now() + 120_000; reasons.size < attackers.length && Date.now() < end; await sleep(50)) {
      const { status, body } = await service.call('POST', '/browsers', { headless: true });
      answers.push(status === 200 ? 200 : { status, body });
      if (status === 200) await service.call('DELETE', `/browsers/${body.session_id}`);
      for (const id of attackers) {
        const { body } = await service.call('GET', `/browsers/${id}?include_deleted=true`, undefined, greedy);
        if (body.ended_reason) reasons.set(id, body.ended_reason);
      }
    }
    expect(new Set(answers)).toEqual(new Set([200]));
    expect(reasons.size).toBe(attackers.length);
    for (const reason of reasons.values()) expect(reason).toMatch(/^disk_(limit|full)$/);
    const { status, headers, body } = await service.call('POST', '/browsers', { headless: true }, greedy);
    expect({ status, code: body.code }).toEqual({ status: 429, code: 'disk_overused' });
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(10);
    const source = { type: 'github', url: 'https://git.invalid/app', ref: 'main', entrypoint: 'index.js' } as const;
    const deployFor = (defaultHeaders: Record<string, string>) =>
      new Kernel({ apiKey: service.key, baseURL: service.url, maxRetries: 0, defaultHeaders }).deployments.create({
        source,
      });
    await expect(deployFor(greedy)).rejects.toMatchObject({ status: 429, error: { code: 'disk_overused' } });
    const { id } = await deployFor({});
    await service.call('DELETE', `/deployments/${id}`);
    expect(await neighbourLives()).toBe(42);
  }, 300_000);
});
