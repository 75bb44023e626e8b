import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newRow } from '../../test/support/session-rows.ts';
import { openTestStore } from '../../test/support/store.ts';
import { silent } from '../lib/log.ts';
import { poolStore } from '../pools/store.ts';
import { sessionStore } from '../sessions/store.ts';
import { sql } from '../store/sql.ts';
import { projectEventTypes, type ProjectEvent } from './schema.ts';
import { projectEventService, sees, type Reader } from './service.ts';
import { projectEventStore } from './store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
const reader: Reader = { keyId: 'key', bound: false, projectId: 'proj_test' };
/** The caller of this test. */
const lapsed = new Set<string>();
let service: ReturnType<typeof projectEventService>;

beforeAll(async () => {
  store = await openTestStore(['corral_project_events']);
  await store.db.rows(sql`insert into projects (id, name) values ('proj_test', 'Test'), ('proj_other', 'Other')`);
  service = open();
  store.anchor.on('corral_project_events', () => service.hear());
});
beforeEach(() => void (service = open()));
afterAll(() => store?.close());

const rows = () => projectEventStore(store.db);
const open = (ringSize?: number, store = rows()) =>
  projectEventService({
    store,
    lapseOf: async ({ keyId }) => (lapsed.has(keyId) ? 'key' : undefined),
    log: silent,
    ...(ringSize && { ringSize }),
  });

async function stream(caller = reader, from?: number) {
  const over = new AbortController();
  const frames = await service.read(caller, from, over);
  const next = async (): Promise<ProjectEvent | undefined> => {
    const { done, value } = await frames.next();
    if (done) return undefined;
    const event = JSON.parse(value.json) as ProjectEvent;
    expect(event.id).toBe(value.id);
    return event;
  };
  /** The events up to the one of this type, and that one. */
  const until = async (type: string) => {
    const all: ProjectEvent[] = [];
    for (let event; (event = await next());) {
      all.push(event);
      if (event.type === type) return all;
    }
    throw new Error(`The stream ended before ${type}.`);
  };
  return { next, until, end: () => over.abort(), signal: over.signal };
}

const profile = (id: string, project = 'proj_test') =>
  store.db.rows(sql`insert into profiles (id, project_id, name) values (${id}, ${project}, ${id})`);
const deleteProfile = (id: string) => store.db.rows(sql`update profiles set deleted_at = now() where id = ${id}`);

// First of all: a reader of an earlier test may still have the database place events, between the changes that are one event here.
test('a lease is an event of its session, and many changes of its pool are one event with counts', async () => {
  const pools = poolStore(store.db);
  const pool = { id: 'pool', project_id: 'proj_test', name: 'shelf', size: 9, config: {} as never };
  await pools.insert({ ...pool, profile_id: null, extension_ids: [] });
  const from = await rows().place();
  for (const id of ['shelf_1', 'shelf_2', 'shelf_3']) {
    await sessionStore(store.db).insert(newRow({ id, pool_id: 'pool', pool_version: 1 }), 'live');
    await pools.shelve(id);
  }
  await pools.leaseNow('pool', 'lease', 'node');
  await pools.join('pool', 'node', 'waits', undefined);
  const followed = await stream(reader, from);
  const events = await followed.until('pool.counts');
  expect(events.map(({ type }) => type)).toEqual(['stream.opened', 'session.leased', 'pool.counts']);
  expect(events.at(-1)?.data).toEqual({ name: 'shelf', size: 9, available: 2, acquired: 1, warming: 0, waiting: 1 });
  await pools.leave('waits');
  await pools.shelve('shelf_1', 'lease');
  expect((await followed.until('session.returned')).at(-1)).toMatchObject({ resource_id: 'shelf_1' });
  expect((await followed.until('pool.counts')).at(-1)?.data).toMatchObject({ available: 3, acquired: 0, waiting: 0 });
  followed.end();
});

test('each state of a session is an event, with the reason of its end', async () => {
  const followed = await stream();
  const sessions = sessionStore(store.db);
  await sessions.insert(newRow({ id: 'life', name: 'demo' }), 'starting');
  await sessions.apply('life', 'launched');
  await sessions.setClock('life', { uptimeMs: 5, awake: false });
  await sessions.setClock('life', { uptimeMs: 5, awake: true });
  await sessions.update({ id: 'life', lease_id: null }, { name: 'other' });
  await sessions.apply('life', 'stop_requested', { reason: 'idle' });
  await sessions.apply('life', 'cleaned_up');
  const events = await followed.until('session.ended');
  expect(events.map(({ type, data }) => [type, data['state']])).toEqual([
    ['stream.opened', undefined],
    ['session.created', 'starting'],
    ['session.live', 'live'],
    ['session.standby', 'standby'],
    ['session.woken', 'live'],
    ['session.changed', 'live'],
    ['session.stopping', 'stopping'],
    ['session.ended', 'stopped'],
  ]);
  expect(events.at(-1)).toMatchObject({
    resource_id: 'life',
    project_id: 'proj_test',
    data: { name: 'other', reason: 'idle' },
  });
  expect(events.every(({ type }) => type.startsWith('stream.') || projectEventTypes.includes(type))).toBe(true);
  followed.end();
});

