import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { isRoot } from '../../scripts/parts.mjs';
import { version } from '../../src/version.ts';
import { expectDoctorAgrees } from '../support/doctor-agrees.ts';
import { newDatabase } from '../support/new-database.ts';
import { run, spawnService, startOnTerminal } from '../support/process.ts';

let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'corral-start-'));
});
afterEach(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));

/** No warm spares: they would start during the tests, and use processor time. */
const start = (env: Record<string, string> = {}, options: { hidden?: string[] } = {}) =>
  spawnService({ CORRAL_DATA_DIR: dataDir, CORRAL_WARM_SPARES: 'off', ...env }, options);
const firstKey = async () => (await readFile(join(dataDir, 'api-key'), 'utf8')).trim();
const get = (url: string, key: string) => fetch(url, { headers: { authorization: `Bearer ${key}` } });
const postmaster = async (dataDir: string) =>
  Number((await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0]);

/** The line to try, as a person pastes it. It answers with a browser. */
async function tryLineOf(text: string): Promise<void> {
  const line = /^Try +(.*)$/m.exec(text)![1]!;
  const { stdout } = await promisify(execFile)('sh', ['-c', line]);
  expect(JSON.parse(stdout)).toMatchObject({ session_id: expect.any(String), cdp_ws_url: expect.any(String) });
}

