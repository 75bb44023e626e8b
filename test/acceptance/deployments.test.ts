import Kernel from '@onkernel/sdk';
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { deploy, gitApp, packageJson, plainApp, startRepository, typescriptApp } from '../support/apps.ts';
import { zipOf } from '../support/extension-zip.ts';
import { traces } from '../support/leftovers.ts';
import { listenOnLoopback } from '../support/listen.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startRegistry } from '../support/npm-registry.ts';
import { startService, type Service } from '../support/service.ts';
import { startTlsFront } from '../support/tls-front.ts';

let service: Service;
let registry: Awaited<ReturnType<typeof startRegistry>>;
let outside: Awaited<ReturnType<typeof listenOnLoopback>>;
let client: Kernel;
let front: Awaited<ReturnType<typeof startTlsFront>>;
let plain: string;
beforeAll(async () => {
  registry = await startRegistry();
  outside = await listenOnLoopback(
    createServer((request, response) => void response.writeHead(request.url === '/' ? 200 : 404).end('from outside')),
  );
  front = await startTlsFront();
  service = await startService({
    CORRAL_NPM_REGISTRY: registry.url,
    CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${outside.port},127.0.0.1:${front.files}`,
    CORRAL_PUBLIC_URL: front.url,
    NODE_EXTRA_CA_CERTS: front.ca,
    CORRAL_SESSION_HOSTS: 'http://*.sessions.test', // resolved nowhere but in the cells of apps
    CORRAL_APP_MEMORY_MB: '256',
    CORRAL_MAX_INVOCATIONS: '6',
  });
  front.leadTo(new URL(service.url));
  client = new Kernel({ apiKey: service.key, baseURL: service.url, timeout: 110_000, maxRetries: 0 });
  const env_vars = { GREETING: 'hi', SECRET_WORD: 'xyzzy-plugh' };
  const { id, lines, deployment } = await deploy(client, await plainApp(), 'index.js', { env_vars });
  if (deployment.status !== 'running') throw new Error(`${deployment.status_reason}\n${lines.join('\n')}`);
  plain = id;
}, 300_000);
afterAll(async () => {
  await service?.close();
  await registry?.close();
  await outside?.close();
  await front?.close();
});

const invoke = (action: string, payload?: unknown, more: Partial<Kernel.InvocationCreateParams> = {}) =>
  client.invocations.create({
    app_name: 'plain',
    action_name: action,
    version: 'latest',
    ...(payload === undefined ? {} : { payload: JSON.stringify(payload) }),
    ...more,
  });
const outputOf = async (action: string, payload?: unknown) => {
  const done = await invoke(action, payload);
  expect(done, done.status_reason).toMatchObject({ status: 'succeeded' });
  return JSON.parse(done.output ?? 'null');
};
const linesOf = async (id: string) => {
  const lines: string[] = [];
  for await (const event of await client.invocations.follow(id)) if (event.event === 'log') lines.push(event.message);
  return lines;
};
const ended = async (id: string) => {
  await expect.poll(() => client.invocations.retrieve(id), { timeout: 60_000 }).toMatchObject({ status: 'failed' });
};

describe('a deployment', () => {
  test('is shown with its apps, and without the values of its variables', async () => {
    const shown = await client.deployments.retrieve(plain);
    expect(shown).toMatchObject({
      status: 'running',
      region: 'local.zone-a',
      source_type: 'file',
      entrypoint_rel_path: 'index.js',
      env_vars: { GREETING: '', SECRET_WORD: '' },
      source_checksum: expect.stringMatching(/^[\da-f]{64}$/),
    });
    const list = async (query: object) =>
      (await client.deployments.list(query)).getPaginatedItems().map(({ id }) => id);
    expect(await list({ app_name: 'plain', app_version: 'latest' })).toEqual([plain]);
    expect(await list({ query: 'PLAI' })).toEqual([plain]);
    expect(await list({ app_name: 'other' })).toEqual([]);
    expect(await service.call('GET', '/deployments?app_version=latest')).toMatchObject({ status: 400 });
    const [app] = (await client.apps.list({ app_name: 'plain' })).getPaginatedItems();
    expect(app).toMatchObject({ deployment: plain, version: 'latest', env_vars: { GREETING: '' } });
    expect(app!.actions.map(({ name }) => name)).toContain('echo');
    expect(registry.asked).toContain('@onkernel/sdk');
  });

  test('is refused with a sentence when its form is wrong', async () => {
    const zip = await zipOf({ 'index.js': '' });
    const refused = async (more: Record<string, string>, file: Buffer | null = zip) => {
      const form = new FormData();
      if (file) form.append('file', new Blob([new Uint8Array(file)]), 'app.zip');
      for (const [name, value] of Object.entries({ entrypoint_rel_path: 'index.js', ...more }))
        form.append(name, value);
      const headers = { authorization: `Bearer ${service.key}` };
      const answer = await fetch(`${service.url}/deployments`, { method: 'POST', headers, body: form });
      expect(answer.status).toBe(400);
      return ((await answer.json()) as { message: string }).message;
    };
    expect(await refused({ entrypoint_rel_path: 'other.js' })).toContain('the zip has no such file');
    expect(await refused({ entrypoint_rel_path: 'main.py' })).toContain('Python');
    expect(await refused({ 'env_vars[KERNEL_API_KEY]': 'x' })).toContain('KERNEL_API_KEY');
    expect(await refused({ region: 'moon.base-1' })).toContain('local.zone-a');
    expect(await refused({}, Buffer.from('no zip'))).toContain('zip');
    expect(await refused({}, null)).toContain('either file');
    expect(await refused({ source: '{"type":"github"}' })).toContain('either file');
  });

  test('that cannot be built fails with the reason and the end of its log', async () => {
    const zip = await zipOf({ 'index.js': "throw new Error('broken at the top')", 'package.json': '{}' });
    const { deployment } = await deploy(client, zip, 'index.js');
    expect(deployment).toMatchObject({ status: 'failed', status_reason: expect.stringContaining('broken at the top') });
    const unknown = await zipOf({ 'index.js': '', 'package.json': '{"dependencies":{"not-in-the-registry":"*"}}' });
    const second = await deploy(client, unknown, 'index.js');
    expect(second.deployment.status_reason).toContain('npm install ended with code');
    expect(second.lines.join('\n')).toContain('not-in-the-registry');
  }, 300_000);
});

test('a deployment comes from a private git repository, by the system’s git, and its token is nowhere to be read', async () => {
  const repository = await startRepository({
    'app/index.mjs': gitApp,
    'app/package.json': packageJson(['@onkernel/sdk']),
  });
  try {
    const token = 'token-of-a-private-repository';
    const source = {
      type: 'github',
      url: `https://127.0.0.1:${front.files}/repo.git`,
      ref: 'main',
      path: 'app',
      entrypoint: 'index.mjs',
      auth: { method: 'github_token', token },
    } as const;
    front.serve(`Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`, repository.file);
    const { id } = await client.deployments.create({ source });
    await expect
      .poll(() => client.deployments.retrieve(id), { timeout: 120_000 })
      .toMatchObject({
        status: 'running',
        source_type: 'github',
        source_ref: 'main',
        source_path: 'app',
      });
    const done = await client.invocations.create({ app_name: 'from-git', action_name: 'run', version: 'latest' });
    expect(done).toMatchObject({ status: 'succeeded', output: '"from git"' });
    // What a session may not reach, a repository may not be either.
    for (const wrong of [
      { url: `https://127.0.0.1:${registry.port}/x.git` },
      { auth: { method: 'github_token', token: `${token}-of-another` } as const },
    ]) {
      const refused = await client.deployments.create({ source: { ...source, ...wrong } });
      await expect
        .poll(() => client.deployments.retrieve(refused.id), { timeout: 120_000 })
        .toMatchObject({ status: 'failed', status_reason: expect.stringContaining('The source cannot be fetched') });
    }
    const written = await service.app.store.db.rows(sql`select to_jsonb(d)::text as row from deployments d
      union all select message from run_logs union all select to_jsonb(s)::text from secrets s
      union all select to_jsonb(a)::text from audit_log a`);
    for (const text of [JSON.stringify(written), service.log.join()]) {
      expect(text).not.toContain(token);
      expect(text).not.toContain(Buffer.from(`x-access-token:${token}`).toString('base64').slice(0, -4));
    }
  } finally {
    await repository.remove();
  }
}, 300_000);

