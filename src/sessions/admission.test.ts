import { afterAll, beforeAll, expect, test } from 'vitest';
import { fakeEngine, type FakeEngine } from '../../test/support/fake-engine.ts';
import { newRow } from '../../test/support/session-rows.ts';
import { openTestStore } from '../../test/support/store.ts';
import { silent } from '../lib/log.ts';
import { sql } from '../store/sql.ts';
import { admission } from './admission.ts';
import { optionsOf } from './request.ts';
import { sessionRoster } from './roster.ts';
import { sessionStore } from './store.ts';

let database: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  database = await openTestStore();
  const { db } = database;
  await db.rows(sql`insert into projects (id, name) values ('proj_test', 'test')`);
  await db.rows(sql`insert into profiles (id, project_id) values ('prof', 'proj_test')`);
  await db.rows(sql`insert into pools (id, project_id, size, config) values ('pool', 'proj_test', 1, '{}')`);
});
afterAll(() => database?.close());

function house({ capacity = 1, spares = { headless: 0, headful: 0 }, cap = null as number | null } = {}) {
  const roster = sessionRoster();
  const disk = { path: '/data', full: false, mendable: false, short: () => disk.full };
  const started: FakeEngine[] = [];
  const removed: string[] = [];
  const admitting = admission({
    store: sessionStore(database.db),
    browsers: {
      async start() {
        const fake = fakeEngine();
        started.push(fake);
        return fake.engine;
      },
      remove: async (id) => void removed.push(id),
    },
    roster,
    sessionCap: async () => cap,
    capacity,
    spares,
    disk,
    relieve: () => (disk.mendable ? Promise.resolve().then(() => void (disk.full = false)) : undefined),
    offenders: { secondsLeft: (projectId) => (projectId === 'offender' ? 7 : 0) },
    log: silent,
  });
  const spareCount = () => admitting.counts().spares.headless + admitting.counts().spares.headful;
  return { ...admitting, roster, disk, started, removed, spareCount };
}

const headless = optionsOf({ headless: true });
const refusal = (code: string) => expect.objectContaining({ code });
const settled = (work: Promise<unknown>) => Promise.race([work.then(() => true), new Promise((r) => setImmediate(r))]);

test('of two creates that come together one gets the last place, and the other after it was given back', async () => {
  const { takePlace, freePlace, counts } = house();
  const [first, second] = await Promise.allSettled([takePlace(), takePlace()]);
  expect(first).toMatchObject({ status: 'fulfilled' });
  expect(second).toMatchObject({ reason: refusal('capacity_exhausted') });
  expect(counts().taken).toBe(1);
  freePlace();
  await takePlace();
  expect(counts().taken).toBe(1);
});

test('a create waits for the place of a session that is ending, and is refused when the service stops', async () => {
  const { takePlace, freePlace, roster } = house();
  await takePlace();
  const ended = () => {
    let over!: () => void;
    roster.ends.set('a', { killed: Promise.resolve(), over: new Promise<void>((resolve) => (over = resolve)) });
    return () => (roster.ends.delete('a'), freePlace(), over());
  };
  const end = ended();
  const waits = takePlace();
  expect(await settled(waits)).toBeUndefined();
  end();
  await waits;

  const endAgain = ended();
  const tooLate = takePlace();
  roster.closed = true;
  endAgain();
  await expect(tooLate).rejects.toMatchObject({ code: 'shutting_down' });
});

test('a create whose client disconnects while it waits for a place takes none', async () => {
  const { takePlace, freePlace, roster, counts } = house();
  await takePlace();
  roster.ends.set('a', { killed: Promise.resolve(), over: new Promise<void>(() => {}) });
  const leave = new AbortController();
  const waits = takePlace(leave.signal);
  leave.abort(new Error('gone'));
  await expect(waits).rejects.toThrow('gone');
  freePlace();
  await expect(takePlace(leave.signal)).rejects.toThrow('gone');
  expect(counts().taken).toBe(0);
});

test('no session is begun when only the reserve of the disk is left, unless room can be made', async () => {
  const { waitForDisk, disk } = house();
  await waitForDisk('proj_test');
  disk.full = true;
  await expect(waitForDisk('proj_test')).rejects.toMatchObject({
    code: 'storage_full',
    status: 503,
    extras: { headers: { 'Retry-After': '5' } },
  });
  disk.mendable = true;
  await waitForDisk('proj_test');
  expect(disk.full).toBe(false);
});

test('a project waits for its next session after one was ended for the disk', async () => {
  const { waitForDisk } = house();
  await expect(waitForDisk('offender')).rejects.toMatchObject({
    code: 'disk_overused',
    status: 429,
    extras: { headers: { 'Retry-After': '7' } },
  });
});

test('a spare is taken by a session of its shape only, and ended for a session that has to start its own browser', async () => {
  const { fill, takeSpare, giveBackSpare, takePlace, makeRoom, spareCount, started, removed, close } = house({
    spares: { headless: 1, headful: 0 },
  });
  fill();
  await expect.poll(spareCount).toBe(1);
  expect(takeSpare(optionsOf({ headless: false }))).toBeUndefined();
  expect(takeSpare(optionsOf({ headless: true, stealth: true }))).toBeUndefined();
  const spare = takeSpare(headless)!;
  expect(spare.engine).toBe(started[0]!.engine);
  expect(takeSpare(headless)).toBeUndefined();
  giveBackSpare(headless, spare);

  await makeRoom(); // there is room for it: no session has a place
  expect(spareCount()).toBe(1);
  await takePlace();
  await makeRoom();
  expect(spareCount()).toBe(0);
  expect(started[0]!.done).toContain('close');
  expect(removed).toEqual([spare.id]);
  await close();
});

test('spares wait until no client waits for a launch', async () => {
  const { fill, launchOver, roster, spareCount, started, close } = house({ spares: { headless: 1, headful: 0 } });
  roster.launching.set('a', { callOff: new AbortController(), over: Promise.resolve() });
  fill();
  expect(started).toEqual([]);
  roster.launching.delete('a');
  launchOver();
  await expect.poll(spareCount).toBe(1);
  await close();
});

test('a row is refused by the cap of the project, by a full pool, by a name and by a profile that are taken', async () => {
  const { insert } = house();
  const writer = { profile_id: 'prof', profile_saves: true };
  await insert(newRow({ id: 'a', name: 'mine', ...writer }), 'live', false);
  const refused = (changes: object) => insert(newRow({ id: 'b', ...changes }), 'live', false);
  await expect(refused({ name: 'mine' })).rejects.toMatchObject({ code: 'already_exists' });
  await expect(refused(writer)).rejects.toMatchObject({
    code: 'profile_in_use',
    extras: { body: { session_id: 'a' } },
  });

  await insert(newRow({ id: 'c', pool_id: 'pool', pool_version: 1 }), 'live', false);
  await expect(refused({ pool_id: 'pool', pool_version: 1 })).rejects.toMatchObject({ code: 'pool_full' });

  // Two browsers run, and the pool keeps no place beside the one it has.
  await expect(house({ cap: 2 }).insert(newRow({ id: 'b' }), 'live', false)).rejects.toMatchObject({
    code: 'session_limit_reached',
  });
  await house({ cap: 3 }).insert(newRow({ id: 'd', ...writer, profile_saves: false }), 'live', false);
  await insert(newRow({ id: 'b', ...writer }), 'live', true); // with force
});