describe('the service', () => {
  test('ends its first words with the address, the first key once, and a line that works; takes its database along', async () => {
    const first = await startOnTerminal({ CORRAL_DATA_DIR: dataDir, CORRAL_LOG_LEVEL: 'info', NO_COLOR: '1' });
    const key = await firstKey();
    const [log = '', banner = ''] = first.shown().split('\nCorral listens at  ');
    expect(banner).toMatch(/^(http\S+)\nAPI key .*\nTry .*\nConsole .*\nLook .*\n/);
    expect(banner).toContain(key);
    expect(log, 'for people').toMatch(/^\d\d:\d\d:\d\d {2}info {3}started PostgreSQL {2}pid=\d+/m);
    expect(log, 'the end of the start').toMatch(/^\d\d:\d\d:\d\d {2}info {3}node\.joined /m);
    await tryLineOf(banner);
    expect((await stat(join(dataDir, 'api-key'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(dataDir, 'secret-key'))).mode & 0o777).toBe(0o600);
    const database = await postmaster(dataDir);
    await first.stop();
    expect(() => process.kill(database, 0)).toThrow('ESRCH');

    // Again, on a machine that lacks two things, and with a log that a program reads.
    const hidden = isRoot() ? ['/usr/bin/Xvnc', '/usr/lib/chromium/chromium-headless-shell'] : [];
    const second = await start({ CORRAL_LOG_LEVEL: 'debug' }, { hidden });
    expect(second.output()).not.toContain(key);
    const lines = second
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'));
    expect(lines.map((line) => JSON.parse(line).msg)).toContain('node.joined');
    await tryLineOf(second.output());
    const missing = await expectDoctorAgrees(async (path) => {
      const response = await get(second.url + path, key);
      return { status: response.status, body: await response.json() };
    });
    if (isRoot()) expect(missing).toEqual(['chromium-headless-shell', 'tigervnc-standalone-server']);

    // The reader of the log exits. The service continues, and stops as usual.
    second.child.stdout!.destroy();
    second.child.stderr!.destroy();
    for (let n = 0; n < 3; n++) expect((await get(`${second.url}/org/projects`, key)).status).toBe(200);
    const databaseNow = await postmaster(dataDir);
    await second.kill('SIGTERM');
    expect([second.child.exitCode, second.child.signalCode]).toEqual([0, null]);
    expect(() => process.kill(databaseNow, 0)).toThrow('ESRCH');
  });

  test('handles a signal while it starts, and leaves no process', async () => {
    const starting = spawn(process.execPath, ['scripts/start.mjs'], {
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], CORRAL_DATA_DIR: dataDir, CORRAL_PORT: '0' },
      stdio: 'ignore',
    });
    const exited = once(starting, 'exit');
    await vi.waitFor(() => postmaster(dataDir), { timeout: 60_000, interval: 5 });
    starting.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    expect(await readdir(join(dataDir, 'postgres'))).not.toContain('postmaster.pid'); // the server removed it, and has ended
    expect(await readdir(dataDir)).not.toContain('address');
    const next = await start();
    expect((await get(`${next.url}/org/projects`, await firstKey())).status).toBe(200);
    await next.kill();
  });

  test('refuses an ordinary user a port of root’s before it makes anything', async () => {
    // In a user namespace this user is an ordinary one; in a network namespace the kernel's own rule about ports holds.
    const asUser = ['--user', '--net', '--map-user=65534', '--map-group=65534', process.execPath, 'scripts/start.mjs'];
    const env = { PATH: process.env['PATH'], CORRAL_DATA_DIR: dataDir, CORRAL_PORT: '80' };
    await expect(promisify(execFile)('unshare', asUser, { env })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^CORRAL_PORT is 80, .*below 1024/),
    });
    expect(await readdir(dataDir)).toEqual([]);
  });

  test('reports all errors in its settings at once', async () => {
    await expect(start({ CORRAL_PORT: 'x', CORRAL_LOG_LEVEL: 'loud' })).rejects.toThrow(
      /CORRAL_PORT is 'x'[\s\S]*CORRAL_LOG_LEVEL is 'loud'/,
    );
  });

  test('says in a sentence where it cannot keep its data, and which database it cannot use', async () => {
    const file = join(dataDir, 'file');
    const [readOnly, socketless] = [join(dataDir, 'read-only'), join(dataDir, 'socketless')];
    await Promise.all([writeFile(file, ''), mkdir(readOnly), mkdir(socketless)]);
    // Mounted for the service alone.
    const on = (mount: string) => [
      'unshare',
      '--user',
      '--map-root-user',
      '--mount',
      'sh',
      '-c',
      `${mount} && exec "$@"`,
      'sh',
    ];
    const lastWords = async (env: Record<string, string>, way: string[] = []) => {
      const own = { PATH: process.env['PATH'], CORRAL_DATA_DIR: dataDir, CORRAL_PORT: '0', ...env };
      const ended = promisify(execFile)('env', [...way, process.execPath, 'scripts/start.mjs'], { env: own });
      return ended.then(
        () => ({ code: 0, stderr: '' }),
        ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
      );
    };
    const refused = await Promise.all([
      lastWords({ CORRAL_DATA_DIR: file }),
      lastWords({ CORRAL_DATA_DIR: readOnly }, on(`mount -t tmpfs -o ro none '${readOnly}'`)),
      lastWords({ CORRAL_DATA_DIR: socketless }, on(`mount -t devpts none '${socketless}'`)),
      lastWords({ DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/corral' }),
    ]);
    const sentence = (text: RegExp) => ({ code: 1, stderr: expect.stringMatching(text) });
    expect(refused).toEqual([
      sentence(/The settings are not valid:\n {2}CORRAL_DATA_DIR is '.*file', which is a file .*Set it to .*\n$/),
      sentence(/The settings are not valid:\n {2}CORRAL_DATA_DIR is '.*', which this user may not write to .*\n$/),
      sentence(/The settings are not valid:\n {2}CORRAL_DATA_DIR is '.*', where no socket can be made .*\n$/),
      sentence(
        /The settings are not valid:\n {2}DATABASE_URL: the database me@127\.0\.0\.1:1\/corral .*nothing listens there.*\n$/,
      ),
    ]);
  });
});

test('no answered write is lost by kill -9, three times over', async () => {
  const answered = new Set<string>();
  for (const writes of [3, 18, 38]) {
    const service = await start();
    const key = await firstKey();
    await expectAll(answered, service.url, key);

    // A stream of writes by four writers; the service is killed under them, later each round.
    const killed = new AbortController();
    const before = answered.size;
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let index = 0; !killed.signal.aborted; index++) {
        const name = `after ${writes} writer ${writer} number ${index}`;
        const response = await fetch(`${service.url}/org/projects`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ name }),
        }).catch(() => undefined);
        if (response?.status === 201) answered.add(name);
        else if (response) throw new Error(`A write was refused: ${await response.text()}`);
      }
    });
    const all = Promise.all(writers);
    while (answered.size < before + writes) await Promise.race([all, setTimeout(1)]);
    await service.kill('SIGKILL');
    killed.abort();
    await all;
  }
  const service = await start();
  expect(answered.size).toBeGreaterThan(50);
  await expectAll(answered, service.url, await firstKey());
  await service.kill();
}, 300_000);