describe('an action', () => {
  test('gets its payload, prints lines that can be followed, and answers', async () => {
    const done = await invoke('echo', { a: 1 });
    expect(done).toMatchObject({ status: 'succeeded', action_name: 'echo' });
    expect(JSON.parse(done.output!)).toMatchObject({ payload: { a: 1 }, id: done.id, greeting: 'hi' });
    expect(await linesOf(done.id)).toEqual(['echo says {"a":1}']);
    expect(await client.invocations.retrieve(done.id)).toMatchObject({
      app_name: 'plain',
      payload: '{"a":1}',
      finished_at: expect.any(String),
    });
    const found = (await client.invocations.list({ query: done.id, status: 'succeeded' })).getPaginatedItems();
    expect(found).toHaveLength(1);
  });

  test('runs in a worker that is still warm from the one before', async () => {
    const { runs } = await outputOf('echo', {});
    // A worker is given back a moment after its answer, so the next action may get another one, whose count begins at one.
    await expect.poll(async () => (await outputOf('echo', {})).runs, { timeout: 60_000 }).toBeGreaterThan(runs);
  });

  test('that is not there is refused, and so is a payload that is no JSON', async () => {
    await expect(invoke('nope')).rejects.toMatchObject({ status: 404, error: { code: 'app_not_found' } });
    await expect(invoke('echo', undefined, { version: '7' })).rejects.toMatchObject({ status: 404 });
    await expect(invoke('echo', undefined, { payload: '{' })).rejects.toMatchObject({ status: 400 });
  });

  test('that throws, or ends its process, fails by itself and with its last lines', async () => {
    const [thrown, exited, fine] = await Promise.all([invoke('throws'), invoke('exits'), invoke('echo', {})]);
    expect(thrown).toMatchObject({ status: 'failed', status_reason: expect.stringContaining('no luck today') });
    expect(exited).toMatchObject({ status: 'failed', status_reason: expect.stringMatching(/code 3[^]*about to exit/) });
    expect(fine, fine.status_reason).toMatchObject({ status: 'succeeded' });
  });

  test('that takes more memory than it may, or forks without end, is ended and harms no other', async () => {
    const eaten = await invoke('eats-memory');
    expect(eaten).toMatchObject({ status: 'failed', status_reason: expect.stringContaining('256 MiB') });
    expect((await outputOf('forks')).made).toBeLessThan(5000);
    expect((await outputOf('echo', {})).greeting).toBe('hi');
  }, 300_000);

  test('sees nothing of the host, of other apps or of the service, and cannot change its own files', async () => {
    const paths = [
      service.dataDir,
      '/proc/1/environ',
      '/etc/shadow',
      '/root',
      '/home/corral/app',
      '/opt/app/package.json',
      '/mnt',
    ];
    const [data, init, shadow, root, other, own, stage] = await outputOf('reads', { paths });
    expect([data, shadow, other]).toEqual(['ENOENT', 'ENOENT', 'ENOENT']);
    expect(['ENOENT', 'EACCES']).toContain(root);
    expect(String(init)).not.toContain('CORRAL');
    expect(own).toContain('@onkernel/sdk');
    expect(stage).toBe('ENOENT');
    expect(await outputOf('writes')).toBe('EROFS');
  });

  test('reaches this service and allowed addresses, and no other address of the machine', async () => {
    expect(await outputOf('fetches', { url: `${front.url}/health` })).toMatchObject({ status: 200 });
    const allowed = await outputOf('fetches', { url: `http://127.0.0.1:${outside.port}/` });
    expect(allowed).toEqual({ status: 200, text: 'from outside' });
    const refused = await invoke('fetches', { url: `http://127.0.0.1:${registry.port}/` });
    expect(refused).toMatchObject({ status: 'failed', status_reason: expect.stringContaining('fetch failed') });
  });

  test('has a key and secrets of its own, which its log hides', async () => {
    const done = await invoke('secret');
    const { key, url } = JSON.parse(done.output!);
    expect(url).toBe(front.url);
    expect(await linesOf(done.id)).toEqual(['the secret is [redacted], the key [redacted]']);
    const worker = new Kernel({ apiKey: key, baseURL: service.url, maxRetries: 0 });
    expect((await worker.invocations.retrieve(done.id)).status).toBe('succeeded');
    await expect(worker.apiKeys.create({ name: 'longer' })).rejects.toMatchObject({ status: 403 });
    const keys = (await client.apiKeys.list()).getPaginatedItems();
    expect(keys.every(({ name }) => !name.includes('deployment'))).toBe(true);
  });
});

