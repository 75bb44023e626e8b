import Kernel from '@onkernel/sdk';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { logLeases } from '../support/lease-log.ts';
import { RawClient } from '../support/mux-server.ts';
import { startNodes, type Node, type Nodes } from '../support/nodes.ts';
import { seededRandom } from '../support/random.ts';

let nodes: Nodes;
let faults: () => Promise<string[]>;
let a: Node;
let b: Node;
beforeAll(async () => {
  nodes = await startNodes();
  a = await nodes.start({ CORRAL_MAX_SESSIONS: '8' });
  b = await nodes.start({ CORRAL_MAX_SESSIONS: '8' });
  faults = await logLeases(nodes.ask);
  await know(2, a, b);
});
afterAll(() => nodes?.close());
afterEach(async () => {
  for await (const { id } of client(a).browserPools.list()) await client(a).browserPools.delete(id, { force: true });
});

/** Nodes share a pool out among those that they know, and know each other by their next heartbeat. */
async function know(count: number, ...all: Node[]): Promise<void> {
  const known = async () => (await Promise.all(all.map((node) => node.members()))).map(({ length }) => length);
  await vi.waitFor(async () => expect(await known()).toEqual(all.map(() => count)), { timeout: 60_000, interval: 100 });
}

/** As users write it: 204 means that the poll is over, and one asks again. */
const client = (node: Node) => new Kernel({ apiKey: nodes.key, baseURL: node.url, maxRetries: 0, timeout: 120_000 });

interface PoolState {
  available_count: number;
  acquired_count: number;
  waiting_count: number;
  warming_count: number;
}
const whole = (size: number): PoolState => ({
  available_count: size,
  acquired_count: 0,
  waiting_count: 0,
  warming_count: 0,
});

/** A pool that is full. Kept ones lend the same browsers over and over, so that a lease that is not over would show. */
async function pool(node: Node, size: number, config: object = {}): Promise<string> {
  const { id } = await client(node).browserPools.create({ size, headless: true, ...config });
  await expect
    .poll(() => client(node).browserPools.retrieve(id), { timeout: 60_000, interval: 100 })
    .toMatchObject(whole(size));
  return id;
}

/**
 * A pool with browsers on each of these nodes. A node that refused a browser, or took long to answer, is not asked for 15 s; then the pool has
 * none there, and is created again.
 */
async function poolOn(among: Node[], size: number, config: object = {}): Promise<string> {
  const ids = await Promise.all(among.map((node) => node.id()));
  for (const until = Date.now() + 90_000; ;) {
    const id = await pool(a, size, config);
    const at = new Set((await browsersOf(id)).map(({ node_id }) => node_id));
    if (ids.every((node) => at.has(node))) return id;
    expect(Date.now(), `a pool on all nodes, not only on ${[...at].join(' and ')}`).toBeLessThan(until);
    await client(a).browserPools.delete(id, { force: true });
  }
}

async function acquire(node: Node, id: string, signal?: AbortSignal): Promise<Kernel.BrowserPoolAcquireResponse> {
  for (;;) {
    const session = await client(node).browserPools.acquire(id, { acquire_timeout_seconds: 50 }, { signal });
    if (session) return session;
  }
}

const browsersOf = (id: string) =>
  nodes.ask<{ id: string; node_id: string }>(
    sql`select id, node_id from sessions where pool_id = ${id} and deleted_at is null order by id`,
  );