test('events of a transaction that commits late come after those of earlier commits, also for a reader that reconnects', async () => {
  const followed = await stream();
  let second: ProjectEvent | undefined;
  await store.db.transaction(async (tx) => {
    await tx.rows(sql`insert into profiles (id, project_id, name) values ('late', 'proj_test', 'late')`);
    await profile('early');
    second = (await followed.until('profile.created')).at(-1);
    expect(second?.resource_id).toBe('early');
    followed.end();
  });
  const again = await stream(reader, second!.id);
  expect((await again.until('profile.created')).map(({ resource_id }) => resource_id)).toEqual([undefined, 'late']);
  again.end();
});

test('a rolled back change is no event', async () => {
  const followed = await stream();
  const undone = store.db.transaction(async (tx) => {
    await tx.rows(sql`insert into profiles (id, project_id, name) values ('undone', 'proj_test', 'undone')`);
    throw new Error('undone');
  });
  await expect(undone).rejects.toThrow('undone');
  await profile('done');
  expect((await followed.until('profile.created')).at(-1)?.resource_id).toBe('done');
  followed.end();
});

test('a reader that is behind the events in memory reads from the database', async () => {
  service = open(3);
  const followed = await stream();
  for (let count = 0; count < 20; count++) await profile(`many_${count}`);
  await deleteProfile('many_0');
  const events = await followed.until('profile.deleted');
  expect(events.slice(1).map(({ resource_id }) => resource_id)).toEqual([
    ...Array.from({ length: 20 }, (_, count) => `many_${count}`),
    'many_0',
  ]);
  followed.end();
});

test('a reader gets a gap event when the requested events were removed or never existed', async () => {
  const before = await rows().place();
  for (const id of ['gap_1', 'gap_2', 'gap_3']) await profile(id);
  await rows().prune({ most: 1 });
  const followed = await stream(reader, before);
  expect(await followed.next()).toMatchObject({ type: 'stream.opened', id: before });
  expect(await followed.next()).toMatchObject({ type: 'stream.gap', id: before + 2 });
  expect(await followed.next()).toMatchObject({ type: 'profile.created', resource_id: 'gap_3', id: before + 3 });
  followed.end();

  await rows().prune({ minutes: -1 });
  const ahead = await stream(reader, before + 1_000_000);
  expect(await ahead.next()).toMatchObject({ type: 'stream.opened' });
  expect(await ahead.next()).toMatchObject({ type: 'stream.gap', id: before + 3 });
  await profile('gap_4');
  expect(await ahead.next()).toMatchObject({ resource_id: 'gap_4', id: before + 4 });
  ahead.end();
});

test('a bound key sees events of its project only, other keys also those of the organisation', async () => {
  const other = await stream({ ...reader, bound: true, projectId: 'proj_other' });
  const org = await stream();
  await profile('mine');
  await profile('theirs', 'proj_other');
  await store.db.rows(sql`insert into credential_providers (id, provider_type, name) values ('prov', 'http', 'Store')`);
  await store.db.rows(sql`update projects set name = 'Renamed' where id = 'proj_other'`);
  const seen = async (events: typeof org) =>
    (await events.until('project.changed')).map(({ type, resource_id }) => [type, resource_id]);
  expect(await seen(other)).toEqual([
    ['stream.opened', undefined],
    ['profile.created', 'theirs'],
    ['project.changed', 'proj_other'],
  ]);
  expect(await seen(org)).toEqual([
    ['stream.opened', undefined],
    ['profile.created', 'mine'],
    ['credential_provider.created', 'prov'],
    ['project.changed', 'proj_other'],
  ]);
  other.end();
  org.end();
  expect(sees({ projectId: 'a', bound: true }, { projectId: null, forOrg: true })).toBe(false);
});

test('a stream ends when its key is revoked, and all end with the service', async () => {
  const one = await stream({ ...reader, keyId: 'revoked' });
  const two = await stream();
  expect(await one.next()).toMatchObject({ type: 'stream.opened' });
  expect(await two.next()).toMatchObject({ type: 'stream.opened' });
  lapsed.add('revoked');
  service.recheck();
  expect(await one.next()).toBeUndefined();
  expect(two.signal.aborted).toBe(false);
  service.close();
  expect(await two.next()).toBeUndefined();
  expect(service.readers()).toBe(0);
  const late = await stream();
  expect(await late.next()).toMatchObject({ type: 'stream.opened' });
  expect(await late.next()).toBeUndefined();
});

test('readers of a project that are behind read one page at a time from the database', async () => {
  const from = await rows().place();
  for (const id of ['behind_1', 'behind_2', 'behind_3']) await profile(id);
  const atOnce = { now: 0, most: 0 };
  const { after, ...others } = rows();
  service = open(1, {
    ...others,
    async after(...page) {
      atOnce.most = Math.max(atOnce.most, (atOnce.now += 1));
      return after(...page).finally(() => (atOnce.now -= 1));
    },
  });
  await stream(reader); // so that the last event is in memory
  atOnce.most = 0;
  const [left, ...stay] = await Promise.all(Array.from({ length: 5 }, () => stream(reader, from)));
  const waiting = [left!, ...stay].map(({ until }) => until('profile.created').catch(() => 'left'));
  left!.end();
  expect((await Promise.all(waiting)).filter((events) => events !== 'left')).toHaveLength(4);
  expect(atOnce.most).toBe(1);
});