describe('an invocation', () => {
  test('that is asynchronous is cancelled by PATCH: its processes and its browsers end', async () => {
    const { id, status } = await invoke('browses', { wait: true }, { async: true });
    expect(status).toBe('queued');
    await expect
      .poll(async () => (await client.invocations.listBrowsers(id)).browsers.length, { timeout: 60_000 })
      .toBe(1);
    expect(await client.invocations.update(id, { status: 'failed' })).toMatchObject({ status: 'failed' });
    await expect.poll(async () => (await client.invocations.listBrowsers(id)).browsers).toEqual([]);
    await expect(client.invocations.update(id, { status: 'failed' })).rejects.toMatchObject({ status: 400 });
    await expect(client.browsers.create({ invocation_id: id })).rejects.toMatchObject({ status: 400 });
    const endless = await invoke('never-ends', undefined, { async: true });
    await expect
      .poll(() => client.invocations.retrieve(endless.id), { timeout: 60_000 })
      .toMatchObject({ status: 'running' });
    await client.invocations.update(endless.id, { status: 'failed' });
    await ended(endless.id);
  }, 300_000);

  test('that runs too long fails, and says so', async () => {
    const { id } = await invoke('waits', { ms: 600_000 }, { async: true, async_timeout_seconds: 10 });
    await ended(id);
    expect((await client.invocations.retrieve(id)).status_reason).toContain('longer than 10 s');
  }, 300_000);

  test('is queued when its project is at its limit; an invocation that cannot wait is refused', async () => {
    const project = await client.projects.list().then((page) => page.getPaginatedItems()[0]!);
    await client.projects.limits.update(project.id, { max_concurrent_invocations: 1 });
    const first = await invoke('never-ends', undefined, { async: true });
    await expect
      .poll(() => client.invocations.retrieve(first.id), { timeout: 60_000 })
      .toMatchObject({ status: 'running' });
    const second = await invoke('echo', {}, { async: true });
    await expect(invoke('echo', {})).rejects.toMatchObject({
      status: 429,
      error: { code: 'invocation_limit_reached' },
    });
    expect(await client.invocations.retrieve(second.id)).toMatchObject({ status: 'queued' });
    await client.invocations.update(first.id, { status: 'succeeded', output: '"enough"' });
    await expect
      .poll(() => client.invocations.retrieve(second.id), { timeout: 60_000 })
      .toMatchObject({ status: 'succeeded' });
    expect(await client.invocations.retrieve(first.id)).toMatchObject({ status: 'succeeded', output: '"enough"' });
    await client.projects.limits.update(project.id, { max_concurrent_invocations: 0 });
  }, 300_000);
});

