import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { canMoveInto, findCgroups } from './cgroup.ts';
import type { Controller } from './cgroup-limits.ts';

const PREFIX = `test${process.pid}-`;

const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
const only = (type: string) => findCgroups(mounts.filter((line) => line.split(' ')[2] === type).join('\n'));

test('without control groups, none is found, and nothing fails', () => {
  expect(findCgroups('')).toBeUndefined();
});

const here = [
  { version: 'v1', cgroups: only('cgroup') },
  { version: 'v2', cgroups: only('cgroup2') }, // beside version 1 it has no controllers, but it freezes
].filter(({ cgroups }) => cgroups !== undefined);
if (here.length === 0 && process.env['CI']) throw new Error('CI needs control groups, or nothing of this is tried.');

describe.each(here)('a control group of $version', ({ version, cgroups }) => {
  test('takes processes', async () => {
    expect(cgroups!.version).toBe(version);
    expect(await canMoveInto(cgroups!)).toBe(true);
  });

  afterAll(async () => void (await cgroups!.sweep(PREFIX)));

  test('holds its limits', async () => {
    const name = `${PREFIX}limits`;
    const group = cgroups!.create(name, { memoryBytes: 100 * 2 ** 20, pids: 20, cpus: 0.5 });
    const bounded = (controller: Controller) => cgroups!.controllers.includes(controller);
    const value = (file: string) => readFileSync(join('/sys/fs/cgroup', file.replace('NAME', name)), 'utf8').trim();
    if (version === 'v1') {
      if (bounded('memory')) expect(value('memory/corral/NAME/memory.limit_in_bytes')).toBe('104857600');
      const swap = 'memory/corral/NAME/memory.memsw.limit_in_bytes';
      if (existsSync(join('/sys/fs/cgroup', swap.replace('NAME', name)))) expect(value(swap)).toBe('104857600');
      if (bounded('pids')) expect(value('pids/corral/NAME/pids.max')).toBe('20');
      if (bounded('cpu')) expect(value('cpu/corral/NAME/cpu.cfs_quota_us')).toBe('50000');
    } else {
      if (bounded('memory')) expect(value('corral/NAME/memory.max')).toBe('104857600');
      if (bounded('pids')) expect(value('corral/NAME/pids.max')).toBe('20');
      if (bounded('cpu')) expect(value('corral/NAME/cpu.max')).toBe('50000 100000');
    }
    expect(left()).toContain(name); // so it is seen where it lies
    await group.remove();
    expect(left()).toEqual([]);
  });

  test('is killed completely, frozen or not, while its processes start more', async () => {
    const group = cgroups!.create(`${PREFIX}killed`, { pids: 50 });
    const child = spawn('sh', ['-c', 'read -r go; while :; do sleep 100 & sleep 0.01; done'], {
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    await group.add(child.pid!);
    child.stdin.end('go\n');
    await expect.poll(() => group.pids().length).toBeGreaterThan(3);
    await group.freeze();
    const exited = new Promise((resolve) => child.once('exit', resolve));
    group.kill();
    await exited;
    await group.remove();
    expect(group.pids()).toEqual([]);
    expect(left()).toEqual([]);
  });

  test('freezes its processes, and can be removed while they are frozen', async () => {
    const group = cgroups!.create(`${PREFIX}frozen`, {});
    const child = spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' });
    await group.add(child.pid!);
    await group.freeze();
    const ticks = () => readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(' ').slice(13, 15).join();
    const before = ticks();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(ticks()).toBe(before);
    const exited = new Promise((resolve) => child.once('exit', resolve));
    await group.remove();
    await exited;
    expect(left()).toEqual([]);
  });

  test('that a killed service left is swept, and only those of its prefix', async () => {
    const other = cgroups!.create(`${PREFIX}other`, {});
    cgroups!.create(`${PREFIX}mine-1`, {});
    const child = spawn('sleep', ['100'], { stdio: 'ignore' });
    const exited = new Promise((resolve) => child.once('exit', resolve));
    const second = cgroups!.create(`${PREFIX}mine-2`, {});
    await second.add(child.pid!);
    await second.freeze();
    expect((await cgroups!.sweep(`${PREFIX}mine`)).sort()).toEqual([`${PREFIX}mine-1`, `${PREFIX}mine-2`]);
    await exited;
    expect([...new Set(left())]).toEqual([`${PREFIX}other`]);
    await other.remove();
  });
});

/**
 * The limits of version 2 as files of an ordinary directory: beside version 1 the kernel has no controllers for version 2, so that what it
 * does with them is not tried here.
 */
describe('a control group of version 2, with controllers', () => {
  const root = mkdtempSync(join(tmpdir(), 'corral-cgroup-'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  function fake(path: string, files: Record<string, string>) {
    mkdirSync(join(root, path), { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(root, path, name), text);
  }
  const value = (path: string) => readFileSync(join(root, path), 'utf8');
  const limits = { 'memory.max': 'max', 'memory.swap.max': 'max', 'pids.max': 'max', 'cpu.max': 'max 100000' };

  test('is given its limits, swaps nothing, and all sessions together leave something over', () => {
    const group = {
      'cgroup.controllers': 'cpu io memory pids hugetlb',
      'cgroup.subtree_control': '',
      'cgroup.procs': '',
    };
    fake('whole', group);
    fake('whole/corral', { ...group, ...limits, 'io.weight': 'default 100' });
    fake('whole/corral/one', limits);
    const found = findCgroups(`cgroup2 ${join(root, 'whole')} cgroup2 rw 0 0\n`, '0::/\n')!;
    expect(found).toMatchObject({ version: 'v2', controllers: ['memory', 'pids', 'freezer', 'cpu', 'io'] });
    expect(value('whole/corral/io.weight')).toMatch(/^default 50/);
    expect(Number(value('whole/corral/memory.max'))).toBeGreaterThan(0);
    found.create('one', { memoryBytes: 2 ** 30, pids: 1000, cpus: 1.5 });
    expect(value('whole/corral/one/memory.max')).toBe('1073741824');
    expect(value('whole/corral/one/memory.swap.max')).toMatch(/^0/);
    expect(value('whole/corral/one/pids.max')).toBe('1000');
    expect(value('whole/corral/one/cpu.max')).toBe('150000 100000');
  });

  test('that does not freeze, because a process waits for a dead disk, is an error after a time limit', async () => {
    const group = { 'cgroup.controllers': '', 'cgroup.subtree_control': '', 'cgroup.procs': '' };
    fake('dead', group);
    fake('dead/corral', group);
    fake('dead/corral/one', { 'cgroup.freeze': '0', 'cgroup.events': 'populated 1\nfrozen 0\n' });
    const found = findCgroups(`cgroup2 ${join(root, 'dead')} cgroup2 rw 0 0\n`, '0::/\n', 100)!;
    const one = found.create('one', {});
    await expect(one.freeze()).rejects.toThrow('was not frozen within 0.1 s');
    await one.thaw();
    expect(value('dead/corral/one/cgroup.freeze')).toBe('0');
  });

  test('that lacks a limit reports it, and applies the others', () => {
    const group = { 'cgroup.controllers': 'memory', 'cgroup.subtree_control': '', 'cgroup.procs': '' };
    fake('part', group);
    fake('part/corral', { ...group, ...limits });
    const found = findCgroups(`cgroup2 ${join(root, 'part')} cgroup2 rw 0 0\n`, '0::/\n')!;
    expect(found.controllers).toEqual(['memory', 'freezer']);
  });

  test('that was delegated with the service in it has the service go into one below', () => {
    const group = { 'cgroup.controllers': 'memory pids' };
    fake('unit', {});
    fake('unit/corral.service', { ...group, 'cgroup.procs': '12\n' }); // and will not hand anything down
    fake('unit/corral.service/corral-service', { 'cgroup.procs': '' });
    findCgroups(`cgroup2 ${join(root, 'unit')} cgroup2 rw 0 0\n`, '0::/corral.service\n');
    expect(value('unit/corral.service/corral-service/cgroup.procs')).toBe('12');
  });
});

function left(): string[] {
  return ['.', ...readdirSync('/sys/fs/cgroup')].flatMap((hierarchy) => {
    const group = join('/sys/fs/cgroup', hierarchy, 'corral');
    return existsSync(group) ? readdirSync(group).filter((name) => name.startsWith(PREFIX)) : [];
  });
}
