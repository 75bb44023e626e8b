import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { nouns } from '../../src/cli/nouns.ts';
import { fewAtOnce } from '../support/corral-command.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');
/** As a user has it: a directory with what `npm install corral.tgz` puts there, and nothing else. */
let empty: string;
let packed: string[];
let service: ChildProcess;
const environment = () => ({
  PATH: process.env['PATH']!,
  HOME: join(empty, 'home'),
  CORRAL_PORT: '0',
  CORRAL_WARM_SPARES: 'off',
  CORRAL_PROXY_CHECK_URL: 'off', // tests stay on this machine
});
const npx = async (...args: string[]) =>
  (await run('npx', ['--offline', 'corral', ...args], { cwd: empty, env: environment(), timeout: 200_000 })).stdout;
/** What npx runs. npx itself takes some seconds on a busy machine, and so it runs once. */
const bin = () => join(empty, 'node_modules/.bin/corral');
const direct = async (...args: string[]) =>
  (await run(bin(), args, { cwd: empty, env: environment(), timeout: 200_000 })).stdout;
const json = async (...args: string[]) => JSON.parse(await direct(...args, '-o', 'json'));

beforeAll(async () => {
  empty = await realpath(await mkdtemp(join(tmpdir(), 'corral-package-')));
  await mkdir(join(empty, 'home'));
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', empty], {
    cwd: root,
  });
  const [tarball] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  packed = tarball.files.map(({ path }) => path);
  const modules = join(empty, 'node_modules');
  await mkdir(join(modules, 'corral'), { recursive: true });
  await run('tar', ['-xzf', join(empty, tarball.filename), '--strip-components=1', '-C', join(modules, 'corral')]);
  await mkdir(join(modules, '.bin'));
  await symlink('../corral/bin/corral.cjs', join(modules, '.bin/corral'));
  await writeFile(join(empty, 'package.json'), '{}');
  const copy = ['--archive', '--parents', ...(await dependencies()), empty];
  // Links to the same files where that is possible: they are some hundred megabytes.
  await run('cp', ['--link', ...copy], { cwd: root }).catch(() => run('cp', ['--force', ...copy], { cwd: root }));
}, 600_000);
afterAll(async () => {
  if (service?.exitCode === null) {
    service.kill('SIGTERM');
    await once(service, 'exit');
  }
  await rm(empty, { recursive: true, force: true });
});

/** The packages that npm installs for a user: those of the lock file that are not for development, without their own nested ones twice. */
async function dependencies(): Promise<string[]> {
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean; link?: boolean }>;
  };
  const wanted = Object.entries(packages).filter(
    ([path, { dev, devOptional, link }]) => path.startsWith('node_modules/') && !dev && !devOptional && !link,
  );
  const paths = wanted.map(([path]) => path).filter((path) => existsSync(join(root, path)));
  return paths.filter((path) => !paths.some((outer) => path.startsWith(`${outer}/`)));
}

test('has the files that are needed to run, and nothing else', () => {
  const unwanted = /\.(ts|tsx|map)$|\.test\.|^(src|test|bench|console|examples)\/|(^|\/)\.|node_modules/;
  expect(packed.filter((path) => unwanted.test(path))).toEqual([]);
  expect(packed).toEqual(expect.arrayContaining(['bin/corral.cjs', 'dist/main.js', 'LICENSE', 'README.md']));
  expect(packed.filter((path) => /^dist\/(?!console\/).*\/web\//.test(path))).toEqual([
    'dist/chromium/forms/web/page.js',
    'dist/chromium/pages/web/page.js',
    'dist/chromium/telemetry/web/captcha.js',
    'dist/chromium/telemetry/web/interaction.js',
    'dist/docs/web/start.js',
    'dist/docs/web/style.css',
    'dist/logins/hosted/web/page.js',
    'dist/logins/hosted/web/style.css',
    'dist/sessions/live-view/web/display.js',
    'dist/sessions/live-view/web/screencast.js',
    'dist/sessions/live-view/web/style.css',
  ]);
  const fromThere = createRequire(join(empty, 'node_modules/corral/dist/main.js'));
  expect(fromThere.resolve('fastify')).toContain(empty);
  expect(() => fromThere.resolve('typescript')).toThrow('Cannot find module');
});

test('starts the service, and every client command, by npx in an empty directory', async () => {
  // Without the shell of npx, which would not pass the signal on that ends the service.
  service = spawn(bin(), ['start', '--as-is'], {
    cwd: empty,
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [service.stdout!, service.stderr!])
    stream.on('data', (piece: Buffer) => (output += String(piece)));
  await expect
    .poll(() => service.exitCode === null && existsSync(join(empty, 'data/address')), { timeout: 100_000 })
    .toBe(true);
  const url = (await readFile(join(empty, 'data/address'), 'utf8')).trim();

  const { session_id: id } = await json('browsers', 'create', '--headless', '--name', 'packed');
  expect(await json('browsers', 'list')).toMatchObject([{ session_id: id }]);
  await writeFile(
    join(empty, 'script.ts'),
    'const n: number = 42; export default async ({ page }) => `${n} ${page.url()}`;',
  );
  const [exec, code, script, keys, view] = await fewAtOnce([
    () => direct('browsers', 'process', 'exec', 'packed', '--', 'echo', 'inside'),
    () => json('browsers', 'playwright', 'execute', 'packed', 'return 40 + 2'),
    () => direct('browsers', 'run', 'script.ts', '--headless'),
    () => json('keys', 'list'),
    () => json('browsers', 'view', 'packed'),
  ]);
  expect([exec, code.result, script, keys.length]).toEqual(['inside\n', 42, '42 about:blank\n', 1]);
  for (const page of [view.url, `${url}/docs`, `${url}/docs/guides`])
    expect([page, (await fetch(page)).status]).toEqual([page, 200]);

  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StdioClientTransport({ command: bin(), args: ['mcp'], cwd: empty, env: environment() }));
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('browser_snapshot');
  const shot = await client.callTool({ name: 'browser_snapshot', arguments: { session_id: id } });
  expect(shot.isError, JSON.stringify(shot.content)).toBeFalsy();
  await client.close();

  const helped = await fewAtOnce(
    nouns.map(
      ({ name }) =>
        () =>
          run(bin(), [name, '--help'], { cwd: empty, env: environment() }),
    ),
  );
  for (const { stdout } of helped) expect(stdout).toContain('Examples:');
  expect(await npx('browsers', 'delete', 'packed')).toContain('Deleted');

  service.kill('SIGTERM');
  await once(service, 'exit');
  expect(output).not.toContain('Error');
});
