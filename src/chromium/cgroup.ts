import { spawn } from 'node:child_process';
import { accessSync, constants, mkdirSync, readFileSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A control group for each session: a bound on memory and processes, and the freezer behind standby.
 *
 * Groups are `corral/<name>` below the topmost group the service may write to on the way to its own: the root of the hierarchy for
 * root, the delegated group under systemd, nothing for an ordinary user without delegation. That place does not depend on how
 * the service was started, so a new service finds what a killed one left.
 */
export interface Cgroups {
  readonly version: 'v1' | 'v2';
  /** Which of memory, pids and freezer there are. */
  readonly controllers: readonly Controller[];
  create(name: string, limits: Limits): Cgroup;
  /** Kills and removes every group whose name starts with `prefix`. */
  sweep(prefix: string): Promise<string[]>;
}

export interface Cgroup {
  readonly canFreeze: boolean;
  /** Moves a process in; its children follow. Synchronous, so that it can be done before the process has any. */
  add(pid: number): void;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Bytes in use that could not be dropped, or undefined where memory is not counted. */
  memory(): number | undefined;
  pids(): number[];
  /** Kills what is in it, frozen or not. */
  kill(): void;
  /** Kills what is left in it and removes it. */
  remove(): Promise<void>;
}

export interface Limits {
  readonly memoryBytes?: number | undefined;
  readonly pids?: number | undefined;
}

const CONTROLLERS = ['memory', 'pids', 'freezer'] as const;
type Controller = (typeof CONTROLLERS)[number];
type Places = Partial<Record<Controller, string>>;

const GROUP = 'corral';
const KILL_PATIENCE_MS = 10_000;
/** For the kernel to stop or wake every process of a group; milliseconds as a rule. */
const FREEZE_PATIENCE_MS = 10_000;

/** What the service may use here, by what /proc says of it; undefined where it may use nothing. */
export function findCgroups(
  mounts = attemptRead('/proc/self/mounts'),
  own = attemptRead('/proc/self/cgroup'),
): Cgroups | undefined {
  return v1(mounts, own) ?? v2(mounts, own);
}

/** Being allowed to make a group is not yet being allowed to move a process there; under systemd these differ. */
export async function canMoveInto(cgroups: Cgroups): Promise<boolean> {
  const name = `trial-${process.pid}`;
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  const exited = new Promise((resolve) => child.once('exit', resolve).once('error', resolve));
  try {
    cgroups.create(name, {}).add(child.pid ?? 0);
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
function v1(mounts: string, own: string): Cgroups | undefined {
  const places: Places = {};
  for (const [, mount, type, options] of fields(mounts)) {
    if (type !== 'cgroup' || mount === undefined || options === undefined) continue;
    for (const controller of CONTROLLERS) {
      if (!options.split(',').includes(controller)) continue;
      const path = own.match(new RegExp(`^\\d+:(?:[^:]*,)?${controller}(?:,[^:]*)?:(.*)$`, 'm'))?.[1];
      const place = path === undefined ? undefined : topmostWritable(mount, path);
      if (place !== undefined && makeGroup(join(place, GROUP))) places[controller] = join(place, GROUP);
    }
  }
  return Object.keys(places).length === 0 ? undefined : cgroups('v1', places);
}

/** Version 2: one hierarchy for all; the freezer needs no controller, the limits need theirs handed down. */
function v2(mounts: string, own: string): Cgroups | undefined {
  const mount = fields(mounts).find(([, , type]) => type === 'cgroup2')?.[1];
  const path = own.match(/^0::(.*)$/m)?.[1];
  const place = mount === undefined || path === undefined ? undefined : topmostWritable(mount, path);
  if (place === undefined || !makeGroup(join(place, GROUP))) return undefined;

  const group = join(place, GROUP);
  const places: Places = { freezer: group };
  for (const controller of ['memory', 'pids'] as const) {
    const handedDown = [place, group].every((at) =>
      attempt(() => write(join(at, 'cgroup.subtree_control'), `+${controller}`)),
    );
    if (handedDown) places[controller] = group;
  }
  return cgroups('v2', places);
}

function cgroups(version: 'v1' | 'v2', places: Places): Cgroups {
  const open = (name: string) => {
    const at = (controller: Controller) =>
      places[controller] === undefined ? undefined : join(places[controller], name);
    return cgroup(version, { memory: at('memory'), pids: at('pids'), freezer: at('freezer') });
  };
  return {
    version,
    controllers: CONTROLLERS.filter((controller) => places[controller] !== undefined),

    create(name, { memoryBytes, pids }) {
      const group = open(name);
      for (const place of group.paths) mkdirSync(place, { recursive: true });
      if (memoryBytes !== undefined && places.memory !== undefined) {
        write(
          join(places.memory, name, version === 'v1' ? 'memory.limit_in_bytes' : 'memory.max'),
          String(memoryBytes),
        );
      }
      if (pids !== undefined && places.pids !== undefined) write(join(places.pids, name, 'pids.max'), String(pids));
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

function cgroup(version: 'v1' | 'v2', at: Record<Controller, string | undefined>): Cgroup & { paths: string[] } {
  const paths = [...new Set(Object.values(at).filter((path) => path !== undefined))];
  const { freezer } = at;

  /** Only a group that exists can be frozen; one that is gone is as still as can be. */
  async function setFrozen(frozen: boolean) {
    if (freezer === undefined) throw new Error('no freezer here');
    if (version === 'v2') {
      write(join(freezer, 'cgroup.freeze'), frozen ? '1' : '0');
      await until(() => read(join(freezer, 'cgroup.events')).includes(`frozen ${frozen ? 1 : 0}`));
    } else {
      write(join(freezer, 'freezer.state'), frozen ? 'FROZEN' : 'THAWED');
      await until(() => read(join(freezer, 'freezer.state')).trim() === (frozen ? 'FROZEN' : 'THAWED'));
    }
  }

  const pids = () => [...new Set(paths.flatMap((path) => numbers(attemptRead(join(path, 'cgroup.procs')))))];

  function kill() {
    for (const pid of pids()) attempt(() => process.kill(pid, 'SIGKILL'));
    // Under version 1 a frozen process does not die of SIGKILL until it is thawed.
    if (freezer !== undefined && version === 'v1') attempt(() => write(join(freezer, 'freezer.state'), 'THAWED'));
  }

  return {
    paths,
    canFreeze: freezer !== undefined,
    add: (pid) => paths.forEach((path) => write(join(path, 'cgroup.procs'), String(pid))),
    freeze: () => setFrozen(true),
    thaw: () => setFrozen(false),
    pids,

    memory() {
      if (at.memory === undefined) return undefined;
      const stat = attemptRead(join(at.memory, 'memory.stat'));
      const value = (key: string) => Number(stat.match(new RegExp(`^${key} (\\d+)$`, 'm'))?.[1] ?? 0);
      return version === 'v1'
        ? value('total_rss') + value('total_shmem')
        : value('anon') + value('shmem') + value('kernel');
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

/** The directories of the groups of ours that a process is in, for another one to be put there too. */
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

/** Walks down from the mount towards the service's own group and stops at the first directory it may write to. */
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

async function until(reached: () => boolean) {
  const patience = performance.now() + FREEZE_PATIENCE_MS;
  for (let wait = 0; !reached(); wait = Math.min(wait + 1, 20)) {
    if (performance.now() > patience) throw new Error('the kernel did not freeze or thaw the group in time');
    await sleep(wait);
  }
}

function fields(text: string): string[][] {
  return text.split('\n').map((line) => line.split(' '));
}

function numbers(text: string): number[] {
  return text.split('\n').filter(Boolean).map(Number);
}

function write(path: string, value: string) {
  writeFileSync(path, value);
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

/** True if `work` was done, or failed with the one code that comes to the same. */
function attempt(work: () => unknown, fine?: string): boolean {
  try {
    work();
    return true;
  } catch (error) {
    return fine !== undefined && error instanceof Error && 'code' in error && error.code === fine;
  }
}
