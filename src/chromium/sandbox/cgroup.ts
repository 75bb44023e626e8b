import { spawn } from 'node:child_process';
import { accessSync, constants, mkdirSync, readFileSync, readdirSync, rmdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CONTROLLERS,
  limitFiles,
  put,
  shareFiles,
  write,
  type Controller,
  type Limits,
  type Places,
} from './cgroup-limits.ts';

/**
 * A control group for each session: limits on memory, processes and processor time, and the freezer for standby.
 *
 * Groups are `corral/<name>` below the topmost writable group on the path to the service's own: the root of the hierarchy for
 * root, the delegated group under systemd, none for an ordinary user without delegation. That path does not depend on how
 * the service was started, so a new service finds the groups that a killed one left.
 */
export interface Cgroups {
  readonly version: 'v1' | 'v2';
  /** The available controllers. */
  readonly controllers: readonly Controller[];
  create(name: string, limits: Limits): Cgroup;
  /** Kills and removes every group with a name that starts with `prefix`. */
  sweep(prefix: string): Promise<string[]>;
}

export interface Cgroup {
  readonly canFreeze: boolean;
  /** Moves a process into the group. Children that it starts afterwards are in the group too. */
  add(pid: number): Promise<void>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Bytes in use that the kernel cannot reclaim; undefined where memory is not counted. */
  memory(): number | undefined;
  /** How often the kernel killed a process in it for lack of memory; undefined where memory is not limited. */
  outOfMemory(): number | undefined;
  pids(): number[];
  /** Kills all processes in the group, frozen or not. */
  kill(): void;
  /** Kills the remaining processes and removes the group. */
  remove(): Promise<void>;
}

const GROUP = 'corral';
/** The service's own group below its delegated group: under version 2 a group that passes controllers on has no processes. */
const OWN_GROUP = 'corral-service';
const KILL_PATIENCE_MS = 10_000;
/** A process that waits for a dead disk cannot be frozen; without a limit the freeze would wait forever. */
const FREEZE_PATIENCE_MS = 10_000;

/** The control groups that the service may use according to /proc; undefined where there are none. */
export function findCgroups(
  mounts = attemptRead('/proc/self/mounts'),
  own = attemptRead('/proc/self/cgroup'),
  freezeMs = FREEZE_PATIENCE_MS,
): Cgroups | undefined {
  return v1(mounts, own, freezeMs) ?? v2(mounts, own, freezeMs);
}

/** Permission to create a group does not imply permission to move a process there; under systemd these differ. */
export async function canMoveInto(cgroups: Cgroups): Promise<boolean> {
  const name = `trial-${process.pid}-`; // no beginning of another process's: groups are swept by it
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  const exited = new Promise((resolve) => child.once('exit', resolve).once('error', resolve));
  try {
    await cgroups.create(name, {}).add(child.pid ?? 0);
    return true;
  } catch {
    return false;
  } finally {
    child.kill('SIGKILL');
    await exited;
    await cgroups.sweep(name);
  }
}

/** Version 1: one hierarchy for each controller. */
function v1(mounts: string, own: string, freezeMs: number): Cgroups | undefined {
  const places: Places = {};
  for (const [, mount, type, options] of fields(mounts)) {
    if (type !== 'cgroup' || mount === undefined || options === undefined) continue;
    for (const controller of CONTROLLERS) {
      const name = controller === 'io' ? 'blkio' : controller;
      if (!options.split(',').includes(name)) continue;
      // not linear: the kernel writes the text, and CONTROLLERS has the names
      const path = own.match(new RegExp(`^\\d+:(?:[^:]*,)?${name}(?:,[^:]*)?:(.*)$`, 'm'))?.[1];
      const place = path === undefined ? undefined : topmostWritable(mount, path);
      if (place !== undefined && makeGroup(join(place, GROUP))) places[controller] = join(place, GROUP);
    }
  }
  return Object.keys(places).length === 0 ? undefined : cgroups('v1', places, freezeMs);
}

