import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { withoutEnd } from '../../lib/text.ts';
import { UsageError } from '../fault.ts';
import type { Target } from './http.ts';

interface Context {
  url: string;
  key: string;
  project?: string;
}

interface Contexts {
  current?: string | undefined;
  contexts: Record<string, Context>;
}

type Environment = Record<string, string | undefined>;

/** The name that always means the service of this machine. */
export const LOCAL = 'local';

export function contextsFile(env: Environment): string {
  return join(env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config'), 'corral/contexts.json');
}

export function readContexts(file: string): Contexts {
  if (!existsSync(file)) return { contexts: {} };
  try {
    const { current, contexts } = JSON.parse(readFileSync(file, 'utf8')) as Contexts;
    return { current, contexts: { ...contexts } };
  } catch (error) {
    throw new UsageError(
      `${file} cannot be read: ${(error as Error).message} Correct it, or remove it and log in again.`,
    );
  }
}

/** The file contains keys, so only its owner may read it. It is replaced atomically, so that no reader sees a part of it. */
export function writeContexts(file: string, contexts: Contexts): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const next = `${file}.${process.pid}`;
  try {
    writeFileSync(next, `${JSON.stringify(contexts, null, 2)}\n`, { mode: 0o600 });
    chmodSync(next, 0o600); // an existing file keeps its mode
    renameSync(next, file);
  } finally {
    rmSync(next, { force: true });
  }
}

interface Found extends Target {
  /** The source of the address, for messages. */
  from: string;
  context?: string;
}

/**
 * Finds the service: the context of the command line, then the environment, then the context of `corral login`, then the service of this
 * machine. A key is only sent to the address that it was given with.
 */
export function findTarget(
  env: Environment,
  flags: { context?: string | undefined; project?: string | undefined },
): Found {
  const found = locate(env, flags.context);
  return { ...found, project: flags.project ?? found.project };
}

function locate(env: Environment, named: string | undefined): Found {
  if (named !== undefined && named !== LOCAL) return fromContext(env, named);
  if (named === LOCAL) return orRefuse(fromDataDirectory(env, env['CORRAL_DATA_DIR'] || 'data'), env);
  for (const [address, secret] of [
    ['CORRAL_URL', 'CORRAL_API_KEY'],
    ['KERNEL_BASE_URL', 'KERNEL_API_KEY'],
  ] as const) {
    const url = env[address];
    if (!url) continue;
    const key = env[secret];
    if (!key) throw new UsageError(`${address} is set and ${secret} is not. Set both, or neither.`);
    return { url: checked(url, address), key, from: `${address} and ${secret}` };
  }
  if (env['CORRAL_DATA_DIR']) return orRefuse(fromDataDirectory(env, env['CORRAL_DATA_DIR']), env);
  const { current } = readContexts(contextsFile(env));
  if (current !== undefined && current !== LOCAL) return fromContext(env, current);
  return orRefuse(fromDataDirectory(env, 'data'), env);
}

function fromContext(env: Environment, name: string): Found {
  const file = contextsFile(env);
  const { contexts } = readContexts(file);
  const context = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (!context)
    throw new UsageError(
      `There is no context '${name}'. \`corral contexts\` lists them, \`corral login\` creates one.`,
    );
  return { ...context, from: `the context '${name}'`, context: name };
}

/** The data directory has the address of a running service and its first key. */
function fromDataDirectory(env: Environment, folder: string): Found | undefined {
  const read = (name: string) =>
    existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8').trim() : undefined;
  const key = env['CORRAL_API_KEY'] || read('api-key');
  if (!key || !existsSync(folder)) return undefined;
  const host = !env['CORRAL_HOST'] || /^(0\.0\.0\.0|::)$/.test(env['CORRAL_HOST']) ? '127.0.0.1' : env['CORRAL_HOST'];
  const url = read('address') ?? `http://${host}:${env['CORRAL_PORT'] || 3000}`;
  return { url, key, from: `the data directory ${resolve(folder)}`, context: LOCAL };
}

function orRefuse(found: Found | undefined, env: Environment): Found {
  if (found) return found;
  const folder = resolve(env['CORRAL_DATA_DIR'] || 'data');
  throw new UsageError(
    `There is no service in ${folder}. Run \`corral login URL\` once, or set CORRAL_URL and CORRAL_API_KEY, or change to the directory of a service on this machine (CORRAL_DATA_DIR).`,
  );
}

export function checked(url: string, name: string): string {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new UsageError(`${name} takes an address that starts with http:// or https://, not '${url}'.`);
  return withoutEnd(url, '/');
}
