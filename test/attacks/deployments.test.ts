import Kernel, { toFile } from '@onkernel/sdk';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { unpackBuild } from '../../src/chromium/workshop/artifact.ts';
import { readReport, refuseNames } from '../../src/chromium/workshop/build.ts';
import { packageCaches } from '../../src/chromium/workshop/caches.ts';
import { cutLines } from '../../src/chromium/workshop/lines.ts';
import { outcomeOf, readReports } from '../../src/chromium/workshop/worker-reports.ts';
import { redactor } from '../../src/deployments/redact.ts';
import { silent } from '../../src/lib/log.ts';
import { bareSdk as sdk, deploy, startRepository } from '../support/apps.ts';
import { zipOf } from '../support/extension-zip.ts';
import { requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';
import { startTlsFront } from '../support/tls-front.ts';

const isolation = await requireSandbox();
const MIB = 2 ** 20;

/** The app of a tenant is taken over: what it prints, reports, returns and unpacks to is chosen to harm the service and its neighbours. */
describe('the output of an app uses limited resources of the service', () => {
  afterEach(() => void vi.useRealTimers());

  test('a secret and lines that a search compares again and again cost no seconds each', () => {
    const redact = redactor(Array.from({ length: 8 }, (_, at) => `${'a'.repeat(16_000 - at)}b${'a'.repeat(16_000)}`));
    const line = 'a'.repeat(60_000);
    for (let count = 0; count < 50; count++) expect(redact(line)).not.toContain('b'); // took ten seconds for each line
  });

  test('a program that prints without end is read at a bounded pace', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let pushed = 0;
    const endless = new Readable({
      highWaterMark: 64 * 1024,
      read() {
        pushed += 64 * 1024;
        if (pushed > 64 * MIB) this.destroy();
        else setImmediate(() => this.push('y\n'.repeat(32 * 1024)));
      },
    });
    let lines = 0;
    cutLines(endless, () => void lines++);
    const rest = async () => {
      for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
      return lines;
    };
    const first = await rest();
    expect(first).toBeGreaterThan(0);
    expect(endless.isPaused()).toBe(true);
    expect(await rest()).toBe(first);
    vi.advanceTimersByTime(1000);
    expect(await rest()).toBeGreaterThan(first);
    endless.destroy();
  });

  test('a worker that reports nonsense, or twice, is ended at the first of it', async () => {
    for (const nonsense of ['\n'.repeat(100_000), '{"ready":true}\n{"ready":true}\n', 'x'.repeat(11 * MIB)]) {
      const [pipe, taken, refused] = [new PassThrough(), [] as unknown[], [] as string[]];
      const take = (said: unknown) => taken.push(said) === 1;
      readReports(pipe, { take, refuse: (why) => void refused.push(why) });
      for (let at = 0; at < nonsense.length; at += MIB) pipe.write(nonsense.slice(at, at + MIB));
      pipe.end(nonsense);
      await expect.poll(() => refused).toHaveLength(1);
      expect(taken.length).toBeLessThanOrEqual(2);
    }
  });

  test('an output is JSON of a bounded size, or none', async () => {
    expect(await outcomeOf('{"a":1}')).toEqual({ output: '{"a":1}' });
    expect(await outcomeOf('"\0"')).toEqual({ failure: 'The output is not JSON.' });
    expect(await outcomeOf(JSON.stringify('x'.repeat(5 * MIB)))).toEqual({
      failure: expect.stringContaining('4.5 MiB'),
    });
  });

  test('a build that reports byte by byte is read as any other, and one without end is refused', async () => {
    const bytes = async function* (text: string) {
      for (const byte of Buffer.from(text)) yield Buffer.from([byte]);
    };
    const archive: Buffer[] = [];
    const take = async (piece: Buffer) => void archive.push(piece);
    const report = { entry: 'index.js', apps: [{ name: 'a', actions: [{ name: 'x'.repeat(200) }] }] };
    expect(await readReport(bytes(`${JSON.stringify(report)}\ntar`), take)).toEqual(report);
    expect(Buffer.concat(archive).toString()).toBe('tar');
    for (const name of ['a\0b', '\ud800', '', 'x'.repeat(256)])
      for (const apps of [[{ name, actions: [] }], [{ name: 'a', actions: [{ name }] }]])
        expect(() => refuseNames({ entry: 'index.js', apps })).toThrow('Names of apps and actions');
    expect(() => refuseNames({ entry: 'a\0.js', apps: [] })).toThrow('no file should have');
    const endless = Readable.from(Array.from({ length: 20 }, () => Buffer.alloc(MIB / 8, 'x')));
    await expect(readReport(endless, take)).rejects.toThrow('invalid result');
  });
});

