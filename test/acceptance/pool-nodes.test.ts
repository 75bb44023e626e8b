import Kernel from '@onkernel/sdk';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { startNodes, type Node, type Nodes } from '../support/nodes.ts';

let nodes: Nodes;
let a: Node;
let b: Node;
beforeAll(async () => {
  nodes = await startNodes();
  [a, b] = await Promise.all([nodes.start(), nodes.start()]);
});
afterAll(() => nodes?.close());

const client = (node: Node) => new Kernel({ apiKey: nodes.key, baseURL: node.url });

/** Fills a pool by asking one node: its browsers are there. */
async function poolOn(node: Node, size: number) {
  const pool = await client(node).browserPools.create({ size, headless: true });
  await expect
    .poll(async () => (await client(node).browserPools.retrieve(pool.id)).available_count, { timeout: 30_000 })
    .toBe(size);
  return pool.id;
}

describe('two nodes', () => {
  test('lend each other’s browsers, and a client does not notice', async () => {
    const id = await poolOn(a, 1);
    const leased = await client(b).browserPools.acquire(id, { name: 'from-b' });
    expect(leased).toMatchObject({ name: 'from-b', pool: { id } });
    const browser = await chromium.connectOverCDP(leased.cdp_ws_url.replace(new URL(a.url).host, new URL(b.url).host));
    expect(await browser.contexts()[0]!.pages()[0]!.evaluate('1 + 1')).toBe(2);
    const waiting = client(a).browserPools.acquire(id, {});
    await client(b).browserPools.release(id, { session_id: leased.session_id });
    expect((await waiting).session_id).not.toBe(leased.session_id);
    await client(b).browserPools.delete(id, { force: true });
  });

  test('never lend a browser twice, whoever hangs up', async () => {
    const id = await poolOn(a, 3);
    const held = new Map<string, number>();
    let served = 0;
    await Promise.all(
      Array.from({ length: 40 }, async (_, number) => {
        const node = number % 2 === 0 ? a : b;
        const hangUp = new AbortController();
        if (number % 3 === 0) setTimeout(() => hangUp.abort(), 50 + number * 20);
        const session = await client(node)
          .browserPools.acquire(id, { acquire_timeout_seconds: 50 }, { signal: hangUp.signal, maxRetries: 0 })
          .catch(() => undefined);
        if (!session) return;
        expect(held.has(session.session_id)).toBe(false);
        held.set(session.session_id, number);
        await new Promise((resolve) => setTimeout(resolve, 20));
        held.delete(session.session_id);
        served++;
        await client(number % 4 < 2 ? a : b).browserPools.release(id, { session_id: session.session_id });
      }),
    );
    expect(served).toBeGreaterThanOrEqual(26);
    await expect
      .poll(async () => client(b).browserPools.retrieve(id), { timeout: 20_000 })
      .toMatchObject({ available_count: 3, acquired_count: 0, waiting_count: 0, warming_count: 0 });
    expect(await nodes.ask(sql`select place from corral.pool_waiters`)).toEqual([]);
    await client(a).browserPools.delete(id, { force: true });
  });
});
