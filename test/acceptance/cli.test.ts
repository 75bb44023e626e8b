import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { aptInstall } from '../../scripts/apt.mjs';
import { command, isDebian, isRoot } from '../../scripts/parts.mjs';
import { nouns } from '../../src/cli/nouns.ts';
import type { Verb } from '../../src/cli/table.ts';
import { packageJson } from '../support/apps.ts';
import { corralBin, corralCommand, fewAtOnce } from '../support/corral-command.ts';
import { extensionFiles, zipOf } from '../support/extension-zip.ts';
import { freePort } from '../support/listen.ts';
import { startRegistry } from '../support/npm-registry.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Service } from '../support/service.ts';

// A test runs twenty programs and more, one after another, and a busy machine takes seconds for each.
vi.setConfig({ testTimeout: 300_000 });

let pages: Pages;
let registry: Awaited<ReturnType<typeof startRegistry>>;
let service: Service;
/** A store and a proxy at which connections are refused at once. */
let closedPort: number;
let home: string;
let project: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'corral-cli-'));
  pages = await startPages();
  registry = await startRegistry();
  closedPort = await freePort();
  const hosts = `${pages.host},127.0.0.1:${closedPort}`;
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: hosts, CORRAL_NPM_REGISTRY: registry.url });
});
afterAll(async () => {
  await service?.close();
  await registry?.close();
  await pages?.close();
  await rm(home, { recursive: true, force: true });
});

const environment = (more: Record<string, string> = {}): Record<string, string> => ({
  PATH: process.env['PATH']!,
  HOME: home,
  CORRAL_URL: service.url,
  CORRAL_API_KEY: service.key,
  ...more,
});

const { used, asJson, corral, text, json, refused } = corralCommand(() => ({ cwd: home, env: environment() }));

