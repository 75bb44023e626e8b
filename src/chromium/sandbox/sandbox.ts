import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { lstatSync, readlinkSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { groupsOf } from './cgroup.ts';
import { andNoOther, type Descriptor } from './descriptors.ts';
import { LOWER } from './lowered.ts';
import type { Owner } from './owners.ts';
import { parent } from './process-tree.ts';
import { filterPath, withFilter } from './seccomp.ts';

/**
 * One session's sandbox. Who is parent of whom:
 *
 *     service
 *     └─ bwrap              was `unshare`, then the shell below; the process group is the session's
 *        ├─ (ip, node)      short-lived: make the network, hand its listening socket to the service, and are gone
 *        └─ bwrap           process 1 of the pid namespace: when it goes, the kernel takes everything below with it
 *           └─ the command  Chromium; a headful one has its display beside it, in a sandbox of its own (display.ts)
 *
 * It dies with its parent at each step: a killed service takes the outer bwrap along, that one takes process 1, and that
 * one the rest. There is no moment at which a process could outlive the service by being orphaned.
 *
 * Under root the network and mount namespaces belong to root and the rest is made by an unprivileged user (setpriv); an ordinary user
 * makes all of them in a user namespace in which it is root (unshare). Either way Chromium sees uid 1000, has no
 * capabilities and can gain none, and is an unprivileged uid outside too: under root one that no other session has (owners.ts).
 */

export const HOME = '/home/corral';
/** Where a session finds the guest's code and what it needs, to read. */
export const TOOLS = '/opt/corral';
/** Where X clients look for the display's socket. */
export const X_SOCKETS = '/tmp/.X11-unix';
/** Not in the home, where the session could put a link in the way of what the service writes. */
const EXTENSIONS = '/opt/extensions';
/** The gateway's port inside the session's network namespace. Nobody else is there, so it can be the same for all. */
const GATEWAY_PORT = 3128;

export const UID = 1000;
export const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';
/**
 * Where a session's directory is shown to bubblewrap: under root the unprivileged user may not be able to walk to the data directory,
 * and a session that reads bubblewrap's command line need not learn where that is.
 */
export const STAGE = '/mnt';

/** Where a session's browser runs: its paths as the browser sees them, and how to start a command there. */
export interface Place {
  readonly userData: string;
  /** The session's `extensions`. */
  readonly extensions: string;
  readonly gatewayPort: number;
  start(command: readonly string[], needs?: Needs): Process;
  /** Stops listening, whoever listens by then. */
  close(): void;
}

interface Needs {
  /** Directories outside /usr that the command reads. */
  readonly readable?: readonly string[];
  /** What is shown at TOOLS. */
  readonly tools?: string | undefined;
  readonly gpu?: boolean;
  /** Pid of the display, whose namespaces are up. */
  readonly display?: number | undefined;
  /** What of its environment LOWER reads. */
  readonly lower?: Record<string, string>;
}

export interface Process {
  readonly child: ChildProcess;
  /** What the command reads on descriptor 3, and what it writes on 4. */
  readonly toCommand: Writable;
  readonly fromCommand: Readable;
  /** The gateway's socket. It listens once this resolves, but nothing is accepted before the server is asked for. */
  readonly egress: Promise<() => net.Server>;
  /** Host pid of process 1 of the session's pid namespace; undefined where there is none. */
  readonly init: Promise<number | undefined>;
  /**
   * Lets the process go on, which until then waits, so that it can be put in its cgroup while it is alone. The command itself waits for
   * the display, if there is one.
   */
  readonly go: (display?: Promise<string>) => void;
}

/** Files of /etc that are the same for everyone; what else is in there is nobody's business. */
export const MOUNTED_ETC = [
  'fonts',
  'ssl/certs',
  'ssl/openssl.cnf',
  'alternatives',
  'ld.so.cache',
  'localtime',
  'mime.types',
  'drirc',
].map((name) => ({ name, ...kind(join('/etc', name)) }));

/** A sandbox for each command that is started; a session starts one. */
export function sandboxed(dir: string, owner: Owner): Place {
  const asRoot = process.getuid?.() === 0;
  const drop = asRoot ? stepDown(owner) : [];
  const sockets: { close(): void }[] = [];

  return {
    userData: `${HOME}/user-data`,
    extensions: EXTENSIONS,
    gatewayPort: GATEWAY_PORT,

    start(command, needs = {}) {
      const { tools, display } = needs;
      const script = ['sh', '-c', SCRIPT, 'corral', dir, tools ?? '', process.execPath, HELPER];
      const shown = tools === undefined ? needs : { ...needs, tools: join(STAGE, 'tools') };
      const child = withFilter('browser', 7, (filter, words) => {
        const inside = [...script, ...drop, 'bwrap', ...words, ...bubblewrap(STAGE, shown), '--', ...command];
        const [file = '', ...args] = [...namespaces(display), '--', ...inside];
        return spawn(file, args, {
          stdio: andNoOther('pipe', 'ignore', 'pipe', 'pipe', 'pipe', 'ipc', 'pipe', ...filter),
          detached: true, // its own session and process group, so that a signal to the group reaches all of it
          cwd: '/',
          env: { PATH, ...needs.lower }, // also for speed: a NODE_EXTRA_CA_CERTS alone makes the helper 55 ms slower
        });
      });
      return {
        child,
        ...pipes(child),
        egress: receiveSocket(child, sockets),
        init: readInit(child, 6),
        go: (display) => letGo(child, display),
      };
    },

    close: () => sockets.splice(0).forEach((socket) => socket.close()),
  };
}

/** New ones; on a display its IPC namespace, and where that takes a user namespace, that one too. */
function namespaces(display: number | undefined): string[] {
  const asRoot = process.getuid?.() === 0;
  const unshare = ['unshare', '--net', '--mount'];
  if (display === undefined) return asRoot ? unshare : [...unshare, '--user', '--map-root-user'];
  const user = asRoot ? [] : ['--user', '--preserve-credentials'];
  return ['nsenter', '--target', String(display), '--ipc', ...user, '--', ...unshare];
}

/** No sandbox at all, where there is none to be had: only the process group and the directory are the session's own. */
export async function unsandboxed(dir: string, owner: Owner): Promise<Place> {
  const asRoot = process.getuid?.() === 0;
  const run = join(dir, 'run');
  const server = net.createServer();
  await new Promise<void>((resolve, reject) => void server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const address = server.address();

  return {
    userData: join(dir, 'home/user-data'),
    extensions: join(dir, 'extensions'),
    gatewayPort: typeof address === 'object' && address !== null ? address.port : 0,

    start(command) {
      const child = spawn('sh', ['-c', UNSANDBOXED_SCRIPT, 'corral', ...command], {
        stdio: andNoOther('pipe', 'ignore', 'pipe', 'pipe', 'pipe'),
        detached: true,
        cwd: '/',
        env: { ...environment, HOME: join(dir, 'home'), USER: owner.name, TMPDIR: run, XDG_RUNTIME_DIR: run },
        ...(asRoot ? { uid: owner.uid, gid: owner.gid } : {}),
      });
      return {
        child,
        egress: Promise.resolve(() => server),
        init: Promise.resolve(undefined),
        ...pipes(child),
        go: (display) => letGo(child, display),
      };
    },

    close: () => server.close(),
  };
}

/**
 * How to run another command inside a running session, seen from the host: what starts the guest. Root may
 * enter everything and then becomes the session's user. Anybody else is that user already, and first has to enter the namespace
 * in which it is root, the outer bwrap's, to be allowed into the others.
 *
 * Who enters from outside does not have the session's filter of system calls, so one more bubblewrap inside gives it one, which also puts
 * it in one more user namespace: as its own user, without a way to trace what Chromium and others in the session's namespace do.
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

/** How to run another command as the session's user where there is no sandbox to enter. */
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
 * A program of the service's own that reads what a session made, in a sandbox of its own: it sees the system and what it is handed,
 * and reaches nothing else. Without sandboxes it is an ordinary process of the unprivileged user.
 */
export function confine(
  command: readonly string[],
  { sandboxed, owner }: { sandboxed: boolean; owner: Owner },
  stdio: readonly Descriptor[],
): ChildProcess {
  const drop = process.getuid?.() === 0 ? stepDown(owner) : [];
  const args = ['--unshare-all', '--die-with-parent', '--new-session', '--clearenv', '--setenv', 'PATH', PATH];
  args.push(...systemDirectories(), '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp');
  return withFilter('helper', stdio.length, (filter, words) => {
    const [file = '', ...rest] = [...drop, ...(sandboxed ? ['bwrap', ...words, ...args, '--'] : []), ...command];
    return spawn(file, rest, { stdio: andNoOther(...stdio, ...filter), cwd: '/', env: { PATH } });
  });
}

/** A namespace is not a cgroup: who enters the one counts against the session's limits only by joining the other. */
const JOIN_SCRIPT = `${LOWER}
exec 9<"$1" || exit 1
shift
while [ "$1" != -- ]; do echo $$ >"$1" || exit 1; shift; done
shift
exec "$@"
`;

/**
 * How to run a command on a session's home while no browser runs there: as the session's user, with the home as its only writable
 * place, no network and nothing else of the machine to see. What is in the home is hostile: a link in it leads nowhere from in there.
 * `more` is for bubblewrap: its filter.
 */
export function confined(
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

const environment = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME,
  USER: 'corral',
  LOGNAME: 'corral',
  SHELL: '/bin/sh',
  LANG: 'C.UTF-8',
  XDG_RUNTIME_DIR: '/run/user',
  // There is no bus; an address that cannot be one makes Chromium give up at once instead of looking for it.
  DBUS_SESSION_BUS_ADDRESS: 'disabled:',
  DBUS_SYSTEM_BUS_ADDRESS: 'disabled:',
};

function bubblewrap(source: string, { readable = [], gpu = false, tools, display }: Needs): string[] {
  const args: string[] = [];
  const add = (...words: string[]) => args.push(...words);

  add('--unshare-user', '--uid', String(UID), '--gid', String(UID)); // not root, not even inside
  add('--unshare-pid', '--unshare-uts', '--unshare-cgroup-try', '--hostname', 'browser');
  if (display === undefined) add('--unshare-ipc');
  add('--die-with-parent'); // the service's death is the session's
  add('--info-fd', '6'); // says which host pid is process 1

  add('--clearenv'); // the service's environment holds its secrets
  for (const [name, value] of Object.entries(environment)) add('--setenv', name, value);

  add('--ro-bind', '/usr', '/usr');
  for (const name of ['bin', 'sbin', 'lib', 'lib32', 'lib64']) add(...systemDirectory(`/${name}`));

  add('--ro-bind', join(source, 'etc'), '/etc');
  for (const { name, exists } of MOUNTED_ETC) if (exists) add('--ro-bind', join('/etc', name), join('/etc', name));
  add('--ro-bind-try', '/var/cache/fontconfig', '/var/cache/fontconfig'); // without it, each start reads all fonts: 0.3 s

  add('--proc', '/proc'); // of the new pid namespace: nobody else's processes
  add('--dev', '/dev');
  add('--size', String(2 * 2 ** 30), '--tmpfs', '/dev/shm'); // bounded, for where no cgroup counts it
  add('--remount-ro', '/dev');
  add('--perms', '1777', '--size', String(2 * 2 ** 30), '--tmpfs', '/tmp');
  add('--dir', '/var/tmp', '--perms', '0700', '--tmpfs', '/run/user');
  if (gpu)
    add(
      '--dev-bind',
      '/dev/dri',
      '/dev/dri',
      '--ro-bind',
      '/sys/dev/char',
      '/sys/dev/char',
      '--ro-bind',
      '/sys/devices',
      '/sys/devices',
    );

  if (display !== undefined) add('--ro-bind', join(source, 'display/x11'), X_SOCKETS, '--setenv', 'DISPLAY', ':0');
  for (const path of readable) add('--ro-bind', path, path);
  if (tools !== undefined) add('--ro-bind', tools, TOOLS);
  add('--bind', join(source, 'home'), HOME);
  add('--bind', join(source, 'extensions'), EXTENSIONS); // the directory is the service's, what is in it the session's: Chromium writes there
  add('--remount-ro', '/'); // the rest of the tree is a tmpfs of its own, and nothing is to be written there
  add('--chdir', HOME);
  return args;
}

/**
 * Runs as root of the new network namespace, before anything is dropped. `$1` is the directory to show at the stage, `$2`
 * one to show within it, if there is one.
 *
 * The first `read` waits for the service to have put this process in its cgroup, the second one for the display; each ends all of it
 * if the service died meanwhile.
 * A namespace with nothing but `lo` makes navigator.onLine false; both ends of a veth pair inside, and a default route that
 * leads from one end to the other, make it true and lead nowhere.
 *
 * The network is whole before Chromium looks at it, and stays as it is: an address that comes later, as IPv6 gives each link
 * one of its own a second after it is up, makes Chromium drop every request in flight (ERR_NETWORK_CHANGED).
 */
const SCRIPT = `
read -r go || exit 1
exec >&2
${LOWER}
mount --bind "$1" ${STAGE} || exit 1
[ -z "$2" ] || mount --bind "$2" ${STAGE}/tools || exit 1
ip -force -batch - <<END
link set lo up
link add v0 type veth peer name v1
link set v0 addrgenmode none
link set v1 addrgenmode none
addr add 10.0.0.2/24 dev v0
link set v0 up
link set v1 up
route add default via 10.0.0.1
END
"$3" -e "$4" </dev/null 3<&- 4>&- 6>&- 7<&- &
shift 4
read -r display || exit 1
exec "$@" </dev/null 5>&-
`;

const UNSANDBOXED_SCRIPT = `
read -r go && read -r display || exit 1
[ -z "$display" ] || export DISPLAY="$display"
exec </dev/null >&2
${LOWER}
exec "$@"
`;

/**
 * Listens inside the namespace and hands the socket over. It is sent as a bare handle, not as a server: the service then
 * accepts nothing before it is ready to, and connections wait in the kernel instead of being lost. A service that was killed while
 * this starts has gone before anybody listens for it: hence the question at the end.
 */
const HELPER = `
process.on('disconnect', () => process.exit());
const server = require('node:net').createServer();
server.listen({ host: '127.0.0.1', port: ${GATEWAY_PORT}, backlog: 511 }, () =>
  process.connected ? process.send('egress', server._handle) : process.exit());
`;

function receiveSocket(child: ChildProcess, sockets: { close(): void }[]): Process['egress'] {
  const received = new Promise<() => net.Server>((resolve, reject) => {
    child.once('message', (_, handle) => {
      if (child.connected) child.disconnect();
      if (!isSocket(handle)) return reject(new Error('the network namespace handed over something else.'));
      const socket = handle;
      sockets.push(socket);
      resolve(() => {
        const server = net.createServer().listen(socket);
        sockets.splice(sockets.indexOf(socket), 1, server);
        return server;
      });
    });
    child.once('disconnect', () => reject(new Error('the network namespace handed over no socket.')));
    child.once('error', reject);
  });
  received.catch(() => {}); // whoever waits for it hears of it
  return received;
}

/** A bare handle has no class that could be named here; what is needed of it is that it can be listened on and closed. */
function isSocket(handle: unknown): handle is { close(): void } {
  return typeof handle === 'object' && handle !== null && 'close' in handle;
}

/** Bubblewrap writes `{"child-pid": 123, …}` once and closes. */
export function readInit(child: ChildProcess, descriptor: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const info = child.stdio.at(descriptor);
    if (!(info instanceof Readable)) return resolve(undefined);
    let text = '';
    info.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      const pid = /"child-pid": *(\d+)/.exec(text)?.[1];
      if (pid !== undefined) resolve(Number(pid));
    });
    info.on('error', () => {}).on('close', () => resolve(undefined));
    child.once('error', () => resolve(undefined));
  });
}

