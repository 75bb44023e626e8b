import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { fakeEngine, proxyAt } from '../../test/support/fake-engine.ts';
import { fakeTelemetry } from '../../test/support/fake-telemetry.ts';
import { newRow } from '../../test/support/session-rows.ts';
import { openTestStore } from '../../test/support/store.ts';
import { errors } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import { silent } from '../lib/log.ts';
import { sql } from '../store/sql.ts';
import { sessionChanging } from './session-update.ts';
import { liveSession } from './live-session.ts';
import { sessionRoster } from './roster.ts';
import type { UpdateSession } from './schema.ts';
import { sessionStore, type SessionRow } from './store.ts';

let opened: Awaited<ReturnType<typeof openTestStore>>;
const project = 'proj_test';
beforeAll(async () => {
  opened = await openTestStore();
  await opened.db.rows(sql`insert into projects (id, name) values (${project}, 'test')`);
});
afterAll(() => opened?.close());
beforeEach(() => opened.db.rows(sql`delete from sessions`));

/** A session on the real database, and a browser that records its calls. */
async function house(row: Partial<Parameters<typeof newRow>[0]> = {}) {
  const store = sessionStore(opened.db);
  const id = newId();
  await store.insert(newRow({ id, name: 'before', tags: { a: 'b' }, ...row }), 'live');
  await store.insert(newRow({ id: newId(), name: 'taken' }), 'live');
  const fake = fakeEngine();
  const captured = fakeTelemetry();
  const roster = sessionRoster();
  const session = liveSession({
    id,
    projectId: 'p',
    engine: fake.engine,
    telemetry: captured.telemetry,
    timeoutSeconds: 60,
    mayStandBy: false,
    proxy: proxyAt('first'),
    relaunch: () => Promise.reject(new Error('no')),
    onIdle() {},
    onLost() {},
    log: silent,
  });
  roster.live.set(id, session);
  const faults = { prepare: undefined as Error | undefined, load: undefined as Error | undefined };
  const find = async () => {
    const found = await store.find(id);
    if (!found || found.deleted_at) throw errors.session_not_found({ session: id });
    delete found.uptime; // always increases
    return found;
  };
  const { update } = sessionChanging({
    store,
    proxies: {
      endpoint: async (_project: string, proxyId: string) => {
        if (proxyId === 'nothing') throw errors.invalid_input({ detail: 'proxy_id: no proxy has this id.' });
        return proxyAt(proxyId);
      },
      defaultEndpoint: () => undefined,
    },
    extensions: {} as never,
    roster,
    restarts: {
      startAnew: async () => {},
      async prepareProfile() {
        if (faults.prepare) throw faults.prepare;
        fake.done.push('profile ready');
        return {
          async load() {
            if (faults.load) throw faults.load;
            fake.done.push('profile loaded');
            return 'saved';
          },
          discard: async () => void fake.done.push('profile discarded'),
        };
      },
    },
    finding: { find, toSession: (found) => found as never },
  });
  return {
    fake,
    captured,
    faults,
    roster,
    session,
    store,
    find,
    id,
    patch: (request: UpdateSession) => update(project, 'key', id, request) as unknown as Promise<SessionRow>,
  };
}

const all: UpdateSession = {
  name: 'after',
  tags: { c: 'd' },
  proxy_id: 'second',
  telemetry: { browser: { console: { enabled: true } } },
  viewport: { width: 800, height: 600 },
  profile: { id: 'p', save_changes: true },
};

test('a change of everything is made in the order in which it can be undone, the profile last', async () => {
  const { patch, fake, roster, id } = await house();
  expect(await patch(all)).toMatchObject({ name: 'after', tags: { c: 'd' }, proxy_id: 'second', viewport_width: 800 });
  expect(fake.done).toEqual(['profile ready', 'proxy second', 'viewport 800x600', 'profile loaded']);
  expect(roster.saving.get(id)).toBe('saved');
});