describe('a build that was made to be unpacked', () => {
  let dir: string;
  beforeAll(async () => void (dir = await mkdtemp(join(tmpdir(), 'corral-builds-'))));
  afterAll(() => rm(dir, { recursive: true, force: true }));

  async function archiveOf(fill: (at: string) => Promise<void>, ...options: string[]): Promise<Buffer> {
    const at = await mkdtemp(join(dir, 'source-'));
    await fill(at);
    const args = ['--create', ...options, '--gzip', `--file=${at}.tgz`, '--directory', at, '.'];
    await promisify(execFile)('tar', args);
    return readFile(`${at}.tgz`);
  }
  const unpack = (name: string, archive: Buffer, short = async () => false) =>
    unpackBuild(join(dir, name), Readable.from([archive]), isolation, {
      diskBytes: 8 * MIB,
      short,
      signal: AbortSignal.timeout(60_000),
    });

  test('with the rights of its builder has those of the service', async () => {
    const archive = await archiveOf(async (at) => {
      await writeFile(join(at, 'tool'), '');
      await chmod(join(at, 'tool'), 0o6777);
    });
    const { mode, uid } = await stat(join((await unpack('rights', archive)).home, 'tool'));
    expect({ mode: mode & 0o7777, uid }).toEqual({ mode: 0o755, uid: process.getuid?.() });
  });

  test('to a thousand times its size, or to countless files, is refused and leaves nothing', async () => {
    const zeros = await archiveOf(async (at) => {
      await writeFile(join(at, 'zeros'), '');
      await truncate(join(at, 'zeros'), 64 * MIB);
    });
    const files = await archiveOf(async (at) => {
      await mkdir(join(at, 'many'));
      for (let count = 0; count < 1000; count++) await writeFile(join(at, 'many', String(count)), '');
    });
    const hole = await archiveOf(async (at) => {
      await writeFile(join(at, 'hole'), '');
      await truncate(join(at, 'hole'), 2 ** 40);
    }, '--sparse');
    const holes = await archiveOf(async (at) => {
      for (let count = 0; count < 10; count++) {
        await writeFile(join(at, String(count)), '');
        await truncate(join(at, String(count)), MIB);
      }
    }, '--sparse');
    for (const [name, archive] of Object.entries({ zeros, files, hole, holes })) {
      await expect(unpack(name, archive)).rejects.toThrow('more on the disk than the 8 MiB');
      expect(existsSync(join(dir, name))).toBe(false);
    }
    const small = await archiveOf((at) => writeFile(join(at, 'file'), 'x'));
    await expect(unpack('full', small, async () => true)).rejects.toThrow('disk of the node is full');
    expect(existsSync(join(dir, 'full'))).toBe(false);
  }, 300_000);
});