describe('a session', () => {
  let id: string;
  const s = 'one';
  beforeAll(async () => {
    const made = await json('browsers', 'create', '--headless', '--name', s, '--timeout-seconds', '3000');
    id = made.session_id;
  });
  beforeAll(async () => {
    if (!command('tmux') && isRoot() && isDebian()) await aptInstall(['tmux']);
  }, 600_000);

  test('is listed, shown and changed, for people and for programs', async () => {
    const [table, list, lines, one, updated] = await Promise.all([
      text('browsers', 'list'),
      json('browsers', 'list', '--all'),
      corral(['browsers', 'list', '-o', 'jsonl']),
      text('browsers', 'get', s),
      json('browsers', 'update', s, '--tags', 'team=a', '--tags', 'env=b'),
    ]);
    expect(table).toMatch(new RegExp(`^SESSION ID .*\\n${id} +${s} `));
    expect(list).toMatchObject([{ session_id: id }]);
    expect(JSON.parse(lines.stdout)).toMatchObject({ session_id: id });
    expect(one).toMatch(new RegExp(`^session_id +${id}$`, 'm'));
    expect(updated).toMatchObject({ tags: { team: 'a', env: 'b' } });
    const view = await json('browsers', 'view', s, '--expires-in-seconds', '60');
    expect((await fetch(view.url)).status).toBe(200);
  });

  test('runs programs', async () => {
    const [ran, failed, silent] = await Promise.all([
      corral(['browsers', 'process', 'exec', s, '--', 'sh', '-c', 'echo out; echo err >&2; exit 7']),
      corral(['browsers', 'process', 'exec', s, '-o', 'json', '--', 'sh', '-c', 'exit 3']),
      json('browsers', 'process', 'spawn', s, '--allocate-tty', '--', 'cat'),
    ]);
    expect(ran).toEqual({ code: 7, stdout: 'out\n', stderr: 'err\n' });
    expect([failed.code, JSON.parse(failed.stdout)]).toMatchObject([3, { exit_code: 3 }]);
    const of = ['browsers', 'process'] as const;
    const cat = silent.process_id as string;
    expect(await json(...of, 'status', s, cat)).toMatchObject({ state: 'running' });
    await Promise.all([json(...of, 'resize', s, cat, '30', '100'), json(...of, 'write', s, cat, 'typed\n')]);
    await json(...of, 'kill', s, cat, '--signal', 'KILL');
    expect((await corral([...of, 'output', s, cat])).stdout).toContain('typed');
    expect((await corral([...of, 'output', s, cat, '-o', 'json'])).stdout).toContain('data_b64');
    const asks = await text(...of, 'spawn', s, '--allocate-tty', '--', 'sh', '-c', 'read x; echo "[$x]"; exit 5');
    const attached = await corral([...of, 'attach', s, asks.trim()], { input: 'a word\n' });
    expect(attached).toMatchObject({ code: 5, stdout: expect.stringContaining('[a word]') });
  });

  test('has files, which are copied both ways', async () => {
    await writeFile(join(home, 'a.txt'), 'hello');
    await mkdir(join(home, 'd/e'), { recursive: true });
    await writeFile(join(home, 'd/e/f.txt'), 'deep');
    await Promise.all([text('cp', 'a.txt', `${s}:/tmp/`), json('browsers', 'fs', 'cp', '-r', 'd', `${s}:/tmp/d`)]);
    const fs = ['browsers', 'fs'] as const;
    const [cat, list] = await Promise.all([
      text(...fs, 'cat', s, '/tmp/a.txt'),
      json(...fs, 'ls', s, '/tmp'),
      json(...fs, 'stat', s, '/tmp/a.txt'),
      json('cp', `${s}:/tmp/a.txt`, 'back.txt'),
      text('cp', '-r', `${s}:/tmp/d`, 'd2'),
      json(...fs, 'mkdir', s, '/tmp/one/two'),
      corral(['-o', 'json', ...fs, 'write', s, '/tmp/typed.txt'], { input: 'from stdin' }),
    ]);
    expect(cat).toBe('hello');
    expect(list).toEqual(expect.arrayContaining([expect.objectContaining({ name: 'a.txt', size_bytes: 5 })]));
    expect(await readFile(join(home, 'back.txt'), 'utf8')).toBe('hello');
    expect(await readFile(join(home, 'd2/e/f.txt'), 'utf8')).toBe('deep');
    expect(await text(...fs, 'cat', s, '/tmp/typed.txt')).toBe('from stdin');
    await json(...fs, 'chmod', s, '600', '/tmp/a.txt');
    await json(...fs, 'mv', s, '/tmp/a.txt', '/tmp/one/b.txt');
    await json(...fs, 'rm', s, '/tmp/one/b.txt');
    await json(...fs, 'rm', '-r', s, '/tmp/one');
    expect(await corral(['cp', 'd', `${s}:/tmp/x`])).toMatchObject({ code: 2, stderr: expect.stringContaining('-r') });
    expect(await corral(['cp', 'a.txt', 'b.txt'])).toMatchObject({ code: 2 });
  });

  test('reports changes in a directory', async () => {
    const watching = corral(['browsers', 'fs', 'watch', s, '/tmp', '--count', '1', '-o', 'json']);
    let over = false;
    const done = watching.finally(() => (over = true));
    // The watch may begin after the first files: so one is made after another until it has seen one.
    for (let count = 0; !over; count++)
      await service.call('PUT', `/browsers/${id}/fs/create_directory`, { path: `/tmp/seen-${count}` });
    expect(JSON.parse((await done).stdout)).toMatchObject({ type: 'CREATE', is_dir: true });
  });

  test('has a mouse, a keyboard and a clipboard', async () => {
    const of = ['browsers', 'computer'] as const;
    await json(...of, 'move', s, '10', '20');
    expect(await json(...of, 'position', s)).toEqual({ x: 10, y: 20 });
    await json(...of, 'click', s, '10', '20', '--num-clicks', '2');
    await json(...of, 'drag', s, '--path', '[[1,1],[30,30]]');
    await json(...of, 'scroll', s, '10', '20', '--delta-y', '-3');
    await json(...of, 'type', s, 'some words');
    await json(...of, 'key', s, 'Return', 'Tab');
    await json(...of, 'cursor', s, '--hidden');
    await json(...of, 'paste', s, 'clipped');
    await json(...of, 'copy', s);
    await json(...of, 'batch', s, '--actions', '[{"type":"move_mouse","move_mouse":{"x":5,"y":6}}]');
    expect(await json(...of, 'screenshot', s, '--file', 'shot.png')).toMatchObject({ file: 'shot.png' });
    expect((await readFile(join(home, 'shot.png'))).subarray(1, 4).toString()).toBe('PNG');
  });

  test('runs Playwright code, sends requests as its browser, and shows its logs', async () => {
    const code = `await page.goto(${JSON.stringify(pages.url)}); return { url: page.url() }`;
    const [executed, body, , failed] = await Promise.all([
      json('browsers', 'playwright', 'execute', s, code),
      corral(['browsers', 'curl', s, pages.url, '-H', 'X-Mine: yes']),
      json('browsers', 'curl', s, pages.url),
      corral(['browsers', 'playwright', 'execute', s, 'throw new Error("no luck")']),
    ]);
    expect(executed).toMatchObject({ success: true, result: { url: expect.stringContaining(pages.url) } });
    expect(body.code).toBe(0);
    expect(body.stdout).toContain('<');
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('no luck') });
    expect((await corral(['browsers', 'logs', s, '-o', 'json'])).code).toBe(0);
  });

  test('is recorded, and its events are shown', async () => {
    await json('browsers', 'update', s, '--telemetry.enabled');
    const following = corral(['browsers', 'telemetry', 'follow', s, '--count', '1', '-o', 'json']);
    let over = false;
    const done = following.finally(() => (over = true));
    while (!over) await service.call('POST', `/browsers/${id}/computer/move_mouse`, { x: 1, y: 1 });
    expect(JSON.parse((await done).stdout)).toMatchObject({ seq: expect.any(Number) });
    const of = ['browsers', 'telemetry'] as const;
    expect((await json(...of, 'events', s)).length).toBeGreaterThan(0);
    expect(await json(...of, 'export', s, '--as', 'jsonl', '--file', 't.jsonl')).toMatchObject({ file: 't.jsonl' });
    const har = await corral([...of, 'export', s]);
    expect(har.code, har.stderr).toBe(0);
    expect(JSON.parse(har.stdout)).toHaveProperty('log');

    const { replay_id } = await json('browsers', 'replays', 'start', s);
    await json('browsers', 'replays', 'stop', s, replay_id);
    expect(await json('browsers', 'replays', 'list', s)).toMatchObject([{ replay_id }]);
    await json('browsers', 'replays', 'download', s, replay_id, '--file', 'video.mp4');
    expect((await stat(join(home, 'video.mp4'))).size).toBeGreaterThan(0);
  });

  test('takes extensions, and is ended', async () => {
    await writeFile(join(home, 'mine.zip'), await zipOf(extensionFiles('mine')));
    const full = (await json('browsers', 'create', '--name', 'full')).session_id as string;
    await json('browsers', 'extend', full, 'mine.zip');
    expect(await json('browsers', 'get', full)).toMatchObject({ session_id: full });
    expect(await json('browsers', 'delete', full)).toBeNull();
    await refused('session_not_found', 4, 'browsers', 'get', full);
  });

  test('has a terminal, which knows its size and ends with the exit code of the shell', async () => {
    const socket = join(home, 'tmux');
    const tmux = async (...args: string[]) => {
      const child = spawn('tmux', ['-S', socket, '-f', '/dev/null', ...args], { env: environment({ TERM: 'xterm' }) });
      let out = '';
      child.stdout.setEncoding('utf8').on('data', (piece: string) => (out += piece));
      await new Promise((resolve) => child.on('close', resolve));
      return out;
    };
    const line = `${process.execPath} ${corralBin} browsers shell ${s}; echo ended with $?; exec cat`;
    used.add(`browsers shell ${s}`);
    await tmux('new-session', '-d', '-x', '100', '-y', '30', line);
    try {
      const screen = () => tmux('capture-pane', '-p');
      const poll = { timeout: 90_000, interval: 300 };
      await expect.poll(screen, poll).toMatch(/[$#] *$/m);
      await tmux('send-keys', 'stty size; echo $((40 + 2))', 'Enter');
      await expect.poll(screen, poll).toMatch(/^30 100\n42$/m);
      await tmux('resize-window', '-x', '90', '-y', '20');
      // The new size arrives a moment after the window has it.
      await expect
        .poll(async () => (await tmux('send-keys', 'clear; stty size', 'Enter'), screen()), poll)
        .toMatch(/^20 90$/m);
      await tmux('send-keys', 'exit 4', 'Enter');
      await expect.poll(screen, poll).toContain('ended with 4');
    } finally {
      await tmux('kill-server');
    }
  });

  test('is created for a script, and deleted when the script ends or fails', async () => {
    await writeFile(
      join(home, 'script.ts'),
      `enum Answer { right = 42 }
       export default async ({ page }: { page: { title(): Promise<string>; setContent(html: string): Promise<void> } }) => {
         await page.setContent('<title>made here</title>');
         return \`\${await page.title()} \${Answer.right} \${process.argv[2]}\`;
       };`,
    );
    await writeFile(join(home, 'exits.mjs'), 'export default () => process.exit(9);');
    await writeFile(join(home, 'waits.mjs'), "console.log('waiting'); setInterval(() => {}, 1000);");
    const [good, bad] = await Promise.all([
      corral(['browsers', 'run', 'script.ts', '--headless', '--', 'word']),
      corral(['browsers', 'run', 'exits.mjs', '--headless', '-o', 'json']),
    ]);
    expect(good).toMatchObject({ code: 0, stdout: 'made here 42 word\n' });
    expect(bad).toMatchObject({ code: 9, stdout: expect.stringContaining('"exit_code":9') });
    const child = spawn(process.execPath, [corralBin, 'browsers', 'run', 'waits.mjs', '--headless'], {
      cwd: home,
      env: environment(),
    });
    const over = new Promise((resolve) => child.on('close', resolve));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    child.kill('SIGTERM');
    await over;
    expect((await service.call('GET', '/browsers')).body).toMatchObject([{ session_id: id }]);
  });
});

