import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { Socket } from 'node:net';
import { createGzip } from 'node:zlib';
import { say } from './say.ts';
import { unzip } from './unzip.ts';

/**
 * Builds a deployment, in a sandbox: it unpacks the source unless it was fetched (fetch.ts), installs the packages, turns TypeScript into JavaScript and reads which apps
 * and actions there are. It reads the job on descriptor 3, a line of JSON. On descriptor 4 it writes one line of JSON about the result, and after it the
 * built directory as a compressed tar. What it prints is the build's log. It ends when descriptor 3 is closed: by then the service has read
 * everything, which would be lost if the process exited first.
 */
interface Job {
  entrypoint: string;
  /** The source was fetched, and this directory of it is deployed. */
  fetched: { path: string | null } | null;
  npm: string;
  registry: string;
  /** For reading the apps only: installing packages runs code of others. */
  env: Record<string, string>;
}

/** A reason that the user can act on. */
class Unfit extends Error {}

/** The used part of esbuild. It is loaded when TypeScript is compiled, so that only such a build needs it. */
interface Esbuild {
  build(options: object): Promise<{ errors: readonly unknown[] }>;
}
const esbuild: string = 'esbuild';

const app = join(homedir(), 'app');
const orders = createInterface({ input: new Socket({ fd: 3, readable: true, writable: false }) });
const allRead = once(orders, 'close').catch(() => {});
const out = new Socket({ fd: 4, readable: false, writable: true });
const typescript = new Set(['.ts', '.tsx', '.mts', '.cts']);

try {
  const [line] = (await once(orders, 'line')) as [string];
  const job = JSON.parse(line) as Job;
  const root = job.fetched ? directoryOf(job.fetched) : await unzip(join(homedir(), 'source.zip'), app);
  const entry = resolve(root, job.entrypoint);
  if (relative(root, entry).startsWith('..') || !existsSync(entry) || !statSync(entry).isFile())
    throw new Unfit(`entrypoint_rel_path '${job.entrypoint}' is not a file of the source.`);
  await installPackages(job, root);
  const runs = typescript.has(extname(entry)) ? await compile(root, entry) : entry;
  const apps = await listApps(runs, job.env);
  out.write(`${JSON.stringify({ apps, entry: relative(root, runs) })}\n`);
  await pack(root);
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  say(message);
  out.end(`${JSON.stringify({ error: message.slice(0, 4000) })}\n`);
  await allRead;
  process.exit(1);
}

function directoryOf({ path }: { path: string | null }): string {
  const root = join(app, path ?? '.');
  const inside = existsSync(root) && !relative(realpathSync(app), realpathSync(root)).startsWith('..');
  if (!inside || !statSync(root).isDirectory())
    throw new Unfit(`source.path '${path}' is not a directory of the repository.`);
  return root;
}

async function installPackages({ npm, registry }: Job, root: string) {
  if (!existsSync(join(root, 'package.json'))) {
    if (existsSync(join(root, 'node_modules/@onkernel/sdk'))) return;
    throw new Unfit("The source has no package.json. Add one with '@onkernel/sdk' in its dependencies.");
  }
  const locked = ['package-lock.json', 'npm-shrinkwrap.json'].some((name) => existsSync(join(root, name)));
  const command = locked ? 'ci' : 'install';
  say(`npm ${command}`);
  const args = [command, '--omit=dev', '--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=warn'];
  const env = {
    ...process.env,
    npm_config_registry: registry,
    npm_config_replace_registry_host: 'always', // a lock file may name another registry, which cannot be reached
    npm_config_cache: join(homedir(), '.npm'),
    npm_config_userconfig: '/dev/null',
    npm_config_fetch_retries: '1',
  };
  const code = await programEnds(process.execPath, [npm, ...args], root, env);
  if (code !== 0) throw new Unfit(`npm ${command} ended with code ${code}.`);
}

/** Packages stay as npm installed them; the app's own files become one, beside the entry point, so that relative paths stay true. */
async function compile(root: string, entry: string): Promise<string> {
  const outfile = join(dirname(entry), '.corral-entry.mjs');
  const banner = [
    "import { createRequire as corralRequire } from 'node:module';",
    "import { fileURLToPath as corralPath } from 'node:url';",
    "import { dirname as corralDirname } from 'node:path';",
    'const require = corralRequire(import.meta.url);',
    'const __filename = corralPath(import.meta.url);',
    'const __dirname = corralDirname(__filename);',
  ];
  const options = { bundle: true, packages: 'external', platform: 'node', format: 'esm', sourcemap: 'inline' } as const;
  const { build: bundle } = (await import(esbuild)) as Esbuild;
  const result = await bundle({
    ...options,
    entryPoints: [entry],
    outfile,
    absWorkingDir: root,
    target: `node${process.versions.node}`,
    banner: { js: banner.join('') },
    logLevel: 'warning',
  }).catch((error: { errors?: { text: string; location?: { file: string; line: number } | null }[] }) => {
    const first = error.errors?.[0];
    const where = first?.location ? ` (${first.location.file}:${first.location.line})` : '';
    throw new Unfit(`The TypeScript does not compile: ${first ? `${first.text}${where}` : 'esbuild failed.'}`);
  });
  if (result.errors.length > 0) throw new Unfit('The TypeScript does not compile.');
  return outfile;
}

/** The program runs the app's code, so its answer is read to the end of the pipe, and judged by its form. */
async function listApps(entry: string, env: Record<string, string>) {
  const list = join(dirname(process.argv[1]!), 'list.js');
  const child = spawn(process.execPath, ['--enable-source-maps', list, entry], {
    cwd: dirname(entry),
    env: { ...process.env, ...env },
    stdio: ['ignore', 2, 2, 'pipe'],
  });
  const pipe = child.stdio[3] as Socket;
  const [said, [code]] = await Promise.all([text(pipe), once(child, 'exit')]);
  if (said === '') throw new Unfit(`The entry point ended with code ${String(code)} while it was loaded.`);
  const { apps, error } = JSON.parse(said) as { apps?: { name: string; actions: unknown[] }[]; error?: string };
  if (error !== undefined) throw new Unfit(`The entry point does not load: ${error}`);
  if (!apps?.length) throw new Unfit("The entry point registers no app: it has no kernel.app('name').");
  const idle = apps.find(({ actions }) => actions.length === 0);
  if (idle) throw new Unfit(`App '${idle.name}' has no action: it needs app.action('name', handler).`);
  return apps;
}

async function pack(root: string): Promise<void> {
  const args = ['--create', '--file=-', '--owner=0', '--group=0', '--numeric-owner', '--exclude=./.git', '.'];
  const tar = spawn('tar', args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(tar, 'exit');
  tar.stdout.pipe(createGzip({ level: 1 })).pipe(out);
  const [[code]] = await Promise.all([exited, allRead]);
  process.exit(code === 0 ? 0 : 1);
}

async function programEnds(file: string, args: string[], cwd: string, env: NodeJS.ProcessEnv): Promise<number | null> {
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 2, 2] });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code;
}