async function expectAll(answered: ReadonlySet<string>, url: string, key: string): Promise<void> {
  const present = await names(url, key);
  expect([...answered].filter((name) => !present.has(name))).toEqual([]);
}

async function names(url: string, key: string): Promise<Set<string>> {
  const all = new Set<string>();
  for (let offset = 0; ; offset += 100) {
    const response = await get(`${url}/org/projects?limit=100&offset=${offset}`, key);
    for (const { name } of (await response.json()) as { name: string }[]) all.add(name);
    if (response.headers.get('x-has-more') === 'false') return all;
  }
}

/** One service for all of these: a start takes longer than what each of them does. */
describe('while a service runs', () => {
  const key = 'sk_operators_own_key';
  let service: Awaited<ReturnType<typeof spawnService>>;
  let held: string;
  beforeAll(async () => {
    held = await mkdtemp(join(tmpdir(), 'corral-start-'));
    service = await start({ CORRAL_DATA_DIR: held, CORRAL_API_KEY: key });
  });
  afterAll(async () => {
    await service?.kill();
    await rm(held, { recursive: true, force: true });
  });

  const status = async (key: string) => (await get(`${service.url}/org/projects`, key)).status;
  const corral = (...args: string[]) => run(['bin/corral.cjs', ...args], { CORRAL_DATA_DIR: held });

  test('it takes the operator’s own key', async () => {
    expect(await status(key)).toBe(200);
    expect(service.output()).not.toContain(key);
  });

  test('another one is refused its data directory; the error names the process that holds it', async () => {
    await expect(start({ CORRAL_DATA_DIR: held })).rejects.toThrow(`process ${service.child.pid}`);
    expect(await status(key)).toBe(200);
  });

  test('corral seals all values with a new key', async () => {
    const before = await readFile(join(held, 'secret-key'), 'utf8');
    expect(await corral('secrets', 'rotate')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Sealed 0 values'),
    });
    const after = await readFile(join(held, 'secret-key'), 'utf8');
    expect(after.trim().split(/\s+/)).toEqual([expect.any(String), before.trim()]);
    expect((await stat(join(held, 'secret-key'))).mode & 0o777).toBe(0o600);
  });

  test('corral changes keys, and the service is notified through the database', async () => {
    const made = (await corral('keys', 'create', '--name', 'beside')).stdout.trim();
    expect(await status(made)).toBe(200);
    const id = /^(key_\w+) +beside /m.exec((await corral('keys', 'list')).stdout)![1]!;
    await corral('keys', 'revoke', id);
    while ((await status(made)) !== 401);
    expect(await status(key)).toBe(200);
  });

  test.each([
    [[], 0, 'corral keys create'],
    [['--help'], 0, 'corral secrets rotate'],
    [['--version'], 0, `${version}\n`],
    [['keys', '--help'], 0, 'corral keys revoke'],
    [['frobnicate'], 2, "no command 'frobnicate'"],
    [['keys'], 2, 'create, list, revoke'],
    [['keys', 'create'], 2, '--name'],
    [['keys', 'create', '--name', 'x', '--days', 'many'], 2, '--days'],
    [['keys', 'create', '--nmae', 'x'], 2, '--nmae'],
    [['keys', 'create', '--name', 'x', '--project', 'nowhere'], 1, "'nowhere'"],
    [['keys', 'revoke', 'key_no'], 1, "'key_no'"],
  ])('corral %j exits with %i and teaches', async (args, code, text) => {
    const result = await corral(...args);
    expect(result.code).toBe(code);
    expect(result.stdout + result.stderr).toContain(text);
    expect(result.stderr).not.toMatch(/\bat .*\.js:\d+/);
  });

  test('the service continues when its database server is killed', async () => {
    process.kill(await postmaster(held), 'SIGKILL');
    const statuses: number[] = [];
    while (statuses.at(-1) !== 200) statuses.push(await status(key));
    expect(new Set(statuses.slice(0, -1))).toEqual(new Set(statuses.length > 1 ? [503] : []));
  });
});

describe('while no service runs, corral', () => {
  const corral = (...args: string[]) => run(['bin/corral.cjs', ...args], { CORRAL_DATA_DIR: dataDir });

  test('makes nothing where no service was', async () => {
    expect(await corral('keys', 'list')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`no service in ${dataDir}`),
    });
    expect(await readdir(dataDir)).toEqual([]);
  });

  test('makes, lists and revokes keys', async () => {
    await newDatabase(dataDir);
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
});
