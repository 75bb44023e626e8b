import { setTimeout as sleep } from 'node:timers/promises';
import type { Engine } from '../chromium/engine.ts';
import { errors } from '../errors.ts';
import type { DiskSpace } from '../lib/disk-space.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import { uniqueViolation } from '../store/db.ts';
import type { BrowserOptions, Browsers } from './browsers.ts';
import type { diskOffenders } from './disk-offenders.ts';
import { defaultViewport, shapeOf, spareOptions } from './request.ts';
import type { Roster } from './roster.ts';
import { warmSpares, type Shape, type Spare } from './spares.ts';
import { sessionStore, type NewSession, type SessionStore } from './store.ts';

const longestReliefMs = 10_000;
const retrySoon = { headers: { 'Retry-After': '5' } };

export type Admission = ReturnType<typeof admission>;

/** Whether one more session may be created: the places of this node, its disk and the project's cap. Spares run in free places. */
export function admission({
  store,
  browsers,
  roster,
  sessionCap,
  capacity,
  spares: wanted,
  disk,
  relieve,
  offenders,
  log,
}: {
  store: SessionStore;
  browsers: Pick<Browsers, 'start' | 'remove'>;
  roster: Pick<Roster, 'launching' | 'ends' | 'closed'>;
  sessionCap: (projectId: string) => Promise<number | null>;
  /** The most browsers this node runs, spares included. */
  capacity: number;
  spares: Record<Shape, number>;
  disk: Pick<DiskSpace, 'path' | 'short'>;
  /** Makes room on a disk that is short. Resolves when it is done, or cannot. */
  relieve: () => Promise<void> | undefined;
  offenders: Pick<ReturnType<typeof diskOffenders>, 'secondsLeft'>;
  log: Log;
}) {
  /** Places taken by sessions, from before the launch until after the end. */
  let taken = 0;

  const spares = warmSpares({
    wanted,
    room: () => !roster.closed && roster.launching.size === 0 && taken + spareCount() < capacity,
    log,
    async start(shape) {
      refuseIfShort();
      const id = newId();
      const spare: Omit<Spare, 'engine'> = { id, whenGone: () => ({ code: 1011, reason: 'The browser went away.' }) };
      const engine = await browsers.start(id, spareOptions(shape), () => spare.whenGone());
      return Object.assign(spare, { engine });
    },
    async discard({ id, engine }) {
      await engine.close();
      await browsers.remove(id);
    },
  });
  const spareCount = () => spares.count('headless') + spares.count('headful');

  /** The rest of the disk is reserved for the database. */
  function refuseIfShort() {
    if (disk.short()) throw errors.storage_full({ path: disk.path });
  }

  function refuseOffender(projectId: string) {
    const seconds = offenders.secondsLeft(projectId);
    if (seconds > 0) throw errors.disk_overused({ seconds }, { headers: { 'Retry-After': String(seconds) } });
  }

  return {
    /** On a disk that is short a create waits until room was made, which takes seconds at most. A project that has filled it waits longer. */
    async waitForDisk(projectId: string): Promise<void> {
      refuseOffender(projectId);
      const late = sleep(longestReliefMs, undefined, { ref: false });
      for (const until = performance.now() + longestReliefMs; disk.short() && performance.now() < until;) {
        const relief = relieve();
        if (!relief) break;
        await Promise.race([relief, late]);
        refuseOffender(projectId); // it may have been its session that was ended
      }
      refuseIfShort();
    },

    /**
     * A deleted session keeps its place until all of it is removed. That takes milliseconds, so a create waits for it, unless its client
     * has disconnected: the save of a profile takes longer.
     */
    async takePlace(hungUp?: AbortSignal): Promise<void> {
      hungUp?.throwIfAborted();
      while (!roster.closed && taken >= capacity && roster.ends.size > 0) {
        await unlessAborted(hungUp, Promise.race(Array.from(roster.ends.values(), ({ over }) => over)));
        hungUp?.throwIfAborted();
      }
      if (roster.closed) throw errors.shutting_down(undefined, retrySoon);
      if (taken >= capacity) throw errors.capacity_exhausted({ running: taken, most: capacity }, retrySoon);
      taken++; // before the first await, so that concurrent creates count each other
    },

    freePlace() {
      taken--;
      spares.fillSoon();
    },

    /** A spare that can become the session; undefined if none fits. */
    takeSpare(options: BrowserOptions): Spare | undefined {
      const shape = shapeOf(options);
      return shape && spares.take(shape);
    },

    /** Ends a spare after the service failed in its work. False: there is no such spare. */
    dropSpare: spares.dropOne,

    /** Returns the spare of a session that was refused after all. */
    giveBackSpare({ headless }: BrowserOptions, spare: Spare) {
      spares.giveBack(headless ? 'headless' : 'headful', spare);
    },

    /** Ends a spare when a session that has a place needs its own browser and the node is full of spares. */
    async makeRoom(): Promise<void> {
      if (taken + spareCount() > capacity) await spares.giveUpOne();
    },

    /** Spares are not launched while a client waits for a launch. */
    launchOver() {
      if (roster.launching.size === 0) spares.fillSoon();
    },

    /** Inserts the session's row. Refuses if the project's cap, the pool, the name or another session that saves the profile forbids it. */
    async insert(row: NewSession, state: 'starting' | 'live', force: boolean): Promise<void> {
      try {
        const cap = await sessionCap(row.project_id);
        const inserted = row.pool_id
          ? await store.insertPooled(row, state, row.pool_id, cap)
          : await unlessWritten(store, row.id, row.profile_saves && !force ? row.profile_id : null, (store) =>
              cap === null ? store.insert(row, state) : store.insertWithin(row, state, cap),
            );
        if (!inserted) throw errors.pool_full({ pool: row.pool_id ?? '' });
        if ('kept' in inserted) throw errors.session_limit_reached({ ...inserted, cap: cap ?? 0 });
      } catch (error) {
        throw nameTaken(error, row.name);
      }
    },

    fill: spares.fill,
    close: spares.close,
    counts: () => ({
      taken,
      capacity,
      spares: { headless: spares.count('headless'), headful: spares.count('headful') },
    }),
  };
}

