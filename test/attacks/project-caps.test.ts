import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { requireSandbox } from '../support/sandbox.ts';
import { startNodes, type Node, type Nodes } from '../support/nodes.ts';

await requireSandbox();

/** A tenant whose project is capped tries to get more browsers than that, by pools and by asking two nodes at once. */
describe('a project with a cap', () => {
  let nodes: Nodes;
  let a: Node;
  let b: Node;
  let project: string;
  let number = 0;
  const head = () => ({ 'x-kernel-project-id': project });

  beforeAll(async () => {
    nodes = await startNodes();
    const settings = { CORRAL_MAX_SESSIONS: '8' };
    [a, b] = [await nodes.start(settings), await nodes.start(settings)];
    // The number of browsers of a project after each new browser.
    await nodes.ask(sql`create table seen (project_id text, browsers integer)`);
    await nodes.ask(sql`create function see() returns trigger language plpgsql as $$ begin
      insert into seen select new.project_id, count(*) from sessions where project_id = new.project_id and deleted_at is null;
      return null; end $$`);
    await nodes.ask(sql`create trigger see after insert on sessions for each row execute function see()`);
  });
  afterAll(() => nodes?.close());

  afterEach(async () => {
    for (const { id } of (await a.call('GET', '/browser_pools', undefined, head())).body)
      await a.call('DELETE', `/browser_pools/${id}`, { force: true }, head());
    for (const { session_id } of (await a.call('GET', '/browsers', undefined, head())).body)
      await a.call('DELETE', `/browsers/${session_id}`, undefined, head());
  });

  async function cappedAt(cap: number): Promise<void> {
    project = (await a.call('POST', '/org/projects', { name: `capped ${++number}` })).body.id;
    await limit(cap);
  }
  const limit = (cap: number) =>
    a.call('PATCH', `/org/projects/${project}/limits`, { max_concurrent_sessions: cap }).then(({ status }) => {
      expect(status).toBe(200);
    });
  const pool = (node: Node, size: number, more: object = {}) =>
    node.call('POST', '/browser_pools', { size, headless: true, ...more }, head());
  const browser = (node: Node) => node.call('POST', '/browsers', { headless: true, timeout_seconds: 600 }, head());
  const look = async (id: string) => (await a.call('GET', `/browser_pools/${id}`, undefined, head())).body;
  const filled = async (id: string, available: number) => {
    await expect.poll(() => look(id), { timeout: 60_000, interval: 100 }).toMatchObject({ available_count: available });
  };
  const count = async () => {
    const rows = await nodes.ask<{ count: number }>(
      sql`select count(*)::integer as count from sessions where project_id = ${project} and deleted_at is null`,
    );
    return rows[0]!.count;
  };
  const mostEver = async () => {
    const rows = await nodes.ask<{ most: number }>(
      sql`select coalesce(max(browsers), 0) as most from seen where project_id = ${project}`,
    );
    return rows[0]!.most;
  };

  test('gets no pool that is larger, by creating it, by enlarging one, or by several', async () => {
    await cappedAt(2);
    const three = await pool(a, 3);
    expect(three).toMatchObject({ status: 429, body: { code: 'project_limit_reached' } });
    expect(three.body.message).toBe(
      'A pool of 3 does not fit: the project may run 2 browsers at once (max_concurrent_sessions), and its sessions and other pools take 0.',
    );
    const one = await pool(a, 1);
    expect(one.status).toBe(201);
    const larger = await b.call('PATCH', `/browser_pools/${one.body.id}`, { size: 3 }, head());
    expect(larger).toMatchObject({ status: 429, body: { code: 'project_limit_reached' } });
    expect((await pool(b, 2)).status).toBe(429);
    await filled(one.body.id, 1);
    expect(await mostEver()).toBe(1);
    expect((await b.call('PATCH', `/browser_pools/${one.body.id}`, { size: 2 }, head())).status).toBe(200);
    await filled(one.body.id, 2);
  });

  test('has its pools counted when a browser is created, from before they are filled', async () => {
    await cappedAt(3);
    const { body } = await pool(a, 2, { fill_rate_per_minute: 0 });
    const answers = await Promise.all([browser(a), browser(b), browser(a), browser(b)]);
    expect(answers.map(({ status }) => status).sort((x, y) => x - y)).toEqual([200, 429, 429, 429]);
    const refused = answers.find(({ status }) => status === 429)!;
    expect(refused.body.code).toBe('session_limit_reached');
    await filled(body.id, 2);
    expect((await browser(b)).body.message).toMatch(/has 3 active sessions, and may have 3/);
    expect(await mostEver()).toBe(3);
  });

  test('gets no more when it asks both nodes for pools and browsers at the same moment', async () => {
    await cappedAt(3);
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) => [pool(i % 2 ? a : b, 1), browser(i % 2 ? b : a)]).flat(),
    );
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(9);
    expect(answers.filter(({ status }) => status === 200 || status === 201)).toHaveLength(3);
    await expect.poll(count, { timeout: 60_000, interval: 100 }).toBe(3);
    expect(await mostEver()).toBe(3);
  });

  test('keeps its running sessions when the cap is lowered, and gets no new ones until there is room', async () => {
    await cappedAt(4);
    const quick = { fill_rate_per_minute: 6000 };
    const [first, second] = [await pool(a, 2, quick), await pool(b, 2, quick)].map(({ body }) => body.id as string) as [
      string,
      string,
    ];
    await Promise.all([filled(first, 2), filled(second, 2)]);
    await limit(2);
    expect(await count()).toBe(4);
    await nodes.ask(sql`delete from seen`);

    // Every browser is thrown away at the same moment, and both nodes fill.
    await Promise.all([
      a.call('POST', `/browser_pools/${first}/flush`, {}, head()),
      b.call('POST', `/browser_pools/${second}/flush`, {}, head()),
    ]);
    const total = async () => {
      const [x, y] = await Promise.all([look(first), look(second)]);
      const waits = [x, y].map(({ last_error }) => last_error?.message).find((message) => message !== undefined);
      return { available: x.available_count + y.available_count, waits };
    };
    await expect.poll(total, { timeout: 60_000, interval: 100 }).toEqual({
      available: 2,
      waits: expect.stringMatching(/The project has 2 active sessions, and may have 2/),
    });
    expect(await mostEver()).toBe(2);

    // Waiting clients get idle browsers, and new ones when there is room.
    const acquire = (id: string) =>
      a.call('POST', `/browser_pools/${id}/acquire`, { acquire_timeout_seconds: 50 }, head());
    const four = [acquire(first), acquire(first), acquire(second), acquire(second)];
    await expect.poll(async () => (await look(first)).waiting_count + (await look(second)).waiting_count).toBe(2);
    await limit(4);
    expect((await Promise.all(four)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    await expect.poll(async () => (await total()).waits, { timeout: 60_000 }).toBeUndefined();
    expect(await mostEver()).toBe(4);
  });
});