test('an app in TypeScript drives a browser of its invocation, which ends with it', async () => {
  const { deployment, lines } = await deploy(client, await typescriptApp(), 'src/index.ts', { version: '1.0' });
  expect(deployment, lines.join('\n')).toMatchObject({ status: 'running' });
  const done = await client.invocations.create({
    app_name: 'browsing',
    action_name: 'title',
    version: '1.0',
    payload: JSON.stringify({ html: '<title>made here</title>' }),
  });
  expect(done, done.status_reason).toMatchObject({ status: 'succeeded' });
  const { title, browsers, session, socket } = JSON.parse(done.output!);
  expect({ title, browsers, socket }).toEqual({ title: 'made here', browsers: [session], socket: 101 });
  await expect.poll(() => service.call('GET', `/browsers/${session}`)).toMatchObject({ status: 404 });

  const again = await deploy(client, await typescriptApp(), 'src/index.ts', { version: '1.0' });
  expect(again.deployment.status_reason).toContain('force');
}, 300_000);

test('a newer deployment takes the app over, and after the last stop nothing is left', async () => {
  const key = JSON.parse((await invoke('secret')).output!).key as string;
  const running = await invoke('waits', { ms: 2000 }, { async: true });
  const { id } = await deploy(client, await plainApp(), 'index.js');
  expect((await outputOf('echo', {})).greeting).toBeUndefined();
  await expect
    .poll(() => client.invocations.retrieve(running.id), { timeout: 60_000 })
    .toMatchObject({ status: 'succeeded' });
  await expect.poll(() => client.deployments.retrieve(plain), { timeout: 60_000 }).toMatchObject({ status: 'stopped' });
  await expect
    .poll(() => service.call('GET', '/browsers', undefined, { authorization: `Bearer ${key}` })) // it ends after its deployment
    .toMatchObject({ status: 401 });

  const endless = await invoke('never-ends', undefined, { async: true });
  await expect
    .poll(() => client.invocations.retrieve(endless.id), { timeout: 60_000 })
    .toMatchObject({ status: 'running' });
  for await (const deployment of client.deployments.list()) await client.deployments.delete(deployment.id);
  await ended(endless.id);
  expect(await client.deployments.retrieve(id)).toMatchObject({ status: 'stopped' });
  expect((await client.apps.list()).getPaginatedItems()).toEqual([]);
  await expect(invoke('echo', {})).rejects.toMatchObject({ status: 404 });
  const rows = sql`select 'chunk' as what from deployment_chunks union all select 'secret' from secrets
    union all select 'key' from api_keys where hidden and deleted_at is null`;
  await expect.poll(() => service.app.store.db.rows(rows)).toEqual([]);
  await expectNothingLeft(service);
  const workshop = traces(service.dataDir, 'workshop/cells');
  await expect.poll(() => [...workshop.directories(), ...workshop.cgroups(), ...workshop.processes()]).toEqual([]);
}, 300_000);