describe('the other nouns', () => {
  test('pools lend browsers', async () => {
    await json('pools', 'create', '--name', 'shop', '--size', '1', '--headless');
    const lent = await json('pools', 'acquire', 'shop', '--acquire-timeout-seconds', '60');
    expect(await text('pools', 'list')).toMatch(/ shop .* 1 /);
    expect(await json('pools', 'list')).toMatchObject([{ name: 'shop' }]);
    await json('pools', 'release', 'shop', lent.session_id, '--no-reuse');
    await Promise.all([json('pools', 'get', 'shop'), json('pools', 'update', 'shop', '--timeout-seconds', '100')]);
    await json('pools', 'flush', 'shop');
    await json('pools', 'delete', 'shop', '--force');
  });

  test('profiles, extensions and proxies', async () => {
    const [extension, proxy] = await fewAtOnce([
      () => json('extensions', 'upload', 'mine.zip', '--name', 'mine'),
      () => json('proxies', 'create', '--type', 'custom', '--config', `{"host":"127.0.0.1","port":${closedPort}}`),
      () => json('profiles', 'create', '--name', 'kept'),
    ]);
    await fewAtOnce([
      () => json('profiles', 'list'),
      () => json('profiles', 'get', 'kept'),
      () => json('profiles', 'versions', 'kept'),
      () => corral(['-o', 'json', 'profiles', 'download', 'kept', '--file', 'kept.tar.zst']),
      () => refused('profile_version_not_found', 4, 'profiles', 'restore', 'kept', 'nope', '-o', 'json'),
      () => json('extensions', 'list'),
      () => json('extensions', 'get', 'mine'),
      () => json('extensions', 'download', extension.id, '--file', 'again.zip'),
      () => corral(['-o', 'json', 'extensions', 'store', 'https://example.com/', '--file', 'none.zip']),
      () => json('proxies', 'list'),
      () => json('proxies', 'get', proxy.id),
      () => json('proxies', 'update', proxy.id, '--name', 'office'),
      () => corral(['-o', 'json', 'proxies', 'check', proxy.id]),
    ]);
    expect(await readFile(join(home, 'again.zip'))).toEqual(await readFile(join(home, 'mine.zip')));
    expect(await json('profiles', 'update', 'kept', '--name', 'renamed')).toMatchObject({ name: 'renamed' });
    await fewAtOnce([
      () => json('profiles', 'delete', 'renamed'),
      () => json('extensions', 'delete', 'mine'),
      () => json('proxies', 'delete', proxy.id),
    ]);
  });

  test('credentials, providers and logins, with values from a file', async () => {
    await writeFile(join(home, 'values.json'), JSON.stringify({ user: 'me', pass: 'secret' }));
    const secret = 'JBSWY3DPEHPK3PXP';
    const made = await json(
      'credentials',
      'create',
      '--name',
      'site',
      '--domain',
      'site.example',
      '--values',
      '@values.json',
      '--totp-secret',
      secret,
    );
    expect(made).toMatchObject({ value_keys: ['user', 'pass'] });
    const provider = {
      provider_type: 'http',
      name: 'vault',
      token: 'x'.repeat(40),
      server_url: `https://127.0.0.1:${closedPort}`,
    };
    await writeFile(join(home, 'provider.json'), JSON.stringify(provider));
    const [store, login] = await fewAtOnce([
      () => json('providers', 'create', '--body', '@provider.json'),
      () => json('auth', 'create', '--domain', 'site.example', '--profile-name', 'site', '--credential.name', 'site'),
    ]);
    await fewAtOnce([
      () => json('credentials', 'list'),
      () => json('credentials', 'get', 'site'),
      () => json('credentials', 'totp', 'site'),
      () => json('credentials', 'update', 'site', '--remove-value-keys', 'pass'),
      () => json('providers', 'list'),
      () => json('providers', 'get', store.id),
      () => json('providers', 'update', store.id, '--priority', '2'),
      () => corral(['-o', 'json', 'providers', 'test', store.id]),
      () => corral(['-o', 'json', 'providers', 'items', store.id]),
      () => json('auth', 'list'),
      () => json('auth', 'get', login.id),
      () => json('auth', 'update', login.id, '--no-health-checks'),
      () => json('auth', 'timeline', login.id),
      () => corral(['-o', 'json', 'auth', 'submit', login.id, '--mfa-option-id', 'sms']),
      () => corral(['-o', 'json', 'auth', 'code', login.id, '123456']),
      () => corral(['-o', 'json', 'auth', 'cancel', login.id]),
      () => corral(['-o', 'json', 'auth', 'recipe', login.id]),
      () => corral(['-o', 'json', 'auth', 'explain', login.id]),
      () => refused('connection_not_found', 4, 'auth', 'follow', 'nope', '-o', 'json'),
      () => refused('connection_not_found', 4, 'auth', 'login', 'nope', '-o', 'json'),
    ]);
    await json('auth', 'delete', login.id);
    await Promise.all([json('credentials', 'delete', 'site'), json('providers', 'delete', store.id)]);
  });

  test('projects, keys and the audit log', async () => {
    project = (await json('projects', 'create', 'shop')).id;
    const { key } = await json('keys', 'create', '--name', 'ci', '--project', 'shop', '--days', '3');
    const { id } = (await json('keys', 'list')).find(({ name }: { name: string }) => name === 'ci');
    expect((await service.call('GET', '/browsers', undefined, { authorization: `Bearer ${key}` })).status).toBe(200);
    await fewAtOnce([
      () => json('projects', 'list'),
      () => json('projects', 'get', project),
      () => json('projects', 'limits', 'set', project, '--max-concurrent-sessions', '3'),
      () => json('projects', 'update', project, '--name', 'store'),
      () => json('keys', 'get', id),
      () => json('keys', 'update', id, '--name', 'ci2'),
    ]);
    expect(await json('projects', 'limits', 'get', project)).toMatchObject({ max_concurrent_sessions: 3 });
    await json('keys', 'rotate', id);
    await json('keys', 'revoke', id);
    expect(await text('keys', 'list', '--all')).toMatch(new RegExp(`^${id} .*revoked`, 'm'));
    expect((await json('audit', 'list', '--all')).length).toBeGreaterThan(5);
    expect(await json('audit', 'export', '--file', 'audit.jsonl')).toMatchObject({ entries: expect.any(Number) });
    await json('projects', 'delete', project);
  });

  test('changes in a project are streamed', async () => {
    let over = false;
    const done = corral(['events', '--count', '1', '-o', 'json']).finally(() => (over = true));
    // The stream may begin after the first changes, so changes are made until it has sent one.
    for (let count = 0; !over; count++) await service.call('POST', '/profiles', { name: `seen-${count}` });
    expect(JSON.parse((await done).stdout)).toMatchObject({ type: expect.any(String), id: expect.any(Number) });
  });

  test('apps are deployed, invoked and followed', async () => {
    await mkdir(join(home, 'app'));
    await writeFile(join(home, 'app/package.json'), packageJson(['@onkernel/sdk']));
    await writeFile(
      join(home, 'app/index.js'),
      `const { Kernel } = require('@onkernel/sdk');
       const app = new Kernel().app('greeter');
       app.action('greet', async (ctx, { name }) => { console.log('greeting', name); return 'hello ' + name; });
       app.action('fails', async (ctx) => { throw new Error('no luck'); });`,
    );
    const [{ deployment }] = await json('deploy', 'app', '--entrypoint', 'index.js');
    expect(await corral(['invoke', 'greeter', 'greet', '--payload', '{}', '-o', 'json'])).toMatchObject({ code: 0 });
    const greeted = await corral(['invoke', 'greeter', 'greet', '--payload', '{"name":"Ada"}']);
    expect(greeted).toMatchObject({ code: 0, stdout: expect.stringContaining('hello Ada') });
    expect(greeted.stderr).toContain('greeting Ada');
    expect(await corral(['invoke', 'greeter', 'fails'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no luck'),
    });
    const first = (await json('invocations', 'list')).find(
      (one: { action_name: string }) => one.action_name === 'greet',
    );
    const [apps, log] = await fewAtOnce([
      () => json('apps', 'list'),
      () => text('logs', first.id),
      () => corral(['logs', first.id, '-o', 'json']),
      () => json('deployments', 'list'),
      () => json('deployments', 'get', deployment),
      () => json('invocations', 'get', first.id),
      () => json('invocations', 'browsers', first.id),
      () => json('invocations', 'end-browsers', first.id),
      () => corral(['-o', 'json', 'invocations', 'end', first.id, '--status', 'failed']),
      () => corral(['invocations', 'follow', first.id, '-o', 'json']),
    ]);
    expect(apps).toMatchObject([{ app_name: 'greeter' }]);
    expect(log).toContain('greeting Ada');
    expect(await text('logs', 'greeter', '--version', 'latest')).toContain('npm install');
    await json('deployments', 'delete', deployment);
    expect((await corral(['-o', 'json', 'deployments', 'follow', deployment])).code).not.toBeNull();
  });

  test('contexts keep a service, and other users cannot read them', async () => {
    const env = { PATH: process.env['PATH']!, HOME: home };
    const login = ['login', service.url, '--name', 'work'];
    expect(await corral(login, { env, input: 'sk_wrong' })).toMatchObject({ code: 3 });
    expect(await corral([...login, '-o', 'json'], { env, input: `${service.key}\n` })).toMatchObject({ code: 0 });
    expect((await stat(join(home, '.config/corral/contexts.json'))).mode & 0o777).toBe(0o600);
    const listed = await corral(['contexts', 'list', '-o', 'json'], { env });
    expect(JSON.parse(listed.stdout)).toEqual([{ name: 'work', url: service.url, project: null, used: true }]);
    expect(listed.stdout).not.toContain(service.key);
    expect(await corral(['browsers', 'list'], { env })).toMatchObject({ code: 0 });
    expect((await corral(['-o', 'json', 'contexts', 'show'], { env })).stdout).toContain(service.url);
    expect(await corral(['-o', 'json', 'contexts', 'use', 'local'], { env })).toMatchObject({ code: 0 });
    expect(await corral(['browsers', 'list'], { env })).toMatchObject({ code: 2 });
    expect(await corral(['browsers', 'list', '--context', 'work'], { env })).toMatchObject({ code: 0 });
    expect(await corral(['-o', 'json', 'logout', 'work'], { env })).toMatchObject({ code: 0 });
    const onMachine = { ...env, CORRAL_DATA_DIR: service.dataDir, CORRAL_PORT: new URL(service.url).port };
    expect(await corral(['browsers', 'list'], { env: onMachine })).toMatchObject({ code: 0 });
    expect(JSON.parse((await corral(['doctor', '-o', 'json'])).stdout)).toHaveProperty('findings');
    expect(await text('about')).toMatch(/CORRAL_DATA_DIR +\/.*\n.*sandbox +/s);
    expect(Object.keys(await json('about'))).not.toEqual([]);
  });

  test('a running service is backed up, and the copy is a data directory', async () => {
    const onMachine = { PATH: process.env['PATH']!, HOME: home, CORRAL_DATA_DIR: service.dataDir };
    const copy = join(home, 'copy');
    const backup = (into: string) => corral(['backup', into, '-o', 'json'], { env: onMachine });
    const made = await backup(copy);
    expect(made, made.stderr).toMatchObject({ code: 0 });
    expect(JSON.parse(made.stdout)).toMatchObject({ directory: copy, bytes: expect.any(Number) });
    const listed = await corral(['keys', 'list', '--all', '-o', 'json'], {
      env: { ...onMachine, CORRAL_DATA_DIR: copy },
    });
    expect(listed, listed.stderr).toMatchObject({ code: 0 });
    const ids = (keys: { id: string }[]) => keys.map(({ id }) => id).sort();
    expect(ids(JSON.parse(listed.stdout))).toEqual(ids(await json('keys', 'list', '--all')));
    expect(await backup(copy)).toMatchObject({ code: 2, stderr: expect.stringContaining('not empty') });
    expect(await backup(service.dataDir)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('inside the data'),
    });
    expect((await stat(copy)).mode & 0o777).toBe(0o700);
  });
});

