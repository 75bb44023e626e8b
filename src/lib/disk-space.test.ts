import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { diskSpace, type Space } from './disk-space.ts';

const GB = 2 ** 30;
const disk = (bytes: number, freeBytes: number, inodes = 0, freeInodes = 0): Space => ({
  bytes,
  freeBytes,
  usedBytes: bytes - freeBytes,
  inodes,
  freeInodes,
  usedInodes: inodes - freeInodes,
});

test.each([
  ['a large disk keeps a gigabyte', disk(100 * GB, 1.1 * GB), undefined, false],
  ['and is short below that', disk(100 * GB, 0.9 * GB), undefined, true],
  ['a small disk keeps a tenth', disk(GB, 0.11 * GB), undefined, false],
  ['and is short below that', disk(GB, 0.09 * GB), undefined, true],
  ['the operator’s word counts', disk(GB, 0.4 * GB), 0.5 * GB, true],
  ['no reserve is none', disk(GB, 1), 0, false],
  ['a tenth of a small disk’s inodes is kept too', disk(GB, GB, 1000, 90), undefined, true],
  ['a file system that counts no inodes is never short of them', disk(GB, GB, 0, 0), undefined, false],
])('%s', (_what, space, reserve, short) => {
  expect(diskSpace('/', reserve, () => space).short()).toBe(short);
});

test('the disk of a directory is read as the system reports it', () => {
  const space = diskSpace(tmpdir()).read();
  expect(space.bytes).toBeGreaterThan(0);
  expect(space.usedBytes + space.freeBytes).toBeLessThanOrEqual(space.bytes);
});
