import type { DiskTaker, DiskUse } from '../chromium/sandbox/disk-use.ts';
import type { DiskSpace, Space } from '../lib/disk-space.ts';
import type { Log } from '../lib/log.ts';
import { withoutOwner } from '../lib/scope.ts';
import type { LiveSession } from './live-session.ts';
import type { Ending } from './state.ts';

const everyMs = 100;
/** The interval while the reserve is near: what can be written in this time has to fit into it. */
const nearMs = 20;
const near = 4;
/** How long a session has to be awake before its first check, and before the next one if no growth requires it. */
const youngMs = 10_000;
const periodMs = 120_000;
/** The next check of a session is due only after the disk has gained at least this part of the session's limit. */
const leastPart = 1 / 32;
const looksAtOnce = 4;
/** A session that cannot be frozen within this time is not waited for. */
const stillMs = 3000;
/** Ending a session that uses less than this would not free enough room. */
const leastHelp: DiskUse = { bytes: 8 * 2 ** 20, inodes: 1000 };

/** The state of a session at its last check, and how full the disk was then. */
interface Seen {
  use: DiskUse;
  space: Space;
  /** How long the session had been awake. */
  uptimeMs: number;
  /** False: the session has never been checked. */
  looked: boolean;
}

/** What can be ended on a disk that is short. */
interface Found {
  /** Undefined: it is no session. */
  id: string | undefined;
  projectId: string;
  use: DiskUse;
  leave(detail: string): Promise<void>;
}

export type DiskGuard = ReturnType<typeof diskGuard>;
type End = (id: string, reason: Ending, detail: string) => Promise<void>;
type Guarded = Pick<LiveSession, 'id' | 'projectId' | 'awake' | 'ending' | 'uptimeMs' | 'still'>;

/**
 * Holds sessions to their disk limit, and keeps the reserve free.
 *
 * A session uses at most what it used at its last check plus what the disk has gained since. So its directory is measured only when that
 * sum could exceed its limit. How full the disk is takes one cheap call, made ten times a second while a session is awake, and not at all
 * otherwise. A session is frozen while it is measured, so that it cannot move files out of sight.
 *
 * When only the reserve is left, every session that is awake is frozen at once, what can be made again is removed, and if that is not
 * enough, the largest sessions of the project that has the most are ended until there is room again.
 */