describe('two nodes', () => {
  test('share a pool’s browsers out, lend each other’s, and a client does not notice', async () => {
    const id = await poolOn([a, b], 4);
    const [idOfA, idOfB] = [await a.id(), await b.id()];
    const leases = await Promise.all(
      Array.from({ length: 4 }, () => client(b).browserPools.acquire(id, { start_url: 'about:blank#here' })),
    );
    const owners = new Map((await browsersOf(id)).map((row) => [row.id, row.node_id]));
    expect(new Set(owners.values())).toEqual(new Set([idOfA, idOfB]));
    const away = leases.find(({ session_id }) => owners.get(session_id) === idOfA)!;
    const browser = await chromium.connectOverCDP(b.here(away.cdp_ws_url));
    const page = browser.contexts()[0]!.pages()[0]!;
    await expect.poll(() => page.url()).toBe('about:blank#here');
    expect(await page.evaluate('1 + 1')).toBe(2);

    const waiting = client(a).browserPools.acquire(id, { name: 'next' });
    await client(b).browserPools.release(id, { session_id: away.session_id });
    expect(await waiting).toMatchObject({ name: 'next', pool: { id } });
    expect((await waiting).session_id).not.toBe(away.session_id);
  });

  test('a node without room is helped by the other, and a name that is taken there is refused here', async () => {
    const full = await Promise.all(
      Array.from({ length: 7 }, () => client(a).browsers.create({ headless: true, timeout_seconds: 600 })),
    );
    const id = await pool(b, 3);
    const held = await client(a).browserPools.acquire(id, { name: 'taken' });
    await expect(client(a).browserPools.acquire(id, { name: 'TAKEN' })).rejects.toThrow(Kernel.ConflictError);
    expect(await client(b).browserPools.retrieve(id)).toMatchObject({ available_count: 2, acquired_count: 1 });
    await client(a).browserPools.release(id, { session_id: held.session_id });
    await Promise.all(full.map(({ session_id }) => client(a).browsers.deleteByID(session_id)));
  });

  test('never lend a browser twice: 60 clients, 8 browsers, and a third of them hangs up', async () => {
    const id = await pool(a, 8, { reset_on_release: false, timeout_seconds: 20, fill_rate_per_minute: 6000 });
    const before = await browsersOf(id);
    const random = seededRandom(4);
    const held = new Set<string>();
    let served = 0;
    const late: string[] = [];
    await Promise.all(
      Array.from({ length: 60 }, async (_, number) => {
        await sleep(random(500));
        const hangsUp = number % 3 === 0;
        const signal = hangsUp ? AbortSignal.timeout(random(1500)) : undefined;
        const session = await acquire(number % 2 === 0 ? a : b, id, signal).catch((error: Error) => {
          if (!hangsUp) throw error;
          return undefined;
        });
        if (!session) return;
        expect(held.has(session.session_id), 'one holder').toBe(false);
        held.add(session.session_id);
        await sleep(random(40));
        held.delete(session.session_id);
        served++;
        const { session_id } = session;
        await client(number % 4 < 2 ? a : b)
          .browserPools.release(id, { session_id })
          .catch((error: Error) => {
            if (!(error instanceof Kernel.NotFoundError)) throw error;
            late.push(session_id); // a busy machine may leave this process without a turn for longer than the lease lasts
          });
      }),
    );
    const reasons = await nodes.ask(sql`select distinct ended_reason from sessions where id = any (${late})`);
    expect(reasons).toEqual(late.length > 0 ? [{ ended_reason: 'idle' }] : []);
    expect(served).toBeGreaterThanOrEqual(40);
    await expect
      .poll(() => client(b).browserPools.retrieve(id), { timeout: 90_000, interval: 200 })
      .toMatchObject(whole(8));
    // A client that hangs up while the response is in transit holds a lease without knowing. No node can detect it, and the lease idles out. A node
    // that waits too long for another one's browser retires it.
    const now = new Set((await browsersOf(id)).map((row) => row.id));
    const missing = before.map((row) => row.id).filter((session) => !now.has(session));
    const ends = await nodes.ask<{ ended_reason: string }>(
      sql`select ended_reason from sessions where id = any (${missing})`,
    );
    expect(ends, 'none was lost').toHaveLength(missing.length);
    expect(ends.filter(({ ended_reason }) => !['idle', 'retired'].includes(ended_reason))).toEqual([]);
    expect(await nodes.ask(sql`select place from pool_waiters`)).toEqual([]);
    expect(await faults()).toEqual([]);
  });

  test('the same when each is used, and a fresh browser takes its place', async () => {
    // The short timeout is for who hangs up while the answer is on the wire, as above.
    const id = await pool(a, 3, { timeout_seconds: 10, fill_rate_per_minute: 6000 });
    const held = new Set<string>();
    await Promise.all(
      Array.from({ length: 12 }, async (_, number) => {
        const signal = number % 3 === 0 ? AbortSignal.timeout(100 + number * 40) : undefined;
        const session = await acquire(number % 2 === 0 ? a : b, id, signal).catch((error: Error) => {
          if (!signal) throw error;
          return undefined;
        });
        if (!session) return;
        expect(held.has(session.session_id), 'never again').toBe(false);
        held.add(session.session_id);
        const cdp = await RawClient.open(session.cdp_ws_url);
        cdp.socket.terminate();
        await client(number % 4 < 2 ? a : b).browserPools.release(id, { session_id: session.session_id });
      }),
    );
    expect(held.size).toBeGreaterThanOrEqual(8);
    await expect
      .poll(() => client(b).browserPools.retrieve(id), { timeout: 90_000, interval: 200 })
      .toMatchObject(whole(3));
    expect(await faults()).toEqual([]);
  });
});

