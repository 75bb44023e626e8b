import type { Engine } from '../chromium/engine.ts';
import { errors } from '../errors.ts';
import type { DiskSpace } from '../lib/disk-space.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import { uniqueViolation } from '../store/db.ts';
import type { BrowserOptions, Browsers } from './browsers.ts';
import { defaultViewport, shapeOf, spareOptions } from './request.ts';
import type { Roster } from './roster.ts';
import { warmSpares, type Shape, type Spare } from './spares.ts';
import { sessionStore, type NewSession, type SessionStore } from './store.ts';

const retrySoon = { headers: { 'Retry-After': '5' } };

export type Admission = ReturnType<typeof admission>;

/** Whether one more session may be made: the places of this node, its disk, the project's cap; and the spares that wait in free places. */
export function admission({
  store,
  browsers,
  roster,
  sessionCap,
  capacity,
  spares: wanted,
  disk,
  log,
}: {
  store: SessionStore;
  browsers: Pick<Browsers, 'start' | 'remove'>;
  roster: Pick<Roster, 'launching' | 'ends' | 'closed'>;
  sessionCap: (projectId: string) => Promise<number | null>;
  /** How many browsers this node runs at most, spares included. */
  capacity: number;
  spares: Record<Shape, number>;
  disk: Pick<DiskSpace, 'path' | 'short'>;
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

  /** What is left of the disk then is the database's. */
  function refuseIfShort() {
    if (disk.short()) throw errors.storage_full({ path: disk.path });
  }

  return {
    refuseIfShort,

    /** A session that was deleted has its place until all of it is gone. That takes milliseconds, and is waited for. */
    async takePlace(): Promise<void> {
      while (!roster.closed && taken >= capacity && roster.ends.size > 0)
        await Promise.race(Array.from(roster.ends.values(), ({ over }) => over));
      if (roster.closed) throw errors.shutting_down(undefined, retrySoon);
      if (taken >= capacity) throw errors.capacity_exhausted({ running: taken, most: capacity }, retrySoon);
      taken++; // before anything is awaited, so that creates that come together count each other
    },

    freePlace() {
      taken--;
      spares.fillSoon();
    },

    /** A spare that can become the session; undefined when none is there or none would do. */
    takeSpare(options: BrowserOptions): Spare | undefined {
      const shape = shapeOf(options);
      return shape && spares.take(shape);
    },

    /** The session was refused after all. */
    giveBackSpare({ headless }: BrowserOptions, spare: Spare) {
      spares.giveBack(headless ? 'headless' : 'headful', spare);
    },

    /** Ends a spare when a session that has a place needs its own browser and the node is full of spares. */
    async makeRoom(): Promise<void> {
      if (taken + spareCount() > capacity) await spares.giveUpOne();
    },

    /** Spares wait for launches that clients wait for. */
    launchOver() {
      if (roster.launching.size === 0) spares.fillSoon();
    },

    /** Writes the session's row, unless the project's cap, its pool, its name or another session that saves its profile is in the way. */
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

/** A spare was started in the default size. */
export async function fit(engine: Engine, { viewport }: BrowserOptions): Promise<void> {
  const asStarted = viewport.width === defaultViewport.width && viewport.height === defaultViewport.height;
  if (!asStarted) await engine.setViewport(viewport);
}

/** A second session that saves to a profile would undo what the first one saved, so it is refused. */
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

/** The database's word that a name is taken, in the words of the interface. Every other error stays what it is. */
export function nameTaken(error: unknown, name: string | null | undefined): unknown {
  return uniqueViolation(error) === 'sessions_name'
    ? errors.already_exists({ thing: 'session', name: name ?? '' })
    : error;
}