describe('the packages that a build has downloaded', () => {
  let dir: string;
  beforeAll(async () => void (dir = await mkdtemp(join(tmpdir(), 'corral-caches-'))));
  afterAll(() => rm(dir, { recursive: true, force: true }));

  /** The home of a build's cell. */
  const cell = async (name: string) => {
    await mkdir(join(dir, name, 'home'), { recursive: true });
    return join(dir, name);
  };

  test('are for builds of the same project only, with any content, and expire', async () => {
    const counted = new Map<string, number>();
    const count = async (projectId: string, bytes: number) => {
      counted.set(projectId, bytes);
      return projectId !== 'full';
    };
    const most = { bytes: 8 * MIB, inodes: 1000 };
    const caches = packageCaches({ dir: join(dir, 'caches'), isolation, most, count, log: silent });
    const [first, other, link, second] = [await cell('1'), await cell('2'), await cell('3'), await cell('4')];
    await caches.take('one', first);
    await mkdir(join(first, 'home/.npm'));
    await writeFile(join(first, 'home/.npm/poison'), 'x');
    await caches.keep('one', first);
    await caches.take('two', other);
    expect(existsSync(join(other, 'home/.npm'))).toBe(false);
    await symlink('../caches/one', join(link, 'home/.npm'));
    await caches.keep('two', link);
    await caches.remove('two');
    await caches.take('one', second);
    expect(await readFile(join(second, 'home/.npm/poison'), 'utf8')).toBe('x');
    expect(await caches.projects()).toEqual([]);

    for (let at = 0; at < 18; at++) {
      const made = await cell(`many-${at}`);
      await mkdir(join(made, 'home/.npm'));
      await caches.keep(`project-${at}`, made);
    }
    expect(await caches.projects()).toHaveLength(16);
    expect(await caches.projects()).toContain('project-17');
    let left = 16;
    await caches.makeRoom(() => left-- > 14);
    expect(await caches.projects()).toHaveLength(14);
    expect(await caches.projects()).toContain('project-17');

    // Counted by what they would be without their holes, and removed when that is too much.
    for (const [project, megabytes] of Object.entries({ modest: 4, huge: 64, full: 1 })) {
      const made = await cell(`sparse-${project}`);
      await mkdir(join(made, 'home/.npm'));
      await writeFile(join(made, 'home/.npm/hole'), '');
      await truncate(join(made, 'home/.npm/hole'), megabytes * MIB);
      await caches.keep(project, made);
    }
    expect(counted.get('modest')).toBeGreaterThanOrEqual(4 * MIB);
    expect(await caches.projects()).toContain('modest');
    for (const project of ['huge', 'full']) {
      expect(counted.get(project)).toBe(0);
      expect(await caches.projects()).not.toContain(project);
    }
  });
});

const hostile = `
const { apps } = require('@onkernel/sdk');
const fs = require('node:fs');
const report = (said) => fs.writeSync(4, JSON.stringify(said) + '\\n');
const actions = {
  nul: async () => { throw new Error('a\\0b, ' + process.env.SECRET_WORD); },
  lies: async ({ invocation_id: id }) => { report({ done: id, output: 'no \\0 JSON' }); await new Promise(() => {}); },
  babbles: async () => { for (;;) { fs.writeSync(4, '\\n'.repeat(60000)); await new Promise((go) => setImmediate(go)); } },
  key: async () => process.env.KERNEL_API_KEY,
  mounts: async () => fs.readFileSync('/proc/self/mountinfo', 'utf8'),
  waits: async () => new Promise(() => setInterval(() => {}, 1000)),
};
const getActions = () => Object.entries(actions).map(([name, handler]) => ({ name, handler }));
apps.push({ name: 'hostile', getActions });
`;

/**
 * What runs when a package is installed: it looks for the token of the repository, as it is and as git sends it, in the memory of every
 * process and in every file of the home, and for a way to the repository. The patterns do not match themselves.
 */
