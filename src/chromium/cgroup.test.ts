import { spawn } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { canMoveInto, findCgroups } from './cgroup.ts';

const PREFIX = `test${process.pid}-`;

const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
const only = (type: string) => findCgroups(mounts.filter((line) => line.split(' ')[2] === type).join('\n'));

test('where there are no control groups, there is none to be had, and nobody falls over it', () => {
  expect(findCgroups('')).toBeUndefined();
});

describe.each(
  [
    { version: 'v1', cgroups: only('cgroup') },
    { version: 'v2', cgroups: only('cgroup2') }, // beside version 1 it has no controllers, but it freezes
  ].filter(({ cgroups }) => cgroups !== undefined),
)('a control group of $version', ({ version, cgroups }) => {
  test('takes processes', async () => {
    expect(cgroups!.version).toBe(version);
    expect(await canMoveInto(cgroups!)).toBe(true);
  });

  afterAll(async () => void (await cgroups!.sweep(PREFIX)));

  test('holds its limits', async () => {
    const group = cgroups!.create(`${PREFIX}limits`, { memoryBytes: 100 * 2 ** 20, pids: 20 });
    const files = [
      'memory/corral/NAME/memory.limit_in_bytes',
      'corral/NAME/memory.max',
      'pids/corral/NAME/pids.max',
      'corral/NAME/pids.max',
    ];
    const values = files
      .map((file) => join('/sys/fs/cgroup', file.replace('NAME', `${PREFIX}limits`)))
      .filter((file) => existsSync(file))
      .map((file) => readFileSync(file, 'utf8').trim());
    expect(values.sort()).toEqual(['104857600', '20'].slice(0, values.length));
    await group.remove();
  });

  test('freezes what is in it, and is removed with it even then', async () => {
    const group = cgroups!.create(`${PREFIX}frozen`, {});
    const child = spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' });
    group.add(child.pid!);
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
    second.add(child.pid!);
    await second.freeze();
    expect((await cgroups!.sweep(`${PREFIX}mine`)).sort()).toEqual([`${PREFIX}mine-1`, `${PREFIX}mine-2`]);
    await exited;
    expect([...new Set(left())]).toEqual([`${PREFIX}other`]);
    await other.remove();
  });
});

function left(): string[] {
  return ['.', ...readdirSync('/sys/fs/cgroup')].flatMap((hierarchy) => {
    const group = join('/sys/fs/cgroup', hierarchy, 'corral');
    return existsSync(group) ? readdirSync(group).filter((name) => name.startsWith(PREFIX)) : [];
  });
}
