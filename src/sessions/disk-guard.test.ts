import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { DiskTaker, DiskUse } from '../chromium/sandbox/disk-use.ts';
import type { Browser } from '../chromium/browser/launch.ts';
import { diskSpace } from '../lib/disk-space.ts';
import { silent } from '../lib/log.ts';
import { diskGuard } from './disk-guard.ts';

const MB = 2 ** 20;
const most: DiskUse = { bytes: 100 * MB, inodes: 1000 };
const reserve = 50 * MB;

/** A disk of a gigabyte, with sessions that write to it. */
function house() {
  const others = { bytes: 10 * MB, inodes: 100 };
  const sessions = new Map<string, ReturnType<typeof session>>();
  const ended: [string, string][] = [];
  const blamed: string[] = [];
  /** Of the others: what can be made again. */
  const remade = { bytes: 0 };
  const takers: DiskTaker[] = [];
  const total = { bytes: 1000 * MB, inodes: 50_000 };

  function session(id: string, projectId = 'project') {
    const use = { bytes: 0, inodes: 10 };
    const born = Date.now();
    const made = {
      id,
      projectId,
      use,
      awake: true,
      stopped: false,
      looks: 0,
      ending: undefined,
      uptimeMs: () => Date.now() - born,
      async still<T>(work: (browser: Browser) => Promise<T>): Promise<T> {
        made.stopped = true;
        const diskUse = async () => {
          made.looks++;
          return { ...use };
        };
        return work({ diskUse } as unknown as Browser).finally(() => (made.stopped = false));
      },
    };
    sessions.set(id, made);
    guard.stir();
    return made;
  }
  const used = (what: 'bytes' | 'inodes') =>
    others[what] + [...sessions.values()].reduce((sum, { use }) => sum + use[what], 0);
  const space = diskSpace('/', reserve, () => ({
    bytes: total.bytes,
    usedBytes: used('bytes'),
    freeBytes: Math.max(0, total.bytes - used('bytes')),
    inodes: total.inodes,
    usedInodes: used('inodes'),
    freeInodes: Math.max(0, total.inodes - used('inodes')),
  }));
  const guard = diskGuard({
    space,
    most,
    sessions: () => sessions.values(),
    takers: () => takers,
    async makeRoom() {
      others.bytes -= remade.bytes;
      remade.bytes = 0;
    },
    async end(id, reason) {
      ended.push([id, reason]);
      sessions.delete(id);
      guard.forget(id);
    },
    blame: (projectId) => void blamed.push(projectId),
    log: silent,
  });
  return { session, others, remade, takers, guard, ended, blamed, space, close: () => guard.close() };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

test('a session that grows beyond its bound is ended, and no other', async () => {
  const { session, ended, close } = house();
  const [writer, calm] = [session('writer'), session('calm')];
  for (let n = 0; n < 12; n++) {
    writer.use.bytes += 10 * MB;
    await pass(200);
  }
  expect(ended).toEqual([['writer', 'disk_limit']]);
  expect(calm.looks).toBeLessThan(8);
  close();
});

test('files count, however small', async () => {
  const { session, ended, close } = house();
  const writer = session('writer');
  await pass(200);
  writer.use.inodes += 1001;
  await pass(300);
  expect(ended).toEqual([['writer', 'disk_limit']]);
  close();
});

test('an unchanged disk is checked only now and then', async () => {
  const { session, close } = house();
  const calm = session('calm');
  await pass(120_000);
  expect(calm.looks).toBe(1);
  close();
});

test('nothing is asked while no session is awake', async () => {
  const { session, close } = house();
  session('asleep').awake = false;
  await pass(1000);
  expect(vi.getTimerCount()).toBe(0);
  close();
});

test('when only the reserve is left, the largest session goes, and the others run on', async () => {
  const { session, others, ended, close } = house();
  const [large, small] = [session('large'), session('small')];
  const sleeper = session('sleeper');
  sleeper.awake = false;
  await pass(200);
  large.use.bytes = 90 * MB;
  small.use.bytes = 30 * MB;
  sleeper.use.bytes = 40 * MB;
  others.bytes = 800 * MB;
  await pass(300);
  expect(ended).toEqual([['large', 'disk_full']]);
  expect(small.stopped).toBe(false);
  close();
});

test('where sessions are not what fills the disk, they are left alone', async () => {
  const { session, others, ended, close } = house();
  const small = session('small');
  await pass(200);
  others.bytes = 990 * MB;
  await pass(5000);
  expect(ended).toEqual([]);
  expect(small.stopped).toBe(false);
  expect(small.looks).toBeLessThan(5);
  close();
});

test('what can be made again is removed before any session is ended', async () => {
  const { session, others, remade, ended, space, close } = house();
  const large = session('large');
  large.use.bytes = 60 * MB;
  others.bytes += remade.bytes = 900 * MB;
  expect(space.short()).toBe(true);
  await pass(500);
  expect(space.short()).toBe(false);
  expect(ended).toEqual([]);
  close();
});

test('a build that fills the disk is ended, and no session that has less', async () => {
  const { session, others, takers, ended, blamed, space, close } = house();
  session('small').use.bytes = 60 * MB;
  const build = { bytes: 890 * MB, inodes: 10 };
  others.bytes += build.bytes;
  takers.push({
    projectId: 'builder',
    use: async () => build,
    async end(detail) {
      ended.push(['build', detail]);
      others.bytes -= build.bytes;
    },
  });
  await pass(500);
  expect(space.short()).toBe(false);
  expect(ended).toEqual([['build', 'It had 890 MiB in 10 files on the disk.']]);
  expect(blamed).toEqual(['builder']);
  close();
});

test('a project that fills the disk with many sessions has no larger session of another project ended', async () => {
  const { session, others, ended, blamed, space, close } = house();
  const neighbour = session('neighbour', 'calm');
  const many = Array.from({ length: 10 }, (_, n) => session(`one-of-many-${n}`, 'greedy'));
  await pass(200);
  neighbour.use.bytes = 60 * MB;
  for (const { use } of many) use.bytes = 50 * MB;
  others.bytes = 410 * MB; // 30 MB are free
  await pass(500);
  expect(space.short()).toBe(false);
  expect(ended).toEqual([['one-of-many-0', 'disk_full']]);
  expect(blamed).toEqual(['greedy']);
  expect(neighbour.stopped).toBe(false);
  close();
});

test('what the builds and workers of a project have counts together with its sessions', async () => {
  const { session, others, takers, ended, blamed, space, close } = house();
  session('neighbour', 'calm').use.bytes = 60 * MB;
  session('own', 'greedy').use.bytes = 30 * MB;
  others.bytes += 880 * MB;
  takers.push({
    projectId: 'greedy',
    use: async () => ({ bytes: 40 * MB, inodes: 10 }),
    async end() {
      ended.push(['worker', 'disk_full']);
      others.bytes -= 40 * MB;
    },
  });
  await pass(500);
  expect(space.short()).toBe(false);
  expect(ended).toEqual([['worker', 'disk_full']]);
  expect(blamed).toEqual(['greedy']);
  close();
});

test('a project loses no more than it has above the next, and only the largest project is blamed', async () => {
  const { session, others, ended, blamed, space, close } = house();
  const [first, second] = [session('first', 'greedy'), session('second', 'greedy')];
  const neighbour = session('neighbour', 'calm');
  await pass(200);
  first.use.bytes = 50 * MB;
  second.use.bytes = 40 * MB;
  neighbour.use.bytes = 60 * MB;
  others.bytes = 890 * MB;
  await pass(500);
  expect(space.short()).toBe(false);
  expect(ended).toEqual([
    ['first', 'disk_full'],
    ['neighbour', 'disk_full'],
  ]);
  expect(blamed).toEqual(['greedy']);
  close();
});

test('sessions that all sleep are left alone when room is asked for', async () => {
  const { session, others, remade, guard, ended, space, close } = house();
  const sleeper = session('sleeper');
  sleeper.awake = false;
  sleeper.use.bytes = 60 * MB;
  await pass(500);
  others.bytes += 900 * MB;
  remade.bytes = 10 * MB;
  await guard.relieve();
  expect(remade.bytes).toBe(0);
  expect(space.short()).toBe(true);
  expect(ended).toEqual([]);
  expect(sleeper.stopped).toBe(false);
  close();
});
