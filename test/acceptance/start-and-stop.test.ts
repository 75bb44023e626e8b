import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { run, spawnService } from '../support/process.ts';

let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'corral-start-'));
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

const start = (env: Record<string, string> = {}) => spawnService({ CORRAL_DATA_DIR: dataDir, ...env });
const firstKey = async () => (await readFile(join(dataDir, 'api-key'), 'utf8')).trim();
const get = (url: string, key: string) => fetch(url, { headers: { authorization: `Bearer ${key}` } });

describe('the service', () => {
  test('prints the address, the first key once, and something to try', async () => {
    const first = await start();
    const key = await firstKey();
    expect(first.output()).toContain(key);
    expect((await stat(join(dataDir, 'api-key'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(dataDir, 'secret-key'))).mode & 0o777).toBe(0o600);
    expect((await get(`${first.url}/org/projects`, key)).status).toBe(200);
    await first.kill();

    const second = await start();
    expect(second.output()).not.toContain(key);
    expect((await get(`${second.url}/org/projects`, key)).status).toBe(200);
    await second.kill();
  });

  test('takes the operator’s own key', async () => {
    const service = await start({ CORRAL_API_KEY: 'sk_operators_own_key' });
    expect((await get(`${service.url}/org/projects`, 'sk_operators_own_key')).status).toBe(200);
    expect(service.output()).not.toContain('sk_operators_own_key');
    await service.kill();
  });

  test('refuses a data directory that another one holds, and says which', async () => {
    const service = await start();
    await expect(start()).rejects.toThrow(`process ${service.child.pid}`);
    expect((await get(`${service.url}/org/projects`, await firstKey())).status).toBe(200);
    await service.kill();
  });

  test('says what is wrong with its settings, all at once', async () => {
    await expect(start({ CORRAL_PORT: 'x', CORRAL_LOG_LEVEL: 'loud' })).rejects.toThrow(
      /CORRAL_PORT is 'x'[\s\S]*CORRAL_LOG_LEVEL is 'loud'/,
    );
  });

  test('leaves no database server behind when it is told to stop', async () => {
    const service = await start();
    const pid = Number((await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0]);
    await service.kill('SIGTERM');
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });

  test('goes on when its database server is killed', async () => {
    const service = await start();
    const key = await firstKey();
    const pid = Number((await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0]);
    process.kill(pid, 'SIGKILL');
    const statuses: number[] = [];
    while (statuses.at(-1) !== 200) statuses.push((await get(`${service.url}/org/projects`, key)).status);
    expect(new Set(statuses.slice(0, -1))).toEqual(new Set(statuses.length > 1 ? [503] : []));
    await service.kill();
  });
});

test('no answered write is lost by kill -9, twenty times over', async () => {
  const answered = new Set<string>();
  const spares = { CORRAL_WARM_SPARES: 'off' }; // they would start under the writers and take the processor from them
  for (let round = 0; round < 20; round++) {
    const service = await start(spares);
    const key = await firstKey();
    const present = await names(service.url, key);
    for (const name of answered) expect(present).toContain(name);

    // A stream of writes by four writers; the service is killed under them, a little later each round.
    const killed = new AbortController();
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let index = 0; !killed.signal.aborted; index++) {
        const name = `round ${round} writer ${writer} number ${index}`;
        const response = await fetch(`${service.url}/org/projects`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ name }),
        }).catch(() => undefined);
        if (response?.status === 201) answered.add(name);
        else if (response) throw new Error(`A write was refused: ${await response.text()}`);
      }
    });
    await new Promise((resolve) => setTimeout(resolve, 20 + round * 15));
    await service.kill('SIGKILL');
    killed.abort();
    await Promise.all(writers);
  }
  const service = await start(spares);
  const present = await names(service.url, await firstKey());
  expect(answered.size).toBeGreaterThan(50);
  for (const name of answered) expect(present).toContain(name);
  await service.kill();
}, 240_000);

async function names(url: string, key: string): Promise<Set<string>> {
  const all = new Set<string>();
  for (let offset = 0; ; offset += 100) {
    const response = await get(`${url}/org/projects?limit=100&offset=${offset}`, key);
    for (const { name } of (await response.json()) as { name: string }[]) all.add(name);
    if (response.headers.get('x-has-more') === 'false') return all;
  }
}

describe('corral', () => {
  const corral = (...args: string[]) => run(['bin/corral.mjs', ...args], { CORRAL_DATA_DIR: dataDir });

  test('makes, lists and revokes keys without a service', async () => {
    const made = await corral('keys', 'create', '--name', 'lost and found', '--days', '30');
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sk_[A-Za-z0-9]{40}\n$/) });
    const list = await corral('keys', 'list');
    const line = list.stdout.split('\n').find((text) => text.includes('lost and found'))!;
    expect(line).toMatch(/sk_\w{4}\.\.\.\w{4} +all +20\S+ +active/);
    expect(list.stdout).not.toContain(made.stdout.trim());
    expect(await corral('keys', 'revoke', line.split(' ')[0]!)).toMatchObject({ code: 0 });
    expect((await corral('keys', 'list')).stdout).not.toContain('lost and found');
    expect((await corral('keys', 'list', '--all')).stdout).toMatch(/lost and found.*revoked/);
  });

  test('changes keys beside a running service, which hears of it through the database', async () => {
    const service = await start();
    const key = (await corral('keys', 'create', '--name', 'beside')).stdout.trim();
    expect((await get(`${service.url}/org/projects`, key)).status).toBe(200);
    const id = /^(key_\w+) +beside /m.exec((await corral('keys', 'list')).stdout)![1]!;
    await corral('keys', 'revoke', id);
    while ((await get(`${service.url}/org/projects`, key)).status !== 401);
    expect((await get(`${service.url}/org/projects`, await firstKey())).status).toBe(200);
    await service.kill();
  });

  test('seals everything anew, under a running service', async () => {
    const service = await start();
    const before = await readFile(join(dataDir, 'secret-key'), 'utf8');
    expect(await corral('secrets', 'rotate')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Sealed 0 values'),
    });
    const after = await readFile(join(dataDir, 'secret-key'), 'utf8');
    expect(after.trim().split(/\s+/)).toEqual([expect.any(String), before.trim()]);
    expect((await stat(join(dataDir, 'secret-key'))).mode & 0o777).toBe(0o600);
    await service.kill();
  });

  test.each([
    [[], 0, 'corral keys create'],
    [['--help'], 0, 'corral secrets rotate'],
    [['keys', '--help'], 0, 'corral keys revoke'],
    [['frobnicate'], 2, "no command 'frobnicate'"],
    [['keys'], 2, 'create, list or revoke'],
    [['keys', 'create'], 2, '--name'],
    [['keys', 'create', '--name', 'x', '--days', 'many'], 2, '--days'],
    [['keys', 'create', '--nmae', 'x'], 2, '--nmae'],
    [['keys', 'create', '--name', 'x', '--project', 'nowhere'], 1, "'nowhere'"],
    [['keys', 'revoke', 'key_no'], 1, "'key_no'"],
  ])('%j exits with %i and teaches', async (args, code, text) => {
    const result = await corral(...args);
    expect(result.code).toBe(code);
    expect(result.stdout + result.stderr).toContain(text);
    expect(result.stderr).not.toMatch(/\bat .*\.js:\d+/);
  });
});
