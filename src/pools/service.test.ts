import { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { errors } from '../errors.ts';
import { eventBus } from '../events.ts';
import { newId } from '../lib/ids.ts';
import { silent } from '../lib/log.ts';
import type { Returned } from '../sessions/session-loans.ts';
import type { NewSession, SessionRow } from '../sessions/store.ts';
import { sessionStore } from '../sessions/store.ts';
import type { Db } from '../store/db.ts';
import { sql, type Sql } from '../store/sql.ts';
import { poolMetrics } from './metrics.ts';
import type { Placed } from './nodes/anywhere.ts';
import type { Acquired } from './leases.ts';
import { poolService, type PoolService } from './service.ts';
import { poolStore, type Lease } from './store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
const projectId = 'proj_test';
beforeAll(async () => {
  store = await openTestStore();
  await store.db.rows(sql`insert into projects (id, name) values (${projectId}, 'test')`);
});
afterAll(() => store?.close());

const open: PoolService[] = [];
afterEach(async () => {
  for (const pools of open.splice(0)) await pools.close();
  await store.db.rows(sql`delete from pool_waiters`);
  await store.db.rows(sql`delete from sessions`);
  await store.db.rows(sql`delete from pools`);
});

const neverAborted = new AbortController().signal;

const blank: Omit<NewSession, 'id' | 'project_id' | 'node_id' | 'pool_id' | 'pool_version'> = {
  name: null,
  tags: {},
  headless: true,
  stealth: false,
  gpu: false,
  kiosk_mode: false,
  timeout_seconds: 60,
  viewport_width: 1,
  viewport_height: 1,
  refresh_rate: null,
  start_url: null,
  policy: null,
  invocation_id: null,
  proxy_id: null,
  profile_id: null,
  profile_saves: false,
  telemetry: [],
};

/** The pools of one node on the real database, and browsers that are only rows. */
function node(nodeId: string, options: { place?: () => string | undefined; db?: Db } = {}) {
  const sessions = sessionStore(store.db);
  const leases = poolStore(store.db);
  const ended: string[] = [];
  const events = eventBus();
  const faults = {
    make: undefined as Error | undefined,
    launch: undefined as Error | undefined,
    making: undefined as (() => Promise<void>) | undefined,
    lend: undefined as ((id: string) => Promise<void>) | undefined,
    makeAt: 'refused' as Placed,
    returned: 'used' as Returned,
  };
  const asked: string[] = [];
  /** The leases that the browsers know of. */
  const lent = new Map<string, string>();
  const registry = new Registry();
  const pools = poolService({
    db: options.db ?? store.db,
    async make(project, pool, _request, onPlaced) {
      if (faults.make) throw faults.make;
      await faults.making?.();
      const row = {
        ...blank,
        id: newId(),
        project_id: project,
        node_id: nodeId,
        pool_id: pool.id,
        pool_version: pool.version,
      };
      const inserted = await sessions.insertPooled(row, 'live', pool.id, null);
      if (!inserted) throw errors.pool_full({ pool: pool.id });
      onPlaced();
      if (faults.launch) await sessions.apply(row.id, 'lost', { reason: 'did_not_start' });
      if (faults.launch) throw faults.launch;
      return inserted as SessionRow;
    },
    resolve: async () => ({}),
    refuseUnknownProxy: async () => {},
    place: (except) => (options.place ? options.place() : except.has(nodeId) ? undefined : nodeId),
    sessions: {
      leaseHere: (id) => lent.get(id) ?? null,
      async lend(id: string, lease: Lease) {
        if (!(await leases.describeLease(id, lease))) throw errors.session_not_found({ session: id });
        await faults.lend?.(id);
        lent.set(id, lease.id);
        return { session_id: id } as never;
      },
      async takeBack(id) {
        lent.delete(id);
        return faults.returned;
      },
      async stop(id) {
        ended.push(id);
        await store.db.rows(
          sql`update sessions set state = 'stopped', deleted_at = coalesce(deleted_at, now()) where id = ${id}`,
        );
      },
      async makeAt(target) {
        asked.push(target);
        return faults.makeAt;
      },
    },
    events,
    metrics: poolMetrics(registry),
    nodeId,
    allowance: { capacity: async () => 100, sessionCap: async () => null, usage: async () => ({ active: 0, kept: 0 }) },
    log: silent,
  });
  const made = {
    pools,
    registry,
    ended,
    events,
    faults,
    asked,
    lent,
    async pool(size: number, config: object = {}): Promise<string> {
      const { id } = await pools.create(projectId, { size, headless: true, ...config });
      if (faults.make || options.place) return id;
      await made.until(id, { available_count: size });
      // The pool is full before the filler notes that. Until then it fills as for the first time, at any pace.
      const noted = () => store.db.rows(sql`select from pools where id = ${id} and filled_once`);
      await expect.poll(noted).toHaveLength(1);
      return id;
    },
    until: (id: string, state: object) =>
      vi.waitFor(async () => expect(await pools.get(projectId, id)).toMatchObject(state), { timeout: 60_000 }),
    acquire: (id: string, request: object = {}, hungUp = neverAborted) =>
      pools.acquire(
        projectId,
        'key_test',
        id,
        { acquire_timeout_seconds: 20, ...request },
        hungUp,
      ) as Promise<Acquired>,
    release: (id: string, { session }: Acquired, reuse = true) =>
      pools.release(projectId, id, session.session_id, reuse),
  };
  open.push(pools);
  return made;
}

describe('a waiter', () => {
  test('a client that gets an unresponsive browser keeps its place in the queue, and no client gets that browser', async () => {
    const a = node('a');
    const id = await a.pool(1);
    const held = await a.acquire(id);
    const order: string[] = [];
    const waiters = ['first', 'second'].map(async (name, index) => {
      await a.until(id, { waiting_count: index });
      const acquired = await a.acquire(id, { name });
      order.push(name);
      await a.release(id, acquired);
      return acquired.session.session_id;
    });
    await a.until(id, { waiting_count: 2 });
    let unfit: string | undefined;
    a.faults.lend = async (session) => {
      if (unfit !== undefined) return;
      unfit = session;
      throw new Error('no answer');
    };
    let inQueue: number | undefined;
    a.faults.making = async () => {
      if (unfit !== undefined) inQueue ??= (await a.pools.get(projectId, id)).waiting_count;
    };
    await a.release(id, held);
    expect(await Promise.all(waiters)).not.toContain(unfit);
    expect(inQueue, 'the first is in the queue again before another browser is made').toBe(2);
    expect(order).toEqual(['first', 'second']);
    expect(a.ended).toContain(unfit);
    await a.until(id, { available_count: 1, acquired_count: 0, waiting_count: 0 });
  });

  test.each([
    ['that no client has touched: it is lent to the next', false],
    ['that has opened a page: the next gets another', true],
  ])('a client that disconnects while it is handed a browser %s', async (_, used) => {
    const a = node('a');
    a.faults.returned = used ? 'used' : 'unused';
    const id = await a.pool(1);
    const hangUp = new AbortController();
    let given: string | undefined;
    a.faults.lend = async (session) => {
      a.faults.lend = undefined;
      given = session;
      hangUp.abort(new Error('hung up'));
    };
    await expect(a.acquire(id, {}, hangUp.signal)).rejects.toThrow('hung up');
    const next = await a.acquire(id);
    expect(next.session.session_id === given).toBe(!used);
    await a.until(id, { available_count: 0, acquired_count: 1 });
  });

  test('a client that disconnects leaves the queue immediately', async () => {
    const a = node('a');
    const id = await a.pool(1);
    await a.acquire(id);
    const hangUp = new AbortController();
    const waiter = a.acquire(id, {}, hangUp.signal);
    await a.until(id, { waiting_count: 1 });
    hangUp.abort(new Error('hung up'));
    await expect(waiter).rejects.toThrow('hung up');
    expect(await a.pools.get(projectId, id)).toMatchObject({ waiting_count: 0 });
  });

  test('is refused when the pool is deleted, here and at the other node', async () => {
    const [a, b] = [node('a'), node('b')];
    const id = await a.pool(1);
    await a.acquire(id);
    const refused = Promise.all(
      [a, b].map((at) => expect(at.acquire(id)).rejects.toMatchObject({ code: 'pool_deleted' })),
    );
    await a.until(id, { waiting_count: 2 });
    await a.pools.remove(projectId, id, true);
    b.pools.hear(JSON.stringify({ deleted: id }));
    await refused;
    expect(await store.db.rows(sql`select place from pool_waiters`)).toEqual([]);
  });

  test('is answered when the service stops: nothing came free, ask again', async () => {
    const a = node('a');
    const id = await a.pool(1);
    await a.acquire(id);
    const waiter = a.acquire(id);
    await a.until(id, { waiting_count: 1 });
    await a.pools.close();
    expect(await waiter).toEqual({ ahead: 0 });
    expect(await a.acquire(id)).toEqual({ ahead: 0 });
  });

  test('gets the place in the queue back when its node, which was taken for lost, is back', async () => {
    const a = node('a');
    const id = await a.pool(1);
    const held = await a.acquire(id);
    const waiter = a.acquire(id);
    await a.until(id, { waiting_count: 1 });
    (await node('b').pools.nodeLost('a', store.db))();
    await a.until(id, { waiting_count: 0 });
    await a.pools.catchUp();
    await a.until(id, { waiting_count: 1 });
    await a.release(id, held);
    expect(await waiter).toHaveProperty('session');
  });

  test('a client that missed the notification of its browser gets the browser after the gap', async () => {
    const [a, b] = [node('a'), node('b')];
    const id = await a.pool(1);
    const held = await a.acquire(id);
    const waiter = a.acquire(id);
    await a.until(id, { waiting_count: 1 });
    await b.release(id, held); // it serves the queue, and its notification reaches no node
    await b.until(id, { waiting_count: 0 });
    await a.pools.catchUp();
    expect(await waiter).toHaveProperty('session');
  });
});

test('a client that joins the queue while its node looks for leftovers is not taken for one', async () => {
  let joined!: () => void;
  const late = new Promise<void>((resolve) => (joined = resolve));
  let looks = 0;
  const rows: Db['rows'] = async (query) => {
    if (!/ pool_waiters where node_id/.test(query.text)) return store.db.rows(query);
    looks++;
    await late; // as when all connections to the database are busy
    return store.db.rows(query);
  };
  const a = node('a', { db: { ...store.db, rows } });
  const id = await a.pool(1);
  const held = await a.acquire(id);
  const looked = a.pools.start();
  await expect.poll(() => looks).toBe(1);
  const waiter = a.acquire(id);
  await a.until(id, { waiting_count: 1 });
  joined();
  await looked;
  expect(await a.pools.get(projectId, id)).toMatchObject({ waiting_count: 1 });
  await a.release(id, held);
  expect(await waiter).toHaveProperty('session');
});

test('a client that found its browser locked by another change gets it afterwards', async () => {
  let looks = 0;
  const row: Db['row'] = async <R>(query: Sql) => {
    const found = await store.db.row<R>(query);
    if (/given as/.test(query.text)) looks++;
    return found;
  };
  const a = node('a', { db: { ...store.db, row } });
  const id = await a.pool(1);
  looks = 0;
  const { waiter } = await store.db.transaction(async (tx) => {
    await tx.rows(sql`select from sessions where pool_id = ${id} for no key update`);
    const waiter = a.acquire(id);
    await expect.poll(() => looks).toBeGreaterThan(0);
    return { waiter };
  });
  expect(await waiter).toHaveProperty('session');
});

describe('a node that was taken for lost', () => {
  test('cannot end the lease of the client that has the browser since', async () => {
    const [a, b] = [node('a'), node('b')];
    const id = await a.pool(1);
    const lease = poolStore(store.db);
    const stale = await lease.leaseNow(id, 'lease_stale', 'a');
    (await b.pools.nodeLost('a', store.db))();
    const other = await b.acquire(id);
    expect(other.session.session_id, 'the browser that was to be handed over is idle again').toBe(stale!.id);
    expect(await lease.endLease(stale!.id, 'lease_stale')).toBeUndefined();
    expect(await lease.shelve(stale!.id, 'lease_stale')).toBeUndefined();
    const late = { id: 'lease_stale', name: null, tags: {}, timeoutSeconds: 60, startUrl: null, telemetry: [] };
    expect(await lease.describeLease(stale!.id, late)).toBeUndefined();
    expect(await lease.leaseOn(id, stale!.id)).toBeDefined();
  });
});

describe('filling', () => {
  test('passes over a node that refuses, and does not ask it again for a while', async () => {
    const turn = ['other', 'a'];
    const a = node('a', { place: () => turn.shift() ?? 'a' });
    const id = await a.pool(2);
    await a.until(id, { available_count: 2 });
    expect(a.asked).toEqual(['other']);
  });

  test('that fails is shown, backs off, and forgets it when one succeeds', async () => {
    const a = node('a');
    a.faults.make = new Error('no browser today');
    const id = await a.pool(1);
    await a.until(id, { last_error: { message: 'no browser today' }, available_count: 0 });
    a.faults.make = undefined;
    await a.until(id, { available_count: 1 });
    expect(await a.pools.get(projectId, id)).not.toHaveProperty('last_error');
  });

  test('replaces a browser at once whose replacement did not start', async () => {
    const a = node('a');
    const id = await a.pool(1, { fill_rate_per_minute: 0 });
    const held = await a.acquire(id);
    a.faults.launch = new Error('no browser today');
    await a.release(id, held);
    await a.until(id, { last_error: { message: 'no browser today' } });
    a.faults.launch = undefined;
    await a.until(id, { available_count: 1 });
    expect(a.ended).toEqual([held.session.session_id]);
  });

  test('after the first time is paced, except for browsers that clients wait for', async () => {
    const a = node('a');
    const id = await a.pool(3, { fill_rate_per_minute: 0 });
    await a.pools.flush(projectId, id);
    expect(await a.pools.get(projectId, id)).toMatchObject({ available_count: 0, warming_count: 0 });
    expect(await a.acquire(id)).toHaveProperty('session');
    expect(await a.pools.get(projectId, id)).toMatchObject({ available_count: 0, acquired_count: 1 });
  });

  test('replaces browsers immediately after a release, discard_all_idle or the loss of a node', async () => {
    const a = node('a');
    const id = await a.pool(2, { fill_rate_per_minute: 0 });
    await a.release(id, await a.acquire(id));
    await a.until(id, { available_count: 2 });
    await a.pools.update(projectId, id, { discard_all_idle: true });
    await a.until(id, { available_count: 2 });
    expect(a.ended).toHaveLength(3);
    await store.db.rows(
      sql`update sessions set state = 'failed', deleted_at = now() where pool_id = ${id} and deleted_at is null`,
    );
    a.events.publish('node.left', { nodeId: 'z' });
    await a.until(id, { available_count: 2 });
  });

  test('stops with the project', async () => {
    const a = node('a');
    const id = await a.pool(1);
    await store.db.rows(sql`update projects set status = 'archived' where id = ${projectId}`);
    try {
      await a.pools.update(projectId, id, { discard_all_idle: true });
      expect(await a.pools.makeHere(id)).toBe('pool_full');
      expect(await a.pools.get(projectId, id)).toMatchObject({ available_count: 0, warming_count: 0 });
    } finally {
      await store.db.rows(sql`update projects set status = 'active' where id = ${projectId}`);
    }
    expect(await a.acquire(id)).toHaveProperty('session');
  });

  test('retires idle browsers of a pool that became smaller, then those that are released', async () => {
    const a = node('a');
    const id = await a.pool(3);
    const held = [await a.acquire(id), await a.acquire(id)];
    await a.pools.update(projectId, id, { size: 1 });
    await a.until(id, { available_count: 0, acquired_count: 2 });
    for (const acquired of held) await a.release(id, acquired);
    await a.until(id, { available_count: 1, acquired_count: 0 });
    expect(a.ended).toHaveLength(3);
  });
});

test('leftovers are found: a stray, a browser that is neither idle nor leased, a lease that no node hands over or ends', async () => {
  const a = node('a');
  const id = await a.pool(5, { fill_rate_per_minute: 0 });
  const leased = async () =>
    store.db.rows<{ id: string }>(sql`select id from sessions where pool_id = ${id} and lease_id is not null`);
  await a.acquire(id);
  const [takenBack] = (await leased()).map((row) => row.id);
  a.lent.delete(takenBack!); // by a node that was killed before it wrote that
  await a.acquire(id); // its holder has it still
  const rows = await store.db.rows<{ id: string }>(
    sql`select id from sessions where pool_id = ${id} and deleted_at is null and lease_id is null`,
  );
  const [stray, unshelved] = rows.map((row) => row.id);
  await store.db.rows(sql`update sessions set deleted_at = now() where id = ${stray}`);
  await store.db.rows(sql`update sessions set idle_since = null where id = ${unshelved}`);
  await poolStore(store.db).leaseNow(id, 'lease_forgotten', 'a');
  await a.pools.start();
  await a.pools.start(); // a browser that is seen twice is not being started
  await a.until(id, { available_count: 4, acquired_count: 1, warming_count: 0 });
  expect(new Set(a.ended)).toEqual(new Set([stray, takenBack]));
});

test('a lease has the requested start_url, or that of the pool, and does not keep it for the next lease', async () => {
  const a = node('a');
  a.faults.returned = 'unused'; // the same browser goes back on the shelf
  const id = await a.pool(1, { start_url: 'https://pool.example' });
  const startUrl = async () =>
    (await store.db.row<{ start_url: string | null }>(sql`select start_url from sessions where pool_id = ${id}`))
      ?.start_url;
  for (const [request, expected] of [
    [{ start_url: 'https://lease.example' }, 'https://lease.example'],
    [{}, 'https://pool.example'],
    [{ start_url: '' }, null],
  ] as const) {
    const held = await a.acquire(id, request);
    expect(await startUrl()).toBe(expected);
    await a.release(id, held);
    expect(await startUrl()).toBeNull();
  }
});

test('a browser that its node has not taken back is replaced, also in a pool that keeps its browsers', async () => {
  const a = node('a');
  const id = await a.pool(1, { reset_on_release: false, fill_rate_per_minute: 0 });
  const { session } = await a.acquire(id);
  a.faults.returned = 'unknown';
  await a.pools.release(projectId, id, session.session_id, true);
  await a.until(id, { available_count: 1 });
  expect(a.ended).toEqual([session.session_id]);
});

test('a pool is deleted with its leases by force only', async () => {
  const a = node('a');
  const id = await a.pool(1);
  await a.acquire(id);
  await expect(a.pools.remove(projectId, id, false)).rejects.toMatchObject({ code: 'pool_in_use' });
  await a.pools.remove(projectId, id, true);
  expect(a.ended).toHaveLength(1);
});

test('what pools do is counted: browsers made, how leases came and ended, and polls that ended without one', async () => {
  const a = node('a');
  const counts = async () =>
    (await a.registry.metrics()).split('\n').filter((line) => /^corral_pool_\w+_(total|count)\b/.test(line));
  const id = await a.pool(1);
  a.faults.returned = 'unused';
  await a.release(id, await a.acquire(id));
  a.faults.returned = 'used';
  await a.release(id, await a.acquire(id));
  await a.until(id, { available_count: 1 });
  const held = await a.acquire(id);
  expect(await a.acquire(id, { acquire_timeout_seconds: 0 })).toEqual({ ahead: 0 });
  expect(await counts()).toContain('corral_pool_launches_total{outcome="launched"} 2');
  await a.release(id, held, false); // which may already bring a third
  expect((await counts()).filter((line) => !line.includes('launches')).sort()).toEqual([
    'corral_pool_acquire_seconds_count{outcome="leased"} 3',
    'corral_pool_acquire_seconds_count{outcome="timed_out"} 1',
    'corral_pool_releases_total{how="destroyed"} 1',
    'corral_pool_releases_total{how="renewed"} 1',
    'corral_pool_releases_total{how="unused"} 1',
    'corral_pool_wait_seconds_count 4',
  ]);
});
