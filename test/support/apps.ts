import type Kernel from '@onkernel/sdk';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { toFile } from '@onkernel/sdk';
import { zipOf } from './extension-zip.ts';

export const packageJson = (dependencies: string[]) =>
  JSON.stringify({
    name: 'app',
    private: true,
    dependencies: Object.fromEntries(dependencies.map((name) => [name, '*'])),
  });

/** An app in plain JavaScript with an action for each way to behave. */
const plain = `
const { Kernel } = require('@onkernel/sdk');
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const app = new Kernel().app('plain');
let runs = 0;

app.action('echo', async (ctx, payload) => {
  console.log('echo says', JSON.stringify(payload));
  return { payload, id: ctx.invocation_id, runs: ++runs, greeting: process.env.GREETING };
});
app.action('nothing', async (ctx) => {});
app.action('secret', async (ctx) => {
  console.log('the secret is ' + process.env.SECRET_WORD + ', the key ' + process.env.KERNEL_API_KEY);
  return { key: process.env.KERNEL_API_KEY, url: process.env.KERNEL_BASE_URL };
});
app.action('throws', async (ctx) => { console.log('about to throw'); throw new Error('no luck today'); });
app.action('exits', async (ctx) => { console.log('about to exit'); process.exit(3); });
app.action('never-ends', async (ctx) => {
  spawn('sleep', ['1000000'], { detached: true, stdio: 'ignore' });
  console.log('never ends');
  await new Promise((resolve) => setInterval(() => {}, 1000));
});
app.action('waits', async (ctx, { ms }) => {
  await new Promise((resolve) => setTimeout(resolve, ms));
  return 'waited';
});
app.action('eats-memory', async (ctx) => {
  const kept = [];
  for (;;) { kept.push(Buffer.alloc(32 * 2 ** 20, 1)); await new Promise((resolve) => setTimeout(resolve, 10)); }
});
app.action('forks', async (ctx) => {
  let made = 0;
  for (; made < 5000; made++) {
    const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
    const failed = await new Promise((resolve) => child.once('error', () => resolve(true)).once('spawn', () => resolve(false)));
    if (failed) break;
  }
  return { made };
});
app.action('reads', async (ctx, { paths }) =>
  paths.map((path) => {
    try { return fs.statSync(path).isDirectory() ? fs.readdirSync(path) : fs.readFileSync(path, 'utf8').slice(0, 2000); }
    catch (error) { return error.code; }
  }));
app.action('writes', async (ctx) => {
  try { fs.writeFileSync(__filename, ''); return 'written'; } catch (error) { return error.code; }
});
app.action('fetches', async (ctx, { url }) => {
  const answer = await fetch(url);
  return { status: answer.status, text: (await answer.text()).slice(0, 500) };
});
app.action('browses', async (ctx, { wait }) => {
  const kernel = new Kernel();
  const browser = await kernel.browsers.create({ headless: true, invocation_id: ctx.invocation_id });
  console.log('has', browser.session_id);
  if (wait) await new Promise(() => setInterval(() => {}, 1000));
  return browser.session_id;
});
`;

/** An app in TypeScript that drives a browser of its invocation with Playwright. */
const typescript = {
  'src/index.ts': `
import { Kernel, type KernelContext } from '@onkernel/sdk';
import { chromium } from 'playwright-core';
import { statusOfSocket } from './socket';
import { titleOf } from './title';

enum Kind { Page = 'page' }
const kernel = new Kernel();
const app = kernel.app('browsing');

app.action('title', async (ctx: KernelContext, payload: { html: string }) => {
  const session = await kernel.browsers.create({ headless: true, invocation_id: ctx.invocation_id });
  const browser = await chromium.connectOverCDP(session.base_url!);
  const page = await browser.newPage();
  await page.goto('data:text/html,' + encodeURIComponent(payload.html));
  console.log('opened', Kind.Page);
  const socket = await statusOfSocket(session.base_url!);
  const { browsers } = await kernel.invocations.listBrowsers(ctx.invocation_id);
  return { title: await titleOf(page), browsers: browsers.map((one) => one.session_id), session: session.session_id, socket };
});
`,
  'src/socket.ts': `
import { get } from 'node:http';

/** The status of the websocket that the session's base_url lists for its first page: 101 when it opens. */
export async function statusOfSocket(base: string): Promise<number | undefined> {
  const [page] = await (await fetch(base + '/json/list')).json();
  const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' };
  return new Promise((resolve, reject) => {
    const asked = get(page.webSocketDebuggerUrl.replace(/^ws/, 'http'), { headers });
    asked.on('error', reject).on('response', (answer) => resolve(answer.statusCode));
    asked.on('upgrade', (answer, socket) => (socket.destroy(), resolve(answer.statusCode)));
  });
}
`,
  'src/title.ts': `
import type { Page } from 'playwright-core';
export const titleOf = (page: Page): Promise<string> => page.title();
`,
};

export const gitApp = `
import { Kernel } from '@onkernel/sdk';
new Kernel().app('from-git').action('run', async (ctx) => 'from git');
`;

/** A package as the SDK is for the service: a registry of apps. With it in the zip, nothing is installed. */
export const bareSdk = {
  'node_modules/@onkernel/sdk/package.json': '{"name":"@onkernel/sdk","main":"index.js"}',
  'node_modules/@onkernel/sdk/index.js': 'exports.apps = require("./core/app-framework.js").apps;',
  'node_modules/@onkernel/sdk/core/app-framework.js':
    'exports.apps = []; exports.appRegistry = { getApps: () => exports.apps };',
};

export const plainApp = () => zipOf({ 'index.js': plain, 'package.json': packageJson(['@onkernel/sdk']) });
export const typescriptApp = () =>
  zipOf({ ...typescript, 'package.json': packageJson(['@onkernel/sdk', 'playwright-core']) });

/** A git repository with these files on its branch main, for a server of plain files. */
export async function startRepository(files: Record<string, string>) {
  const dir = await mkdtemp(join(tmpdir(), 'corral-git-'));
  const git = (...args: string[]) =>
    promisify(execFile)('git', ['-C', dir, '-c', 'user.name=test', '-c', 'user.email=test@example.com', ...args]);
  await git('init', '--quiet', '--initial-branch=main');
  for (const [name, content] of Object.entries(files)) {
    await mkdir(join(dir, dirname(name)), { recursive: true });
    await writeFile(join(dir, name), content);
  }
  await git('add', '.');
  await git('commit', '--quiet', '--message', 'First');
  await git('update-server-info');
  return {
    file: async (path: string) =>
      readFile(join(dir, path.replace(/^\/repo\.git/, '.git').replace(/\?.*$/, ''))).catch(() => undefined),
    remove: () => rm(dir, { recursive: true, force: true }),
  };
}

/** Deploys a zip and waits until it runs or has failed. */
export async function deploy(
  client: Kernel,
  zip: Buffer,
  entrypoint: string,
  more: Partial<Kernel.DeploymentCreateParams> = {},
) {
  const { id } = await client.deployments.create({
    file: await toFile(zip, 'app.zip'),
    entrypoint_rel_path: entrypoint,
    ...more,
  });
  const lines: string[] = [];
  for await (const event of await client.deployments.follow(id)) {
    if (event.event === 'log') lines.push(event.message);
    if (event.event === 'deployment_state' && !['queued', 'in_progress'].includes(event.deployment.status))
      return { id, lines, deployment: event.deployment };
  }
  throw new Error('The events ended before the deployment ran.');
}