export function diskGuard({
  space,
  most,
  sessions,
  takers,
  makeRoom,
  end,
  blame,
  log,
}: {
  space: DiskSpace;
  /** The most one session may use. */
  most: DiskUse;
  sessions: () => Iterable<Guarded>;
  /** What else is ended when the disk is short. */
  takers: () => Iterable<DiskTaker>;
  /** Removes what can be made again. Never rejects. */
  makeRoom: () => Promise<void>;
  end: End;
  /** Something of the project that had the most on a disk that was short is ended. */
  blame: (projectId: string) => void;
  log: Log;
}) {
  const seen = new Map<string, Seen>();
  const looking = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let relief: Promise<void> | undefined;
  /** How full the disk was when ending sessions freed no more room. */
  let helpless: Space | undefined;
  let closed = false;

  /** Called when a session is awake. */
  function stir() {
    if (!closed) timer ??= withoutOwner(() => setTimeout(tick, everyMs));
  }

  function tick() {
    timer = undefined;
    const awake = [...sessions()].filter((session) => session.awake);
    const now = space.read();
    void relieveIfShort(now);
    for (const session of awake) {
      if (looking.size >= looksAtOnce) break;
      if (isDue(session, now)) void check(session);
    }
    if (awake.length === 0 || closed) return;
    timer = setTimeout(tick, space.distance(now) < near && !helpless ? nearMs : everyMs);
  }

  /** Undefined: the disk is not short, or nothing more can be done about it. */
  function relieveIfShort(now = space.read()): Promise<void> | undefined {
    if (!space.short(now)) helpless = undefined;
    else if (!helpless || now.freeBytes < helpless.freeBytes / 2 || now.freeInodes < helpless.freeInodes / 2)
      relief ??= withoutOwner(relieve).finally(() => (relief = undefined));
    return relief;
  }

  function isDue({ id, uptimeMs }: Guarded, now: Space): boolean {
    if (looking.has(id)) return false;
    const before = seen.get(id);
    if (!before) {
      seen.set(id, { use: { bytes: 0, inodes: 0 }, space: now, uptimeMs: uptimeMs(), looked: false });
      return false;
    }
    const bytes = Math.max(0, now.usedBytes - before.space.usedBytes);
    const inodes = Math.max(0, now.usedInodes - before.space.usedInodes);
    const age = uptimeMs() - before.uptimeMs;
    // Before its first check the session may have a profile of any size.
    if (!before.looked) return age > youngMs || bytes > most.bytes * leastPart || inodes > most.inodes * leastPart;
    if (bytes > most.bytes * leastPart && before.use.bytes + bytes > most.bytes) return true;
    if (inodes > most.inodes * leastPart && before.use.inodes + inodes > most.inodes) return true;
    return age > periodMs;
  }

  /** Measures a session, and ends it if it uses too much. */
  async function check(session: Guarded): Promise<void> {
    const use = await look(session).catch(() => undefined); // the session has ended
    if (!use || session.ending) return;
    const detail = tooMuch(use, most);
    if (detail) await end(session.id, 'disk_limit', detail);
  }

  function look(session: Guarded): Promise<DiskUse> {
    looking.add(session.id);
    return session
      .still(async (browser) => {
        const now = space.read();
        const use = await browser.diskUse(most);
        seen.set(session.id, { use, space: now, uptimeMs: session.uptimeMs(), looked: true });
        return use;
      })
      .finally(() => looking.delete(session.id));
  }

  /**
   * Freezes all sessions while what can be made again is removed. If that is not enough, ends what the project with the most has, one after
   * the other: sessions, builds and workers of apps. Sessions that all sleep write nothing, so they are not the cause and are left alone.
   */
  async function relieve(): Promise<void> {
    const before = space.read();
    log.warn({ freeBytes: before.freeBytes, freeInodes: before.freeInodes }, 'disk.short');
    const ended: string[] = [];
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    try {
      const all = [...sessions()];
      const awake = all.some((session) => session.awake);
      const [, found, others] = await Promise.all([
        makeRoom(),
        Promise.all(awake ? all.map((session) => measured(session, { most, end, released })) : []),
        Promise.all(Array.from(takers(), weighed)),
      ]);
      let offender: string | undefined;
      for (const { id, projectId, use, leave } of inTurn([...found, ...others], most)) {
        if (!space.short()) break;
        offender ??= projectId;
        if (projectId === offender) blame(projectId);
        await leave(`It had ${words(use)}.`);
        ended.push(id ?? 'a build or worker');
      }
    } finally {
      release();
    }
    const after = space.read();
    helpless = space.short(after) ? after : undefined;
    log.warn({ freeBytes: after.freeBytes, freeInodes: after.freeInodes, ended }, 'disk.relieved');
  }

  return {
    stir,
    relieve: () => relieveIfShort(),
    forget: (id: string) => void seen.delete(id),
    /** Call it once no session is awake any more. */
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

/** Resolves with the session's use; the session stays frozen until `released`. Undefined: it has ended or its browser is being replaced. */
function measured(
  session: Guarded,
  { most, end, released }: { most: DiskUse; end: End; released: Promise<void> },
): Promise<Found | undefined> {
  const { id, projectId } = session;
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(undefined), stillMs);
    session
      .still(async (browser) => {
        clearTimeout(late);
        const use = await browser.diskUse(most);
        resolve({ id, projectId, use, leave: (detail) => end(id, 'disk_full', detail) });
        await released;
      })
      .catch(() => resolve(undefined))
      .finally(() => clearTimeout(late));
  });
}

/** Undefined: it has ended. */
async function weighed(taker: DiskTaker): Promise<Found | undefined> {
  const { projectId } = taker;
  return taker.use().then(
    (use) => ({ id: undefined, projectId, use, leave: (detail) => taker.end(detail).catch(() => {}) }),
    () => undefined,
  );
}

/**
 * The sessions to end, in order: each is the largest of the project that has the most after the ones before have ended. A project that
 * spreads its files over many sessions has no other project's session ended for them.
 */
function* inTurn(found: readonly (Found | undefined)[], most: DiskUse): Generator<Found> {
  const part = (use: DiskUse) => Math.max(use.bytes / most.bytes, use.inodes / most.inodes);
  const left = found
    .filter((one) => one !== undefined)
    .filter(({ use }) => use.bytes >= leastHelp.bytes || use.inodes >= leastHelp.inodes)
    .sort((a, b) => part(b.use) - part(a.use));
  while (left.length > 0) {
    const totals = new Map<string, DiskUse>();
    for (const { projectId, use } of left) totals.set(projectId, sum(use, totals.get(projectId)));
    const largest = Math.max(...Array.from(totals.values(), part));
    const at = left.findIndex(({ projectId }) => part(totals.get(projectId)!) === largest);
    yield* left.splice(at, 1);
  }
}

const sum = (one: DiskUse, other: DiskUse = { bytes: 0, inodes: 0 }): DiskUse => ({
  bytes: one.bytes + other.bytes,
  inodes: one.inodes + other.inodes,
});

function tooMuch(use: DiskUse, most: DiskUse): string | undefined {
  if (use.bytes > most.bytes) return `It had more than ${most.bytes / 2 ** 20} MiB on the disk.`;
  if (use.inodes > most.inodes) return `It had more than ${most.inodes} files.`;
  return undefined;
}

const words = ({ bytes, inodes }: DiskUse) => `${Math.round(bytes / 2 ** 20)} MiB in ${inodes} files on the disk`;