test('three nodes, one killed and one frozen for a while, under load: no double lease, no lost browser, every request is answered', async () => {
  const c = await nodes.start({ CORRAL_MAX_SESSIONS: '8' });
  await know(3, a, b, c);
  const [idOfB, idOfC] = [await b.id(), await c.id()];
  const config = { reset_on_release: false, timeout_seconds: 20, fill_rate_per_minute: 6000 };
  const id = await poolOn([a, b, c], 6, config);

  const held = new Set<string>();
  let stop = false;
  let driven = 0;
  let across = 0;
  const answers = new Map<string, number>();
  /** The response of a node; undefined when the node was killed or is frozen. Node a always responds. */
  const ask = async (node: Node, verb: 'acquire' | 'release', body: object) => {
    const answer = await node.call('POST', `/browser_pools/${id}/${verb}`, body).catch(() => undefined);
    const what = `${node === a ? 'a' : 'b or c'}: ${verb} ${answer?.status}`;
    answers.set(what, (answers.get(what) ?? 0) + 1);
    return answer;
  };
  /** Runs until `stop` is set, also while its node is down. */
  const worker = async (node: Node) => {
    while (!stop) {
      const answer = await ask(node, 'acquire', { acquire_timeout_seconds: 5 });
      if (answer?.status !== 200) {
        await sleep(answer ? 20 : 500);
        continue;
      }
      const { session_id, cdp_ws_url } = answer.body as { session_id: string; cdp_ws_url: string };
      expect(held.has(session_id), `${session_id} has one holder`).toBe(false);
      held.add(session_id);
      try {
        const cdp = await RawClient.open(node.here(cdp_ws_url));
        const cutOff = cdp.closed.then(() => Promise.reject(new Error('cut off before it was answered')));
        await Promise.race([cdp.result('Browser.getVersion'), cutOff]);
        if (node.here(cdp_ws_url) !== cdp_ws_url) across++;
        driven++;
        cdp.socket.terminate();
      } catch {} // it was on the node that went
      held.delete(session_id);
      await ask(node, 'release', { session_id });
    }
  };
  const workers = [a, a, a, a, b, b, b, c, c, c].map(worker);
  await expect.poll(() => driven, { timeout: 60_000 }).toBeGreaterThan(20);
  await b.kill('SIGKILL');
  c.child.kill('SIGSTOP');
  try {
    const isGone = async () =>
      (await nodes.ask(sql`select id from nodes where id = any (${[idOfB, idOfC]})`)).length === 0;
    await expect.poll(isGone, { timeout: 60_000, interval: 500 }).toBe(true);
    const atA = async () => (await browsersOf(id)).filter(({ node_id }) => node_id !== idOfB && node_id !== idOfC);
    await expect.poll(async () => (await atA()).length, { timeout: 60_000, interval: 500 }).toBe(6);
    c.child.kill('SIGCONT');
    const before = driven;
    await expect.poll(() => driven, { timeout: 60_000 }).toBeGreaterThan(before + 20);
  } finally {
    c.child.kill('SIGCONT');
    stop = true;
    await Promise.all(workers);
  }
  expect(across, 'clients drove browsers of other nodes').toBeGreaterThan(0);
  expect(await faults()).toEqual([]);
  // A browser may have ended with its node (404); node a refuses nothing else.
  const ofA = [...answers.keys()].filter((what) => what.startsWith('a:')).sort();
  expect(['a: acquire 200', 'a: acquire 204', 'a: release 204', 'a: release 404']).toEqual(expect.arrayContaining(ofA));
  expect(answers.get('a: acquire 200')).toBeGreaterThan(0);
  // What a node was holding for a client when it went is released by no client: its idle timeout ends it. A release that was cut in the
  // middle is found by a second look at all leases, half a minute later.
  await expect
    .poll(() => client(c).browserPools.retrieve(id), { timeout: 90_000, interval: 500 })
    .toMatchObject(whole(6));
  expect(await nodes.ask(sql`select place from pool_waiters`)).toEqual([]);
  expect(await nodes.ask(sql`select id from sessions where lease_node is not null and deleted_at is null`)).toEqual([]);
}, 300_000);
