import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from '../protocol.ts';
import { Fault } from './fault.ts';

interface Runnable {
  file: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
}

/**
 * The command to execute, and its user. Root is root of an additional user namespace: it has root's rights there, and the rights of the
 * session's own user in the session. The same holds for any other user: outside of its namespace it is the session's user.
 */
export function runnable({ command, args, cwd: wanted, env: theirs, as_user, as_root }: Command): Runnable {
  const env = { ...ownEnvironment(), ...theirs };
  const cwd = wanted ?? env['HOME'] ?? '/';
  if (!isDirectory(cwd)) throw new Fault('bad_cwd', `cwd '${cwd}' is not a directory of the session.`);
  const file = find(command, env['PATH'] ?? '', cwd);
  const map = as_root ? ['--map-root-user'] : as_user === null ? undefined : mapUser(as_user);
  if (!map) return { file, args, cwd, env };
  // HOME stays the session's: no other home is writable.
  const user: Record<string, string> = as_root ? { USER: 'root', LOGNAME: 'root' } : {};
  const words = ['--user', ...map, '--', file, ...args];
  return { file: '/usr/bin/unshare', args: words, cwd, env: { ...env, ...user, ...theirs } };
}

const ownEnvironment = () =>
  Object.fromEntries(Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined));

/** Searches as execvp does, but fails with a readable message. */
function find(command: string, path: string, cwd: string): string {
  const places = command.includes('/')
    ? [resolve(cwd, command)]
    : path.split(':').map((dir) => resolve(cwd, dir, command));
  const found = places.find((place) => isFile(place));
  if (found === undefined) throw new Fault('no_command', `There is no command '${command}' in the session.`);
  const runs = places.find((place) => isFile(place) && isExecutable(place));
  if (runs === undefined) throw new Fault('no_command', `'${found}' is not executable.`);
  return runs;
}

/** A name of /etc/passwd, a uid, or uid:gid. Undefined for the session's own user. */
function mapUser(user: string): string[] | undefined {
  const lines = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const [, uid, gid] = /^(\d{1,9})(?::(\d{1,9}))?$/.exec(user) ?? [];
  const line = lines.find(([name, , id]) => name === user || (uid !== undefined && id === uid));
  const wanted = { uid: uid ?? line?.[2], gid: gid ?? line?.[3] ?? uid };
  if (user === 'root') return ['--map-root-user'];
  if (wanted.uid === undefined) {
    throw new Fault(
      'no_user',
      `as_user '${user}' is not a user of the session; it takes ${lines
        .map(([name]) => name)
        .filter(Boolean)
        .join(', ')}, root, a uid or uid:gid.`,
    );
  }
  if (Number(wanted.uid) === process.getuid?.() && Number(wanted.gid) === process.getgid?.()) return undefined;
  return [`--map-user=${wanted.uid}`, `--map-group=${wanted.gid}`];
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
