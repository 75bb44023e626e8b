import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { silent } from '../../lib/log.ts';
import { watchDisk } from './disk-watch.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const MIB = 2 ** 20;

/** A cell on a disk, with what each of them has. */
function cell() {
  const disk = { used: 0, short: false };
  const has = { bytes: 0, inodes: 1 };
  const stopped: string[] = [];
  let [measured, relieved] = [0, 0];
  const close = watchDisk({
    space: {
      read: () => ({
        bytes: 1000 * MIB,
        usedBytes: disk.used,
        freeBytes: 1000 * MIB - disk.used,
        inodes: 0,
        usedInodes: 0,
        freeInodes: 0,
      }),
      short: () => disk.short,
    },
    most: { bytes: 64 * MIB, inodes: 4096 },
    measure: async () => (measured++, { ...has }),
    async stop(why) {
      stopped.push(why);
      close();
    },
    relieve: () => void relieved++,
    log: silent,
  });
  return { disk, has, stopped, close, measured: () => measured, relieved: () => relieved };
}

test('a cell that nothing is written to is measured once, and now and then', async () => {
  const { measured, close, stopped } = cell();
  await vi.advanceTimersByTimeAsync(30_000);
  expect(measured()).toBe(1);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(measured()).toBe(2);
  expect(stopped).toEqual([]);
  close();
});

test('a cell is measured when the growth of the disk may exceed its limit, and ended when it does', async () => {
  const { disk, has, measured, stopped } = cell();
  await vi.advanceTimersByTimeAsync(5000);
  disk.used = 60 * MIB; // even if all of it is the cell's, that is not too much
  await vi.advanceTimersByTimeAsync(5000);
  expect(measured()).toBe(1);
  [disk.used, has.bytes] = [70 * MIB, 65 * MIB];
  await vi.advanceTimersByTimeAsync(500);
  expect(stopped).toEqual(['It used more disk space than its limit of 64 MiB.']);
});

test('a young cell that writes is measured at once', async () => {
  const { disk, has, stopped } = cell();
  [disk.used, has.bytes] = [80 * MIB, 80 * MIB];
  await vi.advanceTimersByTimeAsync(500);
  expect(stopped).toHaveLength(1);
});

test('while the disk is almost full, caches are deleted, and a cell within its limit is not ended', async () => {
  const { disk, has, relieved, stopped, close } = cell();
  has.bytes = 20 * MIB;
  await vi.advanceTimersByTimeAsync(5000);
  expect(relieved()).toBe(0);
  disk.short = true;
  await vi.advanceTimersByTimeAsync(500);
  expect(relieved()).toBe(2);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(stopped).toEqual([]);
  close();
});
