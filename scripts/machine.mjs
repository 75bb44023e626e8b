/** What the machine allows, found by trying it rather than by reading settings that may be misleading. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, statfsSync } from 'node:fs';
import { availableParallelism, freemem, totalmem } from 'node:os';
import { join } from 'node:path';
import { command, isRoot } from './parts.mjs';
import { root } from './run.mjs';
import { serviceUser, serviceUserExists } from './system.mjs';

const linux = process.platform === 'linux';

/**
 * The first line with a version that a program prints; undefined where it prints none. Other output, such as Chromium's profile lock and
 * Xvnc's stderr, is ignored.
 */
export function versionOf(program, args) {
  const { stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', timeout: 30_000 });
  const line = `${stdout}\n${stderr}`.split('\n').find((text) => /\d+\.\d+/.test(text));
  return line?.replace(/ +(- built|Copyright|built with).*/, '').trim();
}

/** Under root the database runs as a user of its own, which has to be able to reach this folder. */
export function serviceUserFinding() {
  if (!linux || !isRoot()) return [];
  const name = `user ${serviceUser}`;
  if (!serviceUserExists()) return [{ name, saw: 'npm start will create it' }];
  const reaches = spawnSync('test', ['-x', root], userOptions()).status === 0;
  return [
    {
      name,
      well: reaches,
      saw: reaches ? 'exists and reaches this folder' : `exists but may not enter ${root}`,
      without: 'the embedded database',
      mend: `Move the clone to a folder that every user can read, such as /opt, or: chmod o+x on the folders above ${root}`,
    },
  ];
}

/** Namespaces, tried as a user that is not root, because browsers do not run as root. */
export function sandboxes() {
  if (!linux)
    return [{ name: 'sandbox', saw: 'only on Linux: browsers are refused here, unless CORRAL_ALLOW_UNSANDBOXED=true' }];
  const as = isRoot() && serviceUserExists() ? `as ${serviceUser}` : 'as you';
  const namespaces = attempt('unshare', ['--user', '--map-root-user', '--net', 'true']);
  const bubblewrap = attempt('bwrap', ['--unshare-all', '--ro-bind', '/', '/', 'true']);
  return [
    {
      name: 'user namespaces',
      well: namespaces.works,
      saw: namespaces.works ? `work ${as}` : `refused ${as}: ${namespaces.reason}`,
      without: 'a network of its own for each session',
      mend: howToAllowNamespaces(),
    },
    {
      name: 'sandbox',
      well: bubblewrap.works,
      saw: bubblewrap.works ? `bubblewrap works ${as}` : `refused ${as}: ${bubblewrap.reason}`,
      without: 'browsers; CORRAL_ALLOW_UNSANDBOXED=true runs them without a sandbox',
      required: process.env.CORRAL_ALLOW_UNSANDBOXED !== 'true',
    },
  ];
}

/** Where a kernel or its administrator closed user namespaces, and the setting that opens them. */
function howToAllowNamespaces() {
  const gates = [
    { setting: 'kernel.unprivileged_userns_clone', closed: '0', open: '1' },
    { setting: 'kernel.apparmor_restrict_unprivileged_userns', closed: '1', open: '0' },
    { setting: 'user.max_user_namespaces', closed: '0', open: '15000' },
  ];
  const shut = gates.filter(({ setting, closed }) => readText(`/proc/sys/${setting.replaceAll('.', '/')}`) === closed);
  if (shut.length > 0) return `sudo sysctl -w ${shut.map(({ setting, open }) => `${setting}=${open}`).join(' ')}`;
  return 'In a container, allow user namespaces: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined …';
}

const controllers = ['memory', 'pids', 'freezer', 'cpu', 'io'];

/** The bounds of sessions, and the freezer that puts them on standby. Without that one SIGSTOP is used, which a page can notice. */
export function cgroups() {
  const name = 'cgroups';
  if (!linux) return { name, saw: 'only on Linux: standby stops processes by signal' };
  const version = existsSync('/sys/fs/cgroup/cgroup.controllers') ? 2 : 1;
  const found = controllers.map((controller) => ({ controller, ...ownGroups(version, controller) }));
  const lacking = found.filter(({ error }) => error);
  if (lacking.length === 0) return { name, saw: `version ${version}, and we may make our own` };
  const all = lacking.length === found.length;
  const names = lacking.map(({ controller }) => controller).join(', ');
  return {
    name,
    well: false,
    saw: `version ${version}, and we may not make our own${all ? '' : ` of ${names}`} (${lacking[0].error})`,
    without:
      "exact bounds: a session's memory is watched, its processes are bounded by an rlimit, and standby stops them by signal",
    mend: 'Run the service as root, or delegate a cgroup to its user (systemd: Delegate=yes in the unit).',
  };
}

/** Whether a group can be made for a controller: at the root of its hierarchy, or somewhere on the way to this process's own group. */
function ownGroups(version, controller) {
  const kernelName = controller === 'io' ? 'blkio' : controller;
  const lines = (readText('/proc/self/cgroup') ?? '').split('\n').map((line) => line.split(':'));
  const own = lines.find(([id, names]) => (version === 2 ? id === '0' : names.split(',').includes(kernelName)))?.[2];
  if (own === undefined) return { error: 'not there' };
  const hierarchy = join('/sys/fs/cgroup', version === 2 ? '' : kernelName);
  let error;
  for (let depth = 0, steps = own.split('/').filter(Boolean); depth <= steps.length; depth++) {
    const place = join(hierarchy, ...steps.slice(0, depth));
    const group = join(place, `corral-doctor-${process.pid}`);
    try {
      mkdirSync(group);
      rmdirSync(group);
    } catch (failure) {
      error = failure.code;
      continue;
    }
    // Under version 2 the freezer is everywhere, and the others where they are handed down.
    const handedDown = (readText(join(place, 'cgroup.controllers')) ?? '').split(' ');
    return version === 1 || controller === 'freezer' || handedDown.includes(controller)
      ? {}
      : { error: 'not handed down' };
  }
  return { error };
}

/** Of the data directory, where it is named and there. */
export function disk() {
  const named = process.env.CORRAL_DATA_DIR;
  const { bavail, bsize } = statfsSync(named && existsSync(named) ? named : root);
  const free = bavail * bsize;
  return {
    name: 'disk',
    well: free > 2 * gib,
    saw: `${inGib(free)} free`,
    without: 'room for profiles and replays',
    mend: 'Free some disk space, or point CORRAL_DATA_DIR at a larger disk.',
  };
}

export function memory() {
  // A container's memory limit counts, where there is one. Without one this is 0, or absurdly large.
  const limit = process.constrainedMemory?.() ?? 0;
  const total = limit > 0 && limit < totalmem() ? limit : totalmem();
  return [
    { name: 'memory', saw: `${inGib(Math.min(freemem(), total))} free of ${inGib(total)}` },
    { name: 'cores', saw: String(availableParallelism()) },
  ];
}

function attempt(name, args) {
  const program = command(name);
  if (!program) return { works: false, reason: `${name} is missing` };
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8', timeout: 10_000, ...userOptions() });
  return { works: status === 0, reason: (stderr ?? '').trim().split('\n').pop() };
}

/** Starts in /: in a folder that the user may not enter, the trial would fail before it began. */
function userOptions() {
  if (!isRoot() || !serviceUserExists()) return {};
  return { uid: serviceUserId('-u'), gid: serviceUserId('-g'), cwd: '/' };
}

function serviceUserId(flag) {
  return Number(spawnSync('id', [flag, serviceUser], { encoding: 'utf8' }).stdout);
}

const gib = 1024 ** 3;

function inGib(bytes) {
  return `${(bytes / gib).toFixed(1)} GiB`;
}

function readText(path) {
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined;
}