/** Version 2: one hierarchy for all controllers. The freezer needs none; each limit needs its controller handed down. */
function v2(mounts: string, own: string, freezeMs: number): Cgroups | undefined {
  const mount = fields(mounts).find(([, , type]) => type === 'cgroup2')?.[1];
  const path = own.match(/^0::(.*)$/m)?.[1];
  const place = mount === undefined || path === undefined ? undefined : topmostWritable(mount, path);
  if (place === undefined || !makeGroup(join(place, GROUP))) return undefined;

  const group = join(place, GROUP);
  const places: Places = { freezer: group };
  const handDown = (at: string, controller: Controller) =>
    attempt(() => write(join(at, 'cgroup.subtree_control'), `+${controller}`));
  for (const controller of CONTROLLERS) {
    if (controller === 'freezer' || !words(join(place, 'cgroup.controllers')).includes(controller)) continue;
    const fromPlace =
      words(join(place, 'cgroup.subtree_control')).includes(controller) ||
      handDown(place, controller) ||
      (path !== undefined &&
        place !== mount &&
        place === join(mount!, path) &&
        vacate(place) &&
        handDown(place, controller));
    if (fromPlace && handDown(group, controller)) places[controller] = group;
  }
  return cgroups('v2', places, freezeMs);
}

/** Moves the processes of the service's own group into a group below it. */
function vacate(place: string): boolean {
  const below = join(place, OWN_GROUP);
  if (!makeGroup(below)) return false;
  return numbers(attemptRead(join(place, 'cgroup.procs'))).every((pid) =>
    attempt(() => write(join(below, 'cgroup.procs'), String(pid)), 'ESRCH'),
  );
}

function cgroups(version: 'v1' | 'v2', places: Places, freezeMs: number): Cgroups {
  const open = (name: string) => {
    return cgroup(version, below(places, name), freezeMs);
  };
  for (const share of shareFiles(version, places)) attempt(() => put(share)); // if this fails, each session still has its own limits
  return {
    version,
    controllers: CONTROLLERS.filter((controller) => places[controller] !== undefined),

    create(name, limits) {
      const group = open(name);
      for (const place of group.paths) mkdirSync(place, { recursive: true });
      for (const limit of limitFiles(version, below(places, name), limits)) put(limit);
      return group;
    },

    async sweep(prefix) {
      const left = new Set(
        Object.values(places).flatMap((place) => subgroups(place).filter((name) => name.startsWith(prefix))),
      );
      await Promise.all([...left].map((name) => open(name).remove()));
      return [...left];
    },
  };
}

function below(places: Places, name: string): Places {
  return Object.fromEntries(Object.entries(places).map(([controller, place]) => [controller, join(place, name)]));
}