const search = (port: number) => `
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
const token = /ghp_aToken[A-Za-z]{9}|eC1hY2Nlc3MtdG9rZW46[A-Za-z0-9]{9}/;
const found = [];
let searched = 0;
const look = (place, read) => {
  try {
    if (token.test(read())) found.push(place);
  } catch {}
};
const piece = Buffer.alloc(2 ** 20);
function lookInMemory(pid) {
  const maps = fs.readFileSync('/proc/' + pid + '/maps', 'utf8');
  const memory = fs.openSync('/proc/' + pid + '/mem');
  searched++;
  for (const [, from, to] of maps.matchAll(/^([0-9a-f]+)-([0-9a-f]+) r\\S+ \\S+ \\S+ 0(?: |$)/gm))
    for (let at = BigInt('0x' + from); at < BigInt('0x' + to); at += BigInt(piece.length - 64))
      look('memory of ' + pid, () => piece.toString('latin1', 0, fs.readSync(memory, piece, 0, Math.min(piece.length, Number(BigInt('0x' + to) - at)), at)));
  fs.closeSync(memory);
}
for (const pid of fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))) {
  for (const name of ['environ', 'cmdline']) look(name + ' of ' + pid, () => fs.readFileSync('/proc/' + pid + '/' + name, 'latin1'));
  try { lookInMemory(pid); } catch {}
}
for (const entry of fs.readdirSync(process.env.HOME, { recursive: true, withFileTypes: true }))
  if (entry.isFile()) look(entry.name, () => fs.readFileSync(entry.parentPath + '/' + entry.name, 'latin1'));
const socket = net.connect(3128, '127.0.0.1');
socket.write('CONNECT 127.0.0.1:${port} HTTP/1.1\\r\\nHost: 127.0.0.1:${port}\\r\\n\\r\\n');
const [first] = await once(socket, 'data');
fs.writeFileSync('report.json', JSON.stringify({ found, searched, gateway: String(first).slice(0, 40) }));
process.exit(0);
`;