function pipes({ stdio: [, , , toCommand, fromCommand] }: ChildProcess): Pick<Process, 'toCommand' | 'fromCommand'> {
  if (!(toCommand instanceof Writable) || !(fromCommand instanceof Readable)) throw new Error('spawned without pipes');
  return { toCommand, fromCommand };
}

/** Without a display that comes up, it ends. */
export function letGo(child: ChildProcess, display: Promise<string> = Promise.resolve('')) {
  const { stdin } = child;
  stdin?.on('error', () => {}); // it died before it was let go; `exit` says so
  stdin?.write('go\n');
  display.then(
    (name) => stdin?.end(`${name}\n`),
    () => stdin?.end(),
  );
}

/** What every program needs of the system, to read. */
export function systemDirectories(): string[] {
  const directories = ['bin', 'sbin', 'lib', 'lib32', 'lib64'].flatMap((name) => systemDirectory(`/${name}`));
  const files = ['alternatives', 'ld.so.cache'].flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]);
  return ['--ro-bind', '/usr', '/usr', ...directories, ...files];
}

/** Merged into /usr by a link on today's systems, a directory of its own on others, absent on some. */
function systemDirectory(path: string): string[] {
  const { exists, isDirectory } = kind(path);
  if (!exists) return [];
  return isDirectory ? ['--ro-bind', path, path] : ['--symlink', readlinkSync(path), path];
}

function kind(path: string): { exists: boolean; isDirectory: boolean } {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return { exists: found !== undefined, isDirectory: found?.isDirectory() ?? false };
}
