import { randomUUID } from 'node:crypto';
import { Steel } from 'steel-sdk';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { RawClient } from '../support/mux-server.ts';
import { startNodes, type Node, type Nodes } from '../support/nodes.ts';

let nodes: Nodes;
/** It has so little room beside the other that each new session is made there. */
let small: Node;
let large: Node;
beforeAll(async () => {
  nodes = await startNodes();
  [small, large] = await Promise.all([
    nodes.start({ CORRAL_MAX_SESSIONS: '1' }),
    nodes.start({ CORRAL_MAX_SESSIONS: '8' }),
  ]);
  await knowEachOther();
});
afterAll(() => nodes?.close());

async function knowEachOther() {
  for (const node of [small, large])
    await vi.waitFor(async () => expect(await node.members()).toHaveLength(2), { timeout: 60_000, interval: 100 });
}

const at = (query: string) => `${small.url.replace('http', 'ws')}/${query}`;
const active = () =>
  nodes.ask<{ node_id: string; name: string | null }>(sql`select node_id, name from sessions where deleted_at is null`);
const product = async (client: RawClient) => (await client.result<{ product: string }>('Browser.getVersion')).product;

test('/connect at one node creates a session on another, and connects to an existing session', async () => {
  const made = await RawClient.open(at(`connect?key=${nodes.key}&headless=true&name=far`));
  expect(await active()).toEqual([{ node_id: await large.id(), name: 'far' }]);
  const second = await RawClient.open(at(`connect?key=${nodes.key}&session=far`));
  expect(await product(second)).toBe(await product(made));
  await second.close();
  expect(await active()).toHaveLength(1);
  await made.close();
  await expect.poll(active).toEqual([]);
});

test('a client of Steel at one node uses sessions of another', async () => {
  const steel = new Steel({ steelAPIKey: nodes.key, baseURL: small.url, timeout: 110_000, maxRetries: 0 });
  const session = await steel.sessions.create({
    headless: true,
    sessionContext: { cookies: [{ name: 'a', value: '1', domain: 'example.com' }] },
  });
  expect(await active()).toEqual([{ node_id: await large.id(), name: null }]);
  expect(await steel.sessions.retrieve(session.id)).toMatchObject({ id: session.id, status: 'live' });
  expect((await steel.sessions.context(session.id)).cookies).toMatchObject([{ name: 'a', value: '1' }]);
  const client = await RawClient.open(at(`?apiKey=${nodes.key}&sessionId=${session.id}`));
  expect(await product(client)).toContain('Chrome');
  await client.close();
  await steel.sessions.release(session.id);
  expect(await steel.sessions.retrieve(session.id)).toMatchObject({ status: 'released' });

  const name = randomUUID();
  const unmade = await RawClient.open(at(`?apiKey=${nodes.key}&sessionId=${name}`));
  expect(await active()).toEqual([{ node_id: await large.id(), name }]);
  expect(await product(unmade)).toContain('Chrome');
  expect(await steel.sessions.releaseAll()).toMatchObject({ success: true });
  await unmade.closed;
  expect(await active()).toEqual([]);
});
