import type { DiskSpace, Space } from '../../lib/disk-space.ts';
import type { Log } from '../../lib/log.ts';
import type { DiskUse } from '../sandbox/disk-use.ts';

const EVERY_MS = 250;
/** A cell is first measured at this age: until then its initial size is not known. */
const YOUNG_MS = 2000;
const PERIOD_MS = 60_000;
/** Growth of the disk below this part of the limit causes no measurement: other processes write too. */
const LEAST_PART = 1 / 32;
const MIB = 2 ** 20;
const INODES_PER_MIB = 64;

/** The number of files that so many bytes allow. */
export const withInodes = (bytes: number): DiskUse => ({ bytes, inodes: (bytes / MIB) * INODES_PER_MIB });

/**
 * Ends a cell that has more on the disk than it may, and calls `relieve` while the disk has only its reserve left.
 *
 * To measure a cell, a program walks its directory. But its size is at most the last measured size plus the growth of the whole disk since then, which is
 * one cheap call. So a cell is measured when that sum may be too much, and now and then.
 */
export function watchDisk({
  space,
  most,
  measure,
  stop,
  relieve,
  log,
}: {
  space: Pick<DiskSpace, 'read' | 'short'>;
  most: DiskUse;
  measure: () => Promise<DiskUse>;
  stop: (why: string) => Promise<void>;
  /** Makes room on a disk that is short. A call while room is made does nothing. */
  relieve: () => void;
  log: Log;
}): () => void {
  let last: { use: DiskUse | undefined; space: Space; at: number } = {
    use: undefined,
    space: space.read(),
    at: performance.now(),
  };
  let looking = false;

  function isDue(now: Space): boolean {
    const age = performance.now() - last.at;
    const gained = {
      bytes: Math.max(0, now.usedBytes - last.space.usedBytes),
      inodes: Math.max(0, now.usedInodes - last.space.usedInodes),
    };
    const part = (kind: 'bytes' | 'inodes') => gained[kind] > most[kind] * LEAST_PART;
    if (!last.use) return age >= YOUNG_MS || part('bytes') || part('inodes');
    const beyond = (kind: 'bytes' | 'inodes') => part(kind) && last.use![kind] + gained[kind] > most[kind];
    return beyond('bytes') || beyond('inodes') || age >= PERIOD_MS;
  }

  async function look(now: Space): Promise<void> {
    const use = await measure();
    last = { use, space: now, at: performance.now() };
    if (use.bytes > most.bytes || use.inodes > most.inodes)
      await stop(`It used more disk space than its limit of ${Math.round(most.bytes / MIB)} MiB.`);
  }

  const timer = setInterval(() => {
    const now = space.read();
    if (space.short(now)) relieve();
    if (looking) return;
    if (!isDue(now)) return;
    looking = true;
    look(now)
      .catch((error: Error) => log.warn({ error: error.message }, 'workshop.disk_not_measured'))
      .finally(() => (looking = false));
  }, EVERY_MS);
  return () => clearInterval(timer);
}
