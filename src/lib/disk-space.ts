import { readFileSync, statfsSync } from 'node:fs';

/** How full a file system is. Inodes are 0 where it does not count them. */
export interface Space {
  readonly bytes: number;
  readonly usedBytes: number;
  readonly freeBytes: number;
  readonly inodes: number;
  readonly usedInodes: number;
  readonly freeInodes: number;
}

export interface DiskSpace {
  readonly path: string;
  read(): Space;
  /** Whether only the reserve is left, which is for the database. */
  short(space?: Space): boolean;
  /** The free space above the reserve, in units of the reserve: 1 for as much again, less than 0 when it is short. */
  distance(space?: Space): number;
  /** The free space above the reserve. */
  roomBytes(space?: Space): number;
}

const defaultReserve = 2 ** 30;
const mostReservedInodes = 65_536;
/** On a small disk the reserve is this part of it, so that a service can start there. */
const smallPart = 0.1;

/**
 * The file system of the data directory, with a reserve that sessions, uploads, recordings and saves must not use. It is
 * read synchronously, since that is one call into the kernel's memory: 10 µs, and never queued behind slower work.
 */
export function diskSpace(path: string, reserveBytes?: number, read: () => Space = () => spaceOf(path)): DiskSpace {
  const { bytes, inodes } = read();
  const reserve = Math.max(1, reserveBytes ?? Math.min(defaultReserve, bytes * smallPart));
  const reservedInodes = Math.min(mostReservedInodes, inodes * smallPart);
  const distance = ({ freeBytes, freeInodes } = read()) =>
    Math.min(freeBytes / reserve, reservedInodes === 0 ? Infinity : freeInodes / reservedInodes) - 1;
  const roomBytes = ({ freeBytes } = read()) => Math.max(0, freeBytes - reserve);
  return { path, read, distance, roomBytes, short: (space) => distance(space) < 0 };
}

const mostPerSession = 4096;
const leastPerSession = 64;

/** What one session may have when no setting says it, in MiB: on a small disk no one session takes more than a quarter of the room. */
export function sessionShare(disk: Pick<DiskSpace, 'roomBytes'>): number {
  const quarter = Math.floor(disk.roomBytes() / 4 / 2 ** 20);
  return Math.min(mostPerSession, Math.max(leastPerSession, quarter));
}

const BTRFS = 0x9123683e;

function spaceOf(path: string): Space {
  const { type, bsize, blocks, bfree, bavail, files, ffree } = statfsSync(path);
  // btrfs counts written bytes only when they reach the disk, which may be half a minute later.
  const ahead = type === BTRFS ? dirtyBytes() : 0;
  return {
    bytes: blocks * bsize,
    usedBytes: (blocks - bfree) * bsize + ahead,
    freeBytes: Math.max(0, bavail * bsize - ahead),
    inodes: files,
    usedInodes: files - ffree,
    freeInodes: ffree,
  };
}

function dirtyBytes(): number {
  const text = readFileSync('/proc/meminfo', 'latin1');
  return 1024 * [...text.matchAll(/^(?:Dirty|Writeback):\s+(\d+) kB/gm)].reduce((sum, [, kb]) => sum + Number(kb), 0);
}
