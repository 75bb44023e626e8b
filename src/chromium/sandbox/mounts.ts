import { lstatSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** What a session sees of the machine: its paths, its environment, and the mounts that make them. */

export const HOME = '/home/corral';
/** Where a session finds the guest's code and its dependencies, read-only. */
export const TOOLS = '/opt/corral';
/** Where a worker finds the app it runs, read-only. */
export const APP = '/opt/app';
/** Where a session has files in memory. Each has a limit, and without a control group the memory watch counts their contents. */
export const MEMORY_DISKS = ['/tmp', '/dev/shm', '/run/user'];
/** Where X clients look for the display's socket. */
export const X_SOCKETS = '/tmp/.X11-unix';
/** Not in the home: there a session could put a link in the path of the service's writes. */
export const EXTENSIONS = '/opt/extensions';
export const UID = 1000;
/** The name of the machine inside. The display has the same: openbox puts the name of another machine into the titles of its windows. */
export const HOSTNAME = 'browser';
export const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';
/**
 * Where a session's directory is mounted for bubblewrap: under root the unprivileged user may not be able to walk to the data directory,
 * and a session that reads bubblewrap's command line does not learn its path. `/proc/self/mountinfo` still has that path, as the root of each bind
 * mount. The kernel takes it from the file system, so no other mount hides it; neither do proc's options, seccomp or Landlock. An overlay would, but
 * the service changes homes and extensions from outside while they are mounted, which overlays do not support.
 */
export const STAGE = '/mnt';

/** An address inside the network namespace at which a server outside of it is reached: connections are passed to that server. */
export interface Listener {
  /** Listened on inside. Addresses that are not loopback are given to the namespace's loopback device. */
  readonly address: string;
  readonly port: number;
}

/** What else a command may need to see. */
export interface Needs {
  /** Directories outside /usr that the command reads. */
  readonly readable?: readonly string[];
  /** The directory mounted at TOOLS. */
  readonly tools?: string | undefined;
  /** The directory mounted at APP. */
  readonly app?: string | undefined;
  readonly listeners?: readonly Listener[];
  readonly gpu?: boolean;
  /** Pid of the display. Its namespaces exist already. */
  readonly display?: number | undefined;
  /** The environment that LOWER reads. */
  readonly lower?: Record<string, string>;
}

/** Files of the host's /etc that every session sees. The rest of it is hidden. */
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

export const environment = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME,
  USER: 'corral',
  LOGNAME: 'corral',
  SHELL: '/bin/sh',
  LANG: 'C.UTF-8',
  XDG_RUNTIME_DIR: '/run/user',
  // There is no bus. With an invalid address Chromium stops immediately instead of looking for one.
  DBUS_SESSION_BUS_ADDRESS: 'disabled:',
  DBUS_SYSTEM_BUS_ADDRESS: 'disabled:',
};

/** Bubblewrap's arguments for a session in the directory `source`. */
export function bubblewrap(source: string, { readable = [], gpu = false, tools, app, display }: Needs): string[] {
  const args: string[] = [];
  const add = (...words: string[]) => args.push(...words);

  add('--unshare-user', '--uid', String(UID), '--gid', String(UID)); // not root, not even inside
  add('--unshare-pid', '--unshare-uts', '--unshare-cgroup-try', '--hostname', HOSTNAME);
  if (display === undefined) add('--unshare-ipc');
  add('--die-with-parent'); // the session dies with the service
  add('--info-fd', '6'); // reports the host pid of process 1

  add('--clearenv'); // the service's environment holds its secrets
  for (const [name, value] of Object.entries(environment)) add('--setenv', name, value);

  add('--ro-bind', '/usr', '/usr');
  for (const name of ['bin', 'sbin', 'lib', 'lib32', 'lib64']) add(...systemDirectory(`/${name}`));

  add('--ro-bind', join(source, 'etc'), '/etc');
  for (const { name, exists } of MOUNTED_ETC) if (exists) add('--ro-bind', join('/etc', name), join('/etc', name));
  add('--ro-bind-try', '/var/cache/fontconfig', '/var/cache/fontconfig'); // without it, each start reads all fonts: 0.3 s

  add('--proc', '/proc'); // of the new pid namespace: only the session's processes
  add('--dev', '/dev');
  add('--size', String(2 * 2 ** 30), '--tmpfs', '/dev/shm');
  add('--remount-ro', '/dev');
  add('--perms', '1777', '--size', String(2 * 2 ** 30), '--tmpfs', '/tmp');
  add('--dir', '/var/tmp', '--perms', '0700', '--size', String(64 * 2 ** 20), '--tmpfs', '/run/user'); // sockets and locks
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
  if (app !== undefined) add('--ro-bind', app, APP);
  add('--bind', join(source, 'home'), HOME);
  add('--bind', join(source, 'extensions'), EXTENSIONS); // the service owns the directory, the session its content: Chromium writes there
  add('--remount-ro', '/'); // the rest of the tree is a separate tmpfs that stays empty
  add('--chdir', HOME);
  return args;
}

/** The system directories that every program needs, read-only. */
export function systemDirectories(): string[] {
  const directories = ['bin', 'sbin', 'lib', 'lib32', 'lib64'].flatMap((name) => systemDirectory(`/${name}`));
  const files = ['alternatives', 'ld.so.cache'].flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]);
  return ['--ro-bind', '/usr', '/usr', ...directories, ...files];
}

/** A link into /usr on current systems, a separate directory on others, absent on some. */
function systemDirectory(path: string): string[] {
  const { exists, isDirectory } = kind(path);
  if (!exists) return [];
  return isDirectory ? ['--ro-bind', path, path] : ['--symlink', readlinkSync(path), path];
}

function kind(path: string): { exists: boolean; isDirectory: boolean } {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return { exists: found !== undefined, isDirectory: found?.isDirectory() ?? false };
}
