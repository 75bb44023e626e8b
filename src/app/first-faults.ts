import { constants } from 'node:fs';
import { access, mkdir, rm, stat } from 'node:fs/promises';
import net from 'node:net';
import { dirname, join } from 'node:path';
import { parseAllowList } from '../chromium/egress/destinations.ts';
import { ConfigError, type Config } from '../config.ts';
import { errorCode } from '../lib/error-code.ts';
import { parseKey } from '../lib/seal.ts';
import { urlOf } from '../lib/urls.ts';

/** A reason why the service cannot start, as a message for the operator. Other errors are faults and keep their stack. */

/** Refuses settings that can be read and not be used, all at once, before anything is made. */
export async function refuseUnusable(config: Config): Promise<void> {
  const problems: string[] = [];
  for (const entry of config.allowPrivateHosts) {
    try {
      parseAllowList(entry);
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  const keys = config.secretKey.split(/[\s,]+/).filter(Boolean);
  if (keys.some((key) => !parseKey(key)))
    problems.push(
      'CORRAL_SECRET_KEY holds something that is not a key; a key is 32 bytes as 64 hex digits or base64. `openssl rand -hex 32` makes one.',
    );
  for (const [name, path] of [
    ['CORRAL_CHROMIUM', config.chromium],
    ['CORRAL_HEADLESS_SHELL', config.headlessShell],
  ] as const) {
    const fault = path && (await programFault(path));
    if (fault) problems.push(`${name} is '${path}', ${fault}. Leave it empty to use the installed one.`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
}

/** What keeps a path from being a program. */
async function programFault(path: string): Promise<string | undefined> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile() ? undefined : 'which is not a file';
  } catch (error) {
    const code = errorCode(error);
    return `which ${code === 'ENOENT' ? 'is not there' : 'cannot be run'} (${code})`;
  }
}

/** Creates the data directory, and checks that the service can write files and create sockets there. */
export async function makeDataDir(dataDir: string): Promise<void> {
  const refuse = (what: string, error: unknown): never => {
    throw new ConfigError([
      `CORRAL_DATA_DIR is '${dataDir}', ${what} (${errorCode(error) ?? (error as Error).message}). Set it to a directory on a local disk that this user may write to.`,
    ]);
  };
  await make(dataDir).catch((error) =>
    refuse(errorCode(error) === 'ENOTDIR' ? 'which is a file or lies below one' : 'which cannot be made', error),
  );
  await access(dataDir, constants.W_OK | constants.X_OK).catch((error) =>
    refuse('which this user may not write to', error),
  );
  await trySocket(join(dataDir, '.try')).catch((error) => refuse('where no socket can be made', error));
}

/** Level by level: `mkdir` with `recursive` never ends below /proc, where nothing can be made and the parent is there. */
async function make(dir: string): Promise<void> {
  const there = await stat(dir).catch((error) => {
    if (errorCode(error) !== 'ENOENT') throw error;
  });
  if (there?.isDirectory()) return;
  if (there) throw Object.assign(new Error('It is a file.'), { code: 'ENOTDIR' });
  await make(dirname(dir));
  await mkdir(dir, { mode: 0o700 }).catch((error) => {
    if (errorCode(error) !== 'EEXIST') throw error; // another process made it just now
  });
}

async function trySocket(path: string): Promise<void> {
  const name = `${path}-${process.pid}`;
  if (Buffer.byteLength(name) > 100) return; // too long to try by its path; the store has its own way
  const server = net.createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(name, resolve);
    });
  } finally {
    server.close();
    await rm(name, { force: true });
  }
}

/** Cause and remedy by error code. */
const databaseReasons: Record<string, readonly [string, string]> = {
  ECONNREFUSED: ['nothing listens there', 'Start the server, or correct host and port.'],
  ENOTFOUND: ['its host has no address', 'Correct the name.'],
  EAI_AGAIN: ['its host has no address now', 'Correct the name, or repair the name service.'],
  ETIMEDOUT: ['no PostgreSQL answers there', 'Correct host and port, or open the firewall.'],
  EHOSTUNREACH: ['its host cannot be reached', 'Correct the host, or repair the network.'],
  ECONNRESET: ['it ended the connection', 'See its log for the reason.'],
  EPROTO: ['it speaks no TLS', 'Remove sslmode from the address, or switch TLS on in the server.'],
  '28P01': ['it refused user or password', 'Correct them.'],
  '28000': ['it refused the user', 'See its pg_hba.conf.'],
  '3D000': ['there is no such database', 'Create it first.'],
  '42501': ['the user may not create tables there', 'Grant it the right to create in the database.'],
  '53300': ['it has no connection left', 'Raise its max_connections.'],
};

/** Errors of the client that have no code. */
const codeless: readonly (readonly [RegExp, string])[] = [
  [/timeout/, 'ETIMEDOUT'],
  [/^Connection terminated/, 'ECONNRESET'],
  [/does not support SSL/, 'EPROTO'],
];

/** The reason why the database of `DATABASE_URL` cannot be used. The address is shown without its password. */
export function databaseFault(error: Error, databaseUrl: string): Error {
  const code = errorCode(error) ?? codeless.find(([text]) => text.test(error.message))?.[1] ?? '';
  const found = databaseReasons[code];
  if (!found || !databaseUrl) return error;
  const [reason, remedy] = found;
  const where = urlOf(databaseUrl);
  const address = where ? `${where.username}@${where.host}${where.pathname}` : 'of this address';
  return new ConfigError([
    `DATABASE_URL: the database ${address} cannot be used: ${reason} (${code}). ${remedy} Without DATABASE_URL the service has a database of its own.`,
  ]);
}