describe('a change is refused as a whole, and nothing is touched:', () => {
  test.each<[string, Partial<UpdateSession>]>([
    ['an unknown proxy', { proxy_id: 'nothing' }],
    ['a proxy and the default', { proxy_id: 'second', disable_default_proxy: true }],
    ['no default proxy to disable', { proxy_id: null, disable_default_proxy: true }],
    ['telemetry that is off and on', { telemetry: { enabled: false, browser: { console: { enabled: true } } } }],
    ['force without saving', { profile: { id: 'p', force: true } }],
  ])('%s', async (_, bad) => {
    const { patch, fake, find } = await house();
    const before = await find();
    await expect(patch({ ...all, ...bad })).rejects.toMatchObject({ code: 'invalid_input' });
    expect(await find()).toEqual(before);
    expect(fake.done).toEqual([]);
  });

  test('a display that is too large', async () => {
    const { patch, fake, find } = await house({ headless: false });
    const before = await find();
    const viewport = { width: 8192, height: 8192 };
    await expect(patch({ ...all, viewport })).rejects.toMatchObject({ code: 'invalid_input' });
    expect(await find()).toEqual(before);
    expect(fake.done).toEqual([]);
  });

  test('a profile that is not there', async () => {
    const { patch, fake, faults, find } = await house();
    const before = await find();
    faults.prepare = errors.invalid_input({ detail: 'profile: no profile has this id.' });
    await expect(patch(all)).rejects.toMatchObject({ code: 'invalid_input' });
    expect(await find()).toEqual(before);
    expect(fake.done).toEqual([]);
  });

  test('a viewport while the session is recorded', async () => {
    const { patch, fake, session, find } = await house();
    const before = await find();
    session.recordings.add({ cut: () => async () => {} });
    await expect(patch(all)).rejects.toMatchObject({
      code: 'viewport_in_use',
      message: expect.stringContaining('viewport.force'),
    });
    expect(await find()).toEqual(before);
    expect(fake.done).toEqual([]);
  });

  test('a name that is taken; the profile that was prepared is discarded', async () => {
    const { patch, fake, find } = await house();
    const before = await find();
    await expect(patch({ ...all, name: 'taken' })).rejects.toMatchObject({ code: 'already_exists' });
    expect(await find()).toEqual(before);
    expect(fake.done).toEqual(['profile ready', 'profile discarded']);
  });
});

describe('changes are undone when', () => {
  test('the browser does not take the viewport', async () => {
    const { patch, fake, find } = await house();
    const before = await find();
    const { setViewport } = fake.engine;
    Object.assign(fake.engine, {
      setViewport: (viewport: { width: number; height: number }) =>
        viewport.width === 800 ? Promise.reject(new Error('It does not answer.')) : setViewport(viewport),
    });
    await expect(patch(all)).rejects.toThrow('It does not answer.');
    expect(await find()).toEqual(before);
    expect(fake.done).toEqual([
      'profile ready',
      'proxy second',
      'viewport 1920x1080',
      'proxy first',
      'profile discarded',
    ]);
  });

  test('the profile cannot be loaded', async () => {
    const { patch, fake, captured, faults, find, roster, id } = await house();
    const before = await find();
    faults.load = new Error('It does not start.');
    await expect(patch(all)).rejects.toThrow('It does not start.');
    expect(await find()).toEqual(before);
    expect([...captured.journal.capture]).toEqual([]);
    expect(fake.done.slice(3)).toEqual(['viewport 1920x1080', 'proxy first', 'profile discarded']);
    expect(roster.saving.has(id)).toBe(false);
  });
});

test('a viewport that is forced cuts each recording before the change and lets it go on afterwards, also after a failure', async () => {
  const { patch, fake, faults, session } = await house();
  const cut = () => {
    fake.done.push('cut');
    return async () => void fake.done.push('goes on');
  };
  session.recordings.add({ cut });
  const viewport = { width: 800, height: 600, force: true };
  await patch({ viewport });
  await expect(patch({ name: 'taken', viewport })).rejects.toMatchObject({ code: 'already_exists' });
  faults.load = new Error('It does not start.');
  await expect(patch({ profile: { id: 'p' }, viewport })).rejects.toThrow('It does not start.');
  const cuts = fake.done.filter((what) => what === 'cut' || what === 'goes on');
  expect(cuts).toEqual(['cut', 'goes on', 'cut', 'goes on']);
});

test('changes at the same time come one after the other, so that undoing one does not undo the other', async () => {
  const { patch, faults, find } = await house();
  faults.load = new Error('It does not start.');
  const [failed] = await Promise.allSettled([patch(all), patch({ name: 'other' })]);
  expect(failed).toMatchObject({ status: 'rejected' });
  expect(await find()).toMatchObject({ name: 'other', tags: { a: 'b' } });
});

test('a change does not reach the next holder of a pool’s browser', async () => {
  const { store, id, find } = await house();
  await opened.db.rows(sql`update sessions set lease_id = 'next' where id = ${id}`);
  expect(await store.update({ id, lease_id: 'mine' }, { name: 'mine' })).toBeUndefined();
  expect(await find()).toMatchObject({ name: 'before' });
});

test('a refresh rate that is left out stays', async () => {
  const { patch } = await house();
  await patch({ viewport: { width: 800, height: 600, refresh_rate: 30 } });
  expect(await patch({ viewport: { width: 900, height: 700 } })).toMatchObject({
    viewport_width: 900,
    refresh_rate: 30,
  });
});
