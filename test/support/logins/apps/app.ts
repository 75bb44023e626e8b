import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { aptInstall } from '../../../../scripts/apt.mjs';
import { isDebian, isRoot } from '../../../../scripts/parts.mjs';
import { listen, root } from '../../../../scripts/run.mjs';

/** A real application with a login of its own, from Debian or npm. It is no dependency: it is fetched once, by tests and bench. */
export interface App {
  name: string;
  language: string;
  about: string;
  /** Debian packages, each with a file that is there once it is installed. */
  debian?: Record<string, string>;
  /** npm packages with their versions. */
  npm?: Record<string, string>;
  /** Versions for packages further down, where what they ask for is not to be had everywhere. */
  npmOverrides?: Record<string, string>;
  start(): Promise<RunningApp>;
}

export interface RunningApp {
  /** Where a connection begins. */
  loginUrl: string;
  /** Every host and port that a browser has to reach. */
  hosts: string[];
  allowedDomains?: string[];
  values: Record<string, string>;
  totp?: string;
  /** What a person picks, if asked, where there is more than one way in or it is not plain which is meant. */
  choice?: RegExp;
  /** Opens the application and sees whether it knows its user. */
  loggedIn(page: Page): Promise<boolean>;
  /** Logs every user out, on the side of the application. */
  endSessions?(): Promise<void>;
  close(): Promise<void>;
}

/** Installs what an application needs. False: it is not here and cannot be; in CI that is a failure. */
export async function provideApp(app: App): Promise<boolean> {
  const missing = () => Object.entries(app.debian ?? {}).flatMap(([name, file]) => (existsSync(file) ? [] : [name]));
  if (missing().length > 0 && isRoot() && isDebian()) await aptInstall(missing());
  if (missing().length > 0) return refuse(app, `apt has no ${missing().join(', ')}`);
  const home = npmHome(app);
  if (!app.npm || existsSync(home)) return true;
  mkdirSync(dirname(home), { recursive: true });
  const draft = mkdtempSync(join(dirname(home), 'draft-'));
  try {
    const wanted = { private: true, dependencies: app.npm, overrides: app.npmOverrides ?? {} };
    writeFileSync(join(draft, 'package.json'), JSON.stringify(wanted));
    // Scripts of packages are not run: no application of the list needs them.
    const words = ['install', '--prefix', draft, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    const { code, output } = await listen('npm', words, { cwd: draft });
    if (code !== 0) return refuse(app, `npm install failed: ${output}`);
    execFileSync('chmod', ['-R', 'a+rX', draft]);
    if (!existsSync(home)) renameSync(draft, home);
    return true;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

function refuse(app: App, why: string): false {
  if (process.env['CI']) throw new Error(`${app.name} cannot be had: ${why}`);
  console.error(`${app.name} is left out: ${why}`);
  return false;
}

/** Where the npm packages of an application are. The name follows the versions, so that a new version is a new folder. */
export function npmHome(app: App): string {
  const versions = createHash('sha256')
    .update(JSON.stringify([app.npm, app.npmOverrides]))
    .digest('hex')
    .slice(0, 8);
  return join(root, 'node_modules/.cache/corral/apps', `${app.name}-${versions}`);
}

/** Arguments of setpriv: run as user `nobody`, and end with this process. */
const unprivileged = () => [
  '--pdeathsig',
  'KILL',
  ...(isRoot() ? ['--reuid', '65534', '--regid', '65534', '--clear-groups'] : []),
  '--',
];

/** A folder that the application's user owns. It is removed when the application is closed. */
export function appFolder(name: string, files: Record<string, string>) {
  const dir = mkdtempSync(join(tmpdir(), `corral-app-${name}-`));
  const env = { PATH: process.env['PATH'] ?? '', HOME: dir, LANG: 'C.UTF-8', TMPDIR: dir };
  const own = () => {
    if (isRoot()) execFileSync('chown', ['-R', '65534:65534', dir]);
  };
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, file)), { recursive: true });
    writeFileSync(join(dir, file), text);
  }
  own();
  let running: { stop(): Promise<void> } | undefined;
  return {
    dir,
    /** Runs a program to its end. */
    exec: (program: string, args: string[], extra: Record<string, string> = {}) =>
      execFileSync('setpriv', [...unprivileged(), program, ...args], {
        cwd: dir,
        env: { ...env, ...extra },
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    /** Starts the application, and waits until it listens on each of the addresses. */
    async start(program: string, args: string[], listensOn: string[], extra: Record<string, string> = {}) {
      running = await startProgram(program, args, { cwd: dir, env: { ...env, ...extra } }, listensOn);
    },
    stop: async () => running?.stop(),
    /** Removes a file, or writes another one. */
    remove: (file: string) => rmSync(join(dir, file), { recursive: true, force: true }),
    write(file: string, text: string) {
      writeFileSync(join(dir, file), text);
      own();
    },
    async close() {
      await running?.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function startProgram(
  program: string,
  args: string[],
  options: { cwd: string; env: Record<string, string> },
  listensOn: string[],
) {
  const child = spawn('setpriv', [...unprivileged(), program, ...args], {
    ...options,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const keep = (chunk: Buffer) => void (output = (output + String(chunk)).slice(-10_000));
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const closed = once(child, 'close');
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await closed;
  };
  for (const address of listensOn)
    for (const until = Date.now() + 120_000; !(await answers(address)); await sleep(100))
      if (child.exitCode !== null || Date.now() > until) {
        await stop();
        throw new Error(`${program} ${args.join(' ')} did not start:\n${output}`);
      }
  return { stop };
}

function answers(address: string): Promise<boolean> {
  const [host, port] = address.split(':');
  return new Promise((resolve) => {
    const socket = connect(Number(port), host);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