function cgroup(version: 'v1' | 'v2', at: Places, freezeMs: number): Cgroup & { paths: string[] } {
  const paths = [...new Set(Object.values(at).filter((path) => path !== undefined))];
  const { freezer } = at;

  /** Throws ENOENT or ENODEV when the group is removed. */
  async function setFrozen(frozen: boolean) {
    if (freezer === undefined) throw new Error('no freezer here');
    const what = frozen ? 'frozen' : 'thawed';
    if (version === 'v2') {
      write(join(freezer, 'cgroup.freeze'), frozen ? '1' : '0');
      await until(() => read(join(freezer, 'cgroup.events')).includes(`frozen ${frozen ? 1 : 0}`), what, freezeMs);
    } else {
      write(join(freezer, 'freezer.state'), frozen ? 'FROZEN' : 'THAWED');
      await until(() => read(join(freezer, 'freezer.state')).trim() === (frozen ? 'FROZEN' : 'THAWED'), what, freezeMs);
    }
  }

  const pids = () => [...new Set(paths.flatMap((path) => numbers(attemptRead(join(path, 'cgroup.procs')))))];

  function kill() {
    // Since Linux 5.14: kills all processes at once, including those being forked.
    if (version === 'v2' && paths.every((path) => attempt(() => write(join(path, 'cgroup.kill'), '1')))) return;
    for (const pid of pids()) attempt(() => process.kill(pid, 'SIGKILL'));
    // Under version 1 a frozen process does not die of SIGKILL until it is thawed.
    if (freezer !== undefined && version === 'v1') attempt(() => write(join(freezer, 'freezer.state'), 'THAWED'));
  }

  return {
    paths,
    canFreeze: freezer !== undefined,
    // The kernel takes milliseconds for each write, since it waits for all processors. Asynchronous, so that the service is not blocked.
    async add(pid) {
      await Promise.all(paths.map((path) => writeFile(join(path, 'cgroup.procs'), String(pid), { flag: 'r+' })));
    },

    freeze: () => setFrozen(true),
    thaw: () => setFrozen(false),
    pids,

    memory() {
      if (at.memory === undefined) return undefined;
      const stat = attemptRead(join(at.memory, 'memory.stat'));
      // not linear: the kernel writes the text, and the keys are below
      const value = (key: string) => Number(stat.match(new RegExp(`^${key} (\\d+)$`, 'm'))?.[1] ?? 0);
      return version === 'v1'
        ? value('total_rss') + value('total_shmem')
        : value('anon') + value('shmem') + value('kernel');
    },

    outOfMemory() {
      if (at.memory === undefined) return undefined;
      const counts = attemptRead(join(at.memory, version === 'v1' ? 'memory.oom_control' : 'memory.events'));
      return Number(/^oom_kill (\d+)$/m.exec(counts)?.[1] ?? 0);
    },

    kill,

    async remove() {
      const patience = performance.now() + KILL_PATIENCE_MS;
      for (let wait = 1; ; wait = Math.min(wait * 2, 50)) {
        kill();
        const removed = paths.map((path) => attempt(() => rmdirSync(path), 'ENOENT'));
        if (removed.every(Boolean) || performance.now() > patience) return;
        await sleep(wait);
      }
    },
  };
}

/** The directories of the service's groups that a process is in, so that another process can be put there too. */
export function groupsOf(pid: number): string[] {
  const mounts = fields(attemptRead('/proc/self/mounts'));
  const memberships = attemptRead(`/proc/${pid}/cgroup`).matchAll(/^\d+:([^:]*):(.*)$/gm);
  return [...memberships].flatMap(([, controllers = '', path = '']) => {
    const mount = mounts.find(([, , type, options]) =>
      controllers === ''
        ? type === 'cgroup2'
        : type === 'cgroup' && controllers.split(',').every((controller) => options?.split(',').includes(controller)),
    )?.[1];
    return mount !== undefined && path.includes(`/${GROUP}/`) ? [join(mount, path)] : [];
  });
}

/** Walks down from the mount towards the service's own group and stops at the first writable directory. */
function topmostWritable(mount: string, own: string): string | undefined {
  const way = [mount];
  for (let path = join(mount, own); path.length > mount.length; path = dirname(path)) way.splice(1, 0, path);
  return way.find((path) => attempt(() => accessSync(join(path, 'cgroup.procs'), constants.W_OK)));
}

function makeGroup(path: string): boolean {
  return attempt(() => mkdirSync(path, { recursive: true }));
}

function subgroups(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch {
    return [];
  }
}

async function until(reached: () => boolean, what: string, patienceMs: number) {
  const patience = performance.now() + patienceMs;
  for (let wait = 0; !reached(); wait = Math.min(wait + 1, 20)) {
    if (performance.now() > patience) throw new Error(`A control group was not ${what} within ${patienceMs / 1000} s.`);
    await sleep(wait);
  }
}

function fields(text: string): string[][] {
  return text.split('\n').map((line) => line.split(' '));
}

function words(path: string): string[] {
  return attemptRead(path).split(/\s+/).filter(Boolean);
}

function numbers(text: string): number[] {
  return text.split('\n').filter(Boolean).map(Number);
}

function read(path: string): string {
  return readFileSync(path, 'utf8');
}

function attemptRead(path: string): string {
  try {
    return read(path);
  } catch {
    return '';
  }
}

/** True if `work` succeeded, or failed with the error code `fine`. */
function attempt(work: () => unknown, fine?: string): boolean {
  try {
    work();
    return true;
  } catch (error) {
    return fine !== undefined && error instanceof Error && 'code' in error && error.code === fine;
  }
}