/** Resolves when `work` does, or the signal aborts. */
async function unlessAborted(signal: AbortSignal | undefined, work: Promise<unknown>): Promise<void> {
  let leave = () => {};
  const aborted = new Promise<void>((resolve) => (leave = resolve));
  signal?.addEventListener('abort', leave, { once: true });
  await Promise.race([work, aborted]).finally(() => signal?.removeEventListener('abort', leave));
}

/** Resizes a spare, which was started in the default size. */
export async function fit(engine: Engine, { viewport }: BrowserOptions): Promise<void> {
  const { width, height, refreshRate } = viewport;
  const asStarted = width === defaultViewport.width && height === defaultViewport.height && refreshRate === undefined;
  if (!asStarted) await engine.setViewport(viewport);
}

/** A second session that saves to a profile would overwrite what the first one saved, so it is refused. */
export async function unlessWritten<T>(
  store: SessionStore,
  sessionId: string,
  profileId: string | null,
  write: (store: SessionStore) => Promise<T>,
): Promise<T> {
  if (profileId === null) return write(store);
  const outcome = await store.asOnlyWriter({ profileId, sessionId }, (tx) => write(sessionStore(tx)));
  if ('written' in outcome) return outcome.written;
  const { writer } = outcome;
  throw errors.profile_in_use({ profile: profileId, session: writer }, { body: { session_id: writer } });
}

/** Translates the database's error about a taken name into the API's. Every other error is returned unchanged. */
export function nameTaken(error: unknown, name: string | null | undefined): unknown {
  return uniqueViolation(error) === 'sessions_name'
    ? errors.already_exists({ thing: 'session', name: name ?? '' })
    : error;
}