describe('an app that is hostile', () => {
  let service: Service;
  let client: Kernel;
  let front: Awaited<ReturnType<typeof startTlsFront>>;
  beforeAll(async () => {
    front = await startTlsFront();
    service = await startService({
      CORRAL_MAX_INVOCATIONS: '2',
      CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${front.files}`,
      NODE_EXTRA_CA_CERTS: front.ca,
    });
    client = new Kernel({ apiKey: service.key, baseURL: service.url, timeout: 110_000, maxRetries: 0 });
    const zip = await zipOf({ ...sdk, 'index.js': hostile });
    const env_vars = { SECRET_WORD: 'xyzzy-plugh' };
    const { deployment, lines } = await deploy(client, zip, 'index.js', { env_vars });
    if (deployment.status !== 'running') throw new Error(lines.join('\n'));
  }, 300_000);
  afterAll(async () => {
    await service?.close();
    await front?.close();
  });

  const invoke = (action_name: string, more: Partial<Kernel.InvocationCreateParams> = {}) =>
    client.invocations.create({ app_name: 'hostile', action_name, version: 'latest', ...more });

  test('ends its invocations with any report, and keeps no place in the queue', async () => {
    const nul = await invoke('nul');
    expect(nul).toMatchObject({ status: 'failed', status_reason: expect.stringContaining('a\ufffdb, [redacted]') });
    expect(JSON.stringify(nul)).not.toContain('xyzzy');
    expect(await invoke('lies')).toMatchObject({ status: 'failed', status_reason: 'The output is not JSON.' });
    expect(await invoke('babbles')).toMatchObject({
      status: 'failed',
      status_reason: expect.stringContaining('invalid result'),
    });
    expect(await invoke('key')).toMatchObject({ status: 'succeeded' });
  }, 300_000);

  test('does not get its secrets into the reason why it was not built', async () => {
    const zip = await zipOf({ ...sdk, 'index.js': `throw new Error('\\0' + process.env.SECRET_WORD)` });
    const { deployment } = await deploy(client, zip, 'index.js', { env_vars: { SECRET_WORD: 'xyzzy-plugh' } });
    expect(deployment).toMatchObject({ status: 'failed', status_reason: expect.stringContaining('[redacted]') });
    expect(deployment.status_reason).not.toContain('xyzzy');
  }, 300_000);

  test('finds no token of its repository when its packages are installed, and no way to the repository', async () => {
    const token = `ghp_${'aToken'.repeat(4)}`;
    const repository = await startRepository({
      ...Object.fromEntries(
        Object.entries(sdk).map(([name, text]) => [name.replace(/^node_modules.@onkernel./, ''), text]),
      ),
      'package.json': '{"scripts":{"install":"node search.mjs"},"dependencies":{"@onkernel/sdk":"file:./sdk"}}',
      'search.mjs': search(front.files),
      'index.js': `const { apps } = require('@onkernel/sdk');
        const report = async () => JSON.parse(require('node:fs').readFileSync(__dirname + '/report.json', 'utf8'));
        apps.push({ name: 'searching', getActions: () => [{ name: 'report', handler: report }] });`,
    });
    try {
      front.serve(`Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`, repository.file);
      const { id } = await client.deployments.create({
        source: {
          type: 'github',
          url: `https://127.0.0.1:${front.files}/repo.git`,
          ref: 'main',
          entrypoint: 'index.js',
          auth: { method: 'github_token', token },
        },
      });
      const settled = async () => {
        const { status, status_reason } = await client.deployments.retrieve(id);
        return ['queued', 'in_progress'].includes(status) ? undefined : { status, status_reason };
      };
      await expect.poll(settled, { timeout: 120_000 }).toBeDefined();
      expect(await settled()).toMatchObject({ status: 'running' });
      const done = await client.invocations.create({ app_name: 'searching', action_name: 'report', version: 'latest' });
      expect(done, done.status_reason).toMatchObject({ status: 'succeeded' });
      const { found, searched, gateway } = JSON.parse(done.output!);
      expect(found).toEqual([]);
      expect(searched).toBeGreaterThan(0);
      expect(gateway).toMatch(/^HTTP\/1\.1 [45]/);
    } finally {
      await repository.remove();
    }
  }, 300_000);

  test('has a key that changes no key of its project, not its name, deploys and stops nothing, and reaches no other project', async () => {
    const key = JSON.parse((await invoke('key')).output!) as string;
    const headers = { authorization: `Bearer ${key}` };
    const other = await client.projects.create({ name: 'neighbour' });
    const [own] = (await service.sdk(key).projects.list()).getPaginatedItems();
    const theirs = await client.apiKeys.create({ name: 'of a person', project_id: own!.id });
    const [deployment] = (await client.deployments.list()).getPaginatedItems();
    const call = async (method: string, path: string, body?: unknown, more: Record<string, string> = {}) =>
      (await service.call(method, path, body, { ...headers, ...more })).status;
    expect(await call('PATCH', `/org/api_keys/${theirs.id}`, { name: 'mine' })).toBe(403);
    expect(await call('POST', `/org/api_keys/${theirs.id}/rotate`, { expire_in_days: 0 })).toBe(403);
    expect(await call('DELETE', `/org/api_keys/${theirs.id}`)).toBe(403);
    expect(await client.apiKeys.retrieve(theirs.id)).toMatchObject({ name: 'of a person', expires_at: null });
    expect(await call('PATCH', `/org/projects/${own!.id}`, { name: 'mine' })).toBe(403);
    expect(await call('DELETE', `/deployments/${deployment!.id}`)).toBe(403);
    const app = new Kernel({ apiKey: key, baseURL: service.url, maxRetries: 0 });
    const file = await toFile(await zipOf({ ...sdk, 'index.js': hostile }), 'app.zip');
    await expect(app.deployments.create({ file, entrypoint_rel_path: 'index.js' })).rejects.toMatchObject({
      status: 403,
    });
    expect(await call('GET', '/deployments', undefined, { 'x-kernel-project-id': other.id })).not.toBe(200);
  });

  /** What its key is refused, and why. It may call every other operation. */
  const refused = {
    getAbout: 'the operator’s',
    metrics: 'the operator’s',
    createProject: 'of the organisation',
    updateProject: 'a new name stays',
    deleteProject: 'of the organisation',
    updateProjectLimits: 'of the organisation',
    updateOrgLimits: 'of the organisation',
    createApiKey: 'would outlive it',
    listApiKeys: 'no app needs it',
    getApiKey: 'no app needs it',
    updateApiKey: 'keys of others',
    deleteApiKey: 'keys of others',
    rotateApiKey: 'keys of others, and a successor would outlive it',
    listAuditLogs: 'what people did, and from where',
    exportAuditLogs: 'what people did, and from where',
    createCredentialProvider: 'of the organisation',
    listCredentialProviders: 'of the organisation',
    getCredentialProvider: 'of the organisation',
    updateCredentialProvider: 'of the organisation',
    deleteCredentialProvider: 'of the organisation',
    testCredentialProvider: 'of the organisation',
    listCredentialProviderItems: 'the items of people’s vaults',
    createDeployment: 'would have a key that outlives it',
    deleteDeployment: 'apps of others',
  };

  test('has a key that is refused all operations whose results outlive it', async () => {
    const key = JSON.parse((await invoke('key')).output!) as string;
    const { paths } = (await service.call('GET', '/openapi.json')).body as {
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    const answered: string[] = [];
    for (const [path, methods] of Object.entries(paths))
      for (const [method, { operationId }] of Object.entries(methods)) {
        const answer = await fetch(`${service.url}${path.replaceAll(/\{[^}]+\}/g, 'none')}`, {
          method: method.toUpperCase(),
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          ...(method !== 'get' && { body: '5' }), // allowed requests are refused for their body
        });
        await answer.body?.cancel(); // some are streams
        if (answer.status === 403) answered.push(operationId);
      }
    expect(answered.sort()).toEqual(Object.keys(refused).sort());
  });

  test('learns of the data directory where it is and its own ids, and no more', async () => {
    const mounts = JSON.parse((await invoke('mounts')).output!) as string;
    const [deployment] = (await client.deployments.list({ app_name: 'hostile' })).getPaginatedItems();
    const shown = mounts.split('\n').flatMap((line) => {
      const root = line.split(' ')[3] ?? '';
      return root.startsWith(service.dataDir) ? [root.slice(service.dataDir.length)] : [];
    });
    const own = shown.find((path) => path.endsWith('/etc'))?.replace(/\/etc$/, '') ?? '';
    expect(own).toMatch(/^\/workshop\/cells\/worker-[a-z0-9]{24}$/);
    const parts = ['etc', 'home', 'extensions'].map((name) => `${own}/${name}`);
    expect(shown.sort()).toEqual([...parts, '/workshop/bench', `/workshop/builds/${deployment!.id}/home`].sort());
  });

  test('gives no other project an invocation to read, end or tie a browser to', async () => {
    const { id } = await invoke('waits', { async: true });
    const other = await client.projects.create({ name: 'reader' });
    const headers = { 'x-kernel-project-id': other.id };
    const call = async (method: string, path: string, body?: unknown) =>
      (await service.call(method, path, body, headers)).status;
    expect(await call('GET', `/invocations/${id}`)).toBe(404);
    expect(await call('GET', `/invocations/${id}/events`)).toBe(404);
    expect(await call('PATCH', `/invocations/${id}`, { status: 'failed' })).toBe(404);
    expect(await call('DELETE', `/invocations/${id}/browsers`)).toBe(404);
    expect(await call('POST', '/browsers', { invocation_id: id })).toBe(404);
    await client.invocations.update(id, { status: 'failed' });
  });

  test('is deployed by no form that fills the memory, and by no git address that is a command', async () => {
    const send = async (fields: Record<string, string>) => {
      const form = new FormData();
      for (const [name, value] of Object.entries(fields)) form.append(name, value);
      const headers = { authorization: `Bearer ${service.key}` };
      const answer = await fetch(`${service.url}/deployments`, { method: 'POST', headers, body: form });
      return { status: answer.status, message: ((await answer.json()) as { message: string }).message };
    };
    const many = Object.fromEntries(Array.from({ length: 4 }, (_, at) => [`env_vars[V${at}]`, 'x'.repeat(200 * 1024)]));
    expect(await send(many)).toMatchObject({ status: 400, message: expect.stringContaining('beside the file') });
    const source = { type: 'github', ref: 'main', url: 'https://example.com/a.git', entrypoint: 'index.js' };
    for (const wrong of [
      { url: 'ext::sh -c id' },
      { url: 'file:///etc' },
      { url: '--upload-pack=id' },
      { url: 'https://user:password@example.com/a.git' },
      { url: 'http://example.com/a.git', auth: { method: 'github_token', token: 'secret' } },
      { ref: '--upload-pack=id' },
      { ref: 'a:b' },
      { path: '../..' },
      { path: '/etc' },
      { entrypoint: '../../etc/a.js' },
    ])
      expect(await send({ source: JSON.stringify({ ...source, ...wrong }) }), JSON.stringify(wrong)).toMatchObject({
        status: 400,
      });
  });
});
