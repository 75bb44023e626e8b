import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { randomInt } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { errorCode } from '../../lib/error-code.ts';
import { withoutOwner } from '../../lib/scope.ts';
import { turns } from '../../lib/turns.ts';
import { startTime } from './process-tree.ts';

/** The user that a session's processes run as, seen from the host. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
}

/** An owner that is unique on this machine while its processes or its directory exist. */
export interface Claim extends Owner {
  /** Call when its directory and processes have ended or are about to: the uid is free after that. */
  release(): void;
}

/**
 * Provides the uids of sessions. The uid separates two tenants if a namespace fails: with one uid for all, a process of a session on the host
 * could signal, trace and read every other session. A service that is not root has only its own, which all sessions share.
 */
export interface Owners {
  /** `dir` is owned by the uid: while it exists, the uid is not given to another claim. */
  claim(dir?: string): Claim;
}

interface UidRange {
  readonly first: number;
  readonly last: number;
}

/** The first is unused according to systemd's table of uids; the second fits containers that map 65536 uids. */
const DEFAULT_RANGES: readonly UidRange[] = [
  { first: 1_879_100_000, last: 1_879_119_999 },
  { first: 30_000, last: 49_999 },
];
/** A released uid is free when its last process has exited. This is the interval of that check. */
const TIDY_MS = 5000;

/**
 * Reads `first-last`; the default when empty. Throws a sentence when this machine, or the container's user namespace, does not have
 * these uids and gids.
 */
export function uidRange(setting = '', maps: readonly string[] = ['uid_map', 'gid_map'].map(readMap)): UidRange {
  const mapped = (range: UidRange) => maps.every((map) => isMapped(range, map));
  if (setting === '') {
    const found = DEFAULT_RANGES.find(mapped);
    if (found) return found;
    throw new Error(
      'CORRAL_SESSION_UIDS is not set, and neither of its defaults is mapped in this user namespace. Set it to uids and gids that are ' +
        '(/proc/self/uid_map lists them), such as 10000-19999.',
    );
  }
  const [, first, last] = /^(\d{1,10})-(\d{1,10})$/.exec(setting)?.map(Number) ?? [];
  if (first === undefined || last === undefined || first < 1000 || last >= 2 ** 32 - 1 || last - first < 99)
    throw new Error(
      `CORRAL_SESSION_UIDS is '${setting}'; it takes at least a hundred uids from 1000 on, such as 30000-49999.`,
    );
  if (!mapped({ first, last }))
    throw new Error(
      `CORRAL_SESSION_UIDS is '${setting}', and not all of these uids and gids are mapped in this user namespace (/proc/self/uid_map).`,
    );
  return { first, last };
}

const readMap = (name: string) => (existsSync(`/proc/self/${name}`) ? readFileSync(`/proc/self/${name}`, 'utf8') : '');

/** Lines of `inside outside count`. Adjacent lines are not joined: operators with such a map set the range themselves. */
function isMapped({ first, last }: UidRange, map: string): boolean {
  return map
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .some(([inside = NaN, , count = 0]) => first >= inside && last < inside + count);
}

/** For a service that is not root. */
export function oneOwner(owner: Owner): Owners {
  return { claim: () => ({ ...owner, release() {} }) };
}

/**
 * For root: each claim is a file, since several services may run on a machine. It names the claiming process and the directory that
 * belongs to the uid. The claim of a dead process is void when the directory is removed and no process has the uid.
 */
export function manyOwners(
  range: UidRange,
  { reserved = [], at = claimsDirectory() }: { reserved?: readonly number[]; at?: string } = {},
): Owners {
  const size = range.last - range.first + 1;
  const never = new Set([...reserved, ...knownUids()]);
  const retired = new Set<number>();
  const us = `${process.pid} ${startTime(process.pid)}`;
  const pathOf = (uid: number) => join(at, String(uid));
  let next = randomInt(size); // services that start together try different uids
  let timer: NodeJS.Timeout | undefined;

  function take(dir: string): number | undefined {
    for (let tries = 0; tries < size; tries++) {
      const uid = range.first + next;
      next = (next + 1) % size; // a released uid is reused last
      if (never.has(uid)) continue;
      try {
        writeFileSync(pathOf(uid), `${us} ${dir}`, { flag: 'wx', mode: 0o600 });
        return uid;
      } catch (error) {
        if (errorCode(error) !== 'EEXIST') throw error;
      }
    }
    return undefined;
  }

  function isOver(uid: number): boolean {
    const [pid, startedAt] = split(readIfThere(pathOf(uid)));
    return retired.has(uid) || (startedAt !== undefined && startTime(Number(pid)) !== startedAt);
  }

  const ended = () => readdirSync(at).map(Number).filter(isOver);

  /** `alive` was read after the claims had ended. */
  function free(uids: readonly number[], alive: ReadonlySet<number>): void {
    for (const uid of uids) {
      const [, , dir] = split(readIfThere(pathOf(uid)));
      if (!isOver(uid) || alive.has(uid) || (dir && existsSync(dir))) continue;
      retired.delete(uid);
      unlinkIfThere(pathOf(uid));
    }
  }

  function tidySoon(): void {
    timer ??= withoutOwner(() => setTimeout(() => void tidy(), TIDY_MS).unref());
  }

  async function tidy(): Promise<void> {
    try {
      free(ended(), await livingUids());
    } catch {
      // The directory was removed, for example. The next claim reports it.
    }
    timer = undefined;
    if (retired.size > 0) tidySoon();
  }

  free(ended(), livingUidsAtOnce());
  return {
    claim(dir = '') {
      let uid = take(dir);
      if (uid === undefined) {
        free(ended(), livingUidsAtOnce());
        uid = take(dir);
      }
      if (uid === undefined) throw new Error('Every uid of CORRAL_SESSION_UIDS is in use. Set it to a larger range.');
      const taken = uid;
      return {
        uid,
        gid: uid,
        name: `uid ${uid}`,
        release() {
          retired.add(taken);
          tidySoon();
        },
      };
    },
  };
}

/** Only root may access it. A directory that another user owns is not used. */
function claimsDirectory(): string {
  for (const path of ['/run/corral-uids', join(tmpdir(), 'corral-uids')]) {
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      const { uid, mode } = statSync(path);
      if (uid === 0 && (mode & 0o077) === 0) return path;
    } catch {
      // for example read-only
    }
  }
  throw new Error('Neither /run nor the directory for temporary files takes a directory for the uids in use.');
}

/** uids with a name in /etc/passwd are of other users. */
function knownUids(): number[] {
  return readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => Number(line.split(':')[2]));
}

/** Every real, effective, saved and file system uid of every process on this machine, read in pieces: sessions may have thousands of processes. */
async function livingUids(): Promise<Set<number>> {
  const turn = turns();
  const found = new Set<number>();
  for (const name of readdirSync('/proc')) {
    for (const uid of uidsOf(name)) found.add(uid);
    await turn();
  }
  return found;
}

const livingUidsAtOnce = () => new Set(readdirSync('/proc').flatMap(uidsOf));

function uidsOf(name: string): number[] {
  if (!/^\d+$/.test(name)) return [];
  const uids = /^Uid:\t(.*)/m.exec(readIfThere(`/proc/${name}/status`))?.[1] ?? '';
  return uids.split('\t').map(Number);
}

/** The directory comes last and may hold spaces. */
function split(claim: string): [pid?: string, startedAt?: string, dir?: string] {
  const [, pid, startedAt, dir] = /^(\d+) (\d+) ([^]*)$/.exec(claim) ?? [];
  return [pid, startedAt, dir];
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}
