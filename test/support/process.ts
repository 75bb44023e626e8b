import pty from '@lydell/node-pty';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { newDatabase, newToolbox } from './new-database.ts';
import { expectRefusalsDeclared } from './reference.ts';

const root = join(import.meta.dirname, '../..');

/** The service's environment: nothing of the tests' own but the way to programs, and nothing that leaves this machine. */
const environment = (env: Record<string, string>) => ({
  PATH: process.env['PATH']!,
  HOME: process.env['HOME']!,
  CORRAL_PORT: '0',
  CORRAL_LOG_LEVEL: 'warn',
  CORRAL_PROXY_CHECK_URL: 'off',
  ...env,
});

/** The service as a person starts it for the first time, on a terminal. Resolves when its last words are shown. */
export async function startOnTerminal(env: Record<string, string>) {
  const terminal = pty.spawn(process.execPath, ['scripts/start.mjs'], { cwd: root, env: environment(env), cols: 80 });
  let shown = '';
  const exited = new Promise<number>((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode)));
  await new Promise<void>((resolve, reject) => {
    terminal.onData((text) => {
      shown += text.replaceAll('\r\n', '\n');
      if (/\nLook .*\n/.test(shown)) resolve();
    });
    void exited.then((code) => reject(new Error(`The service ended (${code}) before it listened:\n${shown}`)));
  });
  return {
    shown: () => shown,
    async stop() {
      terminal.kill('SIGTERM');
      await exited;
    },
  };
}

/**
 * The service as users start it, in a process of its own that can be killed. A new data directory gets copies of a database and of what a
 * first start fills it with. `hidden` are programs that this service does not find on its machine, for which it has to be started by root.
 */
export async function spawnService(
  env: Record<string, string>,
  { hidden = [] }: { hidden?: string[] } = {},
): Promise<{ url: string; output: () => string; child: ChildProcess; kill(signal?: NodeJS.Signals): Promise<void> }> {
  const { CORRAL_DATA_DIR: dataDir, DATABASE_URL: databaseUrl } = env;
  if (dataDir !== undefined) {
    if (!databaseUrl) await newDatabase(dataDir);
    await newToolbox(dataDir, 'dist');
  }
  const start = [process.execPath, 'scripts/start.mjs', ...(hidden.length > 0 ? ['--as-is'] : [])];
  const hide = [...hidden.map((path) => `mount --bind /dev/null ${path} && `), 'exec "$@"'].join('');
  const [program = '', ...args] = hidden.length > 0 ? ['unshare', '--mount', 'sh', '-c', hide, 'sh', ...start] : start;
  const child = spawn(program, args, { cwd: root, env: environment(env), stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = once(child, 'exit');
  const closed = new Promise((resolve) => child.once('close', resolve));
  let output = '';
  const url = await new Promise<string>((resolve, reject) => {
    const hear = (chunk: Buffer) => {
      output += chunk.toString();
      const address = /listens at +(\S+)[\s\S]*\n.*\nTry .*\n/.exec(output)?.[1];
      if (address) resolve(address);
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    void exited.then(async ([code, signal]) => {
      // What it said last may be read after its exit. A process that it started may keep its output open for longer.
      await Promise.race([closed, sleep(2000, undefined, { ref: false })]);
      reject(new Error(`The service ended (${code ?? signal}) before it listened:\n${output}`));
    });
  });
  return {
    url,
    child,
    output: () => output,
    async kill(signal = 'SIGTERM') {
      child.kill(signal);
      await exited;
      expectRefusalsDeclared(output.split('\n'));
    },
  };
}

/** Runs a script of the project to its end. */
export async function run(args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stderr.on('data', (chunk) => (stderr += chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}