/** Run by other tests: on the machine of the service (start-and-stop, nodes), and without a service (cli-alone, mcp). */
const elsewhere = ['start', 'console', 'nodes', 'secrets rotate', 'mcp', 'completion'];
/** They give a terminal, or bytes as they are. */
const interactive = ['browsers shell', 'browsers process attach', 'browsers fs cat'];

test('every verb was run, and prints JSON for programs', async () => {
  const verbs: string[] = [];
  const visit = (verb: Verb, path: string) => {
    if (verb.verbs) verb.verbs.forEach((one) => visit(one, `${path} ${one.name}`));
    else verbs.push(path);
  };
  for (const noun of nouns.filter(({ name }) => !elsewhere.includes(name))) {
    const loaded = await noun.load!();
    if (Array.isArray(loaded)) (loaded as Verb[]).forEach((verb) => visit(verb, `${noun.name} ${verb.name}`));
    else visit(loaded as Verb, noun.name);
  }
  const missed = (lines: ReadonlySet<string>) =>
    verbs.filter((path) => ![...lines].some((line) => `${line} `.startsWith(`${path} `)));
  expect(missed(used).filter((path) => !elsewhere.includes(path))).toEqual([]);
  // The `corral` function of the support file rejects output that is not JSON.
  expect(missed(asJson).filter((path) => ![...elsewhere, ...interactive].includes(path))).toEqual([]);
});
