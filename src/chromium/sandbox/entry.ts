import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { join } from 'node:path';
import { groupsOf } from './cgroup.ts';
import { andNoOther, type Descriptor } from './descriptors.ts';
import { LOWER } from './lowered.ts';
import { environment, HOME, PATH, STAGE, systemDirectories, UID } from './mounts.ts';
import type { Owner } from './owners.ts';
import { parent } from './process-tree.ts';
import { filterPath, withFilter } from './seccomp.ts';

/** Commands of the service: inside a running session, on the home of a stopped one, and outside of all sessions. */

/**
 * How to run another command inside a running session from the host. The guest is started this way. Root may
 * enter every namespace and then becomes the session's user. A service that is not root is that user already, and first enters the
 * outer bwrap's user namespace, in which it is root, to be allowed into the others.
 *
 * A process that enters from outside lacks the session's filter of system calls. One more bubblewrap inside adds it, and also puts the
 * process in one more user namespace: as its own user, unable to trace Chromium and others in the session's namespace. It takes 12 ms, once.
 */
export function enter(
  init: number,
  command: readonly string[],
  more: Record<string, string> = {},
  lower: Record<string, string> = {},
): { file: string; args: string[]; options: SpawnOptions } {
  const asRoot = process.getuid?.() === 0;
  const others = ['--user', '--mount', '--pid', '--ipc', '--uts', '--cgroup'];
  const root = ['--target', `${init}`, '--net', ...others, '--setuid', `${UID}`, '--setgid', `${UID}`];
  const first = ['--target', `${parent(init)}`, '--user', '--net', '--preserve-credentials'];
  const then = ['nsenter', '--target', `${init}`, ...others, '--preserve-credentials'];
  const variables = Object.entries({ ...environment, ...more }).map(([name, value]) => `${name}=${value}`);
  const filter = filterPath('guest');
  const filtered = ['bwrap', '--dev-bind', '/', '/', '--die-with-parent', '--seccomp', '9', '--'];
  const inside = ['setpriv', '--no-new-privs', '--inh-caps=-all', ...(filter === undefined ? [] : filtered)];
  inside.push('env', '-i', '-C', HOME, ...variables, ...command);
  const groups = groupsOf(init).map((group) => join(group, 'cgroup.procs'));
  const way = ['nsenter', ...(asRoot ? root : [...first, '--', ...then]), '--', ...inside];
  const args = ['-c', JOIN_SCRIPT, 'corral', filter ?? '/dev/null', ...groups, '--', ...way];
  return { file: 'sh', args, options: { cwd: '/', env: { PATH, ...lower } } };
}

/** How to run another command as the session's user without a sandbox. */
export function beside(
  dir: string,
  owner: Owner,
  [file = '', ...args]: readonly string[],
  more: Record<string, string> = {},
): { file: string; args: string[]; options: SpawnOptions } {
  const home = join(dir, 'home');
  const env = { ...environment, HOME: home, USER: owner.name, TMPDIR: join(dir, 'run'), ...more };
  const as = process.getuid?.() === 0 ? { uid: owner.uid, gid: owner.gid } : {};
  return { file, args, options: { cwd: home, env, ...as } };
}

/**
 * Starts a program of the service that reads a session's data, in a separate sandbox: it sees only the system and the descriptors it is
 * given. Without sandboxes it is an ordinary process of the unprivileged user.
 */
export function startHelper(
  command: readonly string[],
  { sandboxed, owner }: { sandboxed: boolean; owner: Owner },
  stdio: readonly Descriptor[],
): ChildProcess {
  const drop = process.getuid?.() === 0 ? stepDown(owner) : [];
  const args = ['--unshare-all', '--die-with-parent', '--new-session', '--clearenv', '--setenv', 'PATH', PATH];
  args.push(...systemDirectories(), '--proc', '/proc', '--dev', '/dev');
  args.push('--size', String(64 * 2 ** 20), '--tmpfs', '/tmp');
  return withFilter('helper', stdio.length, (filter, words) => {
    const [file = '', ...rest] = [...drop, ...(sandboxed ? ['bwrap', ...words, ...args, '--'] : []), ...command];
    return spawn(file, rest, { stdio: andNoOther(...stdio, ...filter), cwd: '/', env: { PATH } });
  });
}

/** Entering namespaces does not join the cgroup. A process counts against the session's limits only after joining it. */
const JOIN_SCRIPT = `${LOWER}
exec 9<"$1" || exit 1
shift
while [ "$1" != -- ]; do echo $$ >"$1" || exit 1; shift; done
shift
exec "$@"
`;

/**
 * How to run a command on a session's home while no browser runs there: as the session's user, with the home as the only writable
 * directory, no network and no view of the rest of the machine. The home's content is hostile; links in it cannot lead out of the sandbox.
 * `more` holds bubblewrap's arguments for the filter.
 */
export function onHome(
  dir: string,
  owner: Owner,
  command: readonly string[],
  more: readonly string[],
): { file: string; args: string[] } {
  const asRoot = process.getuid?.() === 0;
  const args = ['--unshare-all', '--die-with-parent', '--clearenv', '--setenv', 'PATH', PATH];
  args.push('--setenv', 'LC_ALL', 'C.UTF-8', ...systemDirectories(), '--dev', '/dev');
  args.push('--bind', join(asRoot ? STAGE : dir, 'home'), HOME, '--remount-ro', '/', '--chdir', HOME);
  const inside = ['bwrap', ...more, ...args, '--', ...command];
  if (!asRoot) return { file: 'bwrap', args: inside.slice(1) };
  return {
    file: 'unshare',
    args: ['--mount', '--', 'sh', '-c', STAGE_SCRIPT, 'corral', dir, ...stepDown(owner), ...inside],
  };
}

const STAGE_SCRIPT = `mount --bind "$1" ${STAGE} || exit 1; shift; exec "$@"`;

export function stepDown({ uid, gid }: Owner): string[] {
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--inh-caps=-all'];
}
