import Kernel from '@onkernel/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { deploy, plainApp } from '../support/apps.ts';
import { traces } from '../support/leftovers.ts';
import { startNodes, type Node, type Nodes } from '../support/nodes.ts';
import { startRegistry } from '../support/npm-registry.ts';

let registry: Awaited<ReturnType<typeof startRegistry>>;
let nodes: Nodes;
let node: Node;
let other: Node;
beforeAll(async () => {
  registry = await startRegistry(['@onkernel/sdk']);
  nodes = await startNodes();
  node = await start();
  const { deployment } = await deploy(client(node), await plainApp(), 'index.js');
  if (deployment.status !== 'running') throw new Error(deployment.status_reason);
}, 300_000);
afterAll(async () => {
  await nodes?.close();
  await registry?.close();
});

const start = (env: Record<string, string> = {}) =>
  nodes.start({ CORRAL_NPM_REGISTRY: registry.url, CORRAL_MAX_INVOCATIONS: '5', ...env });
const client = (at: Node) => new Kernel({ apiKey: nodes.key, baseURL: at.url, timeout: 110_000, maxRetries: 0 });

/** Five invocations that run and twenty that wait behind them. */
async function fill(at: Node) {
  const invoke = async (action_name: string, payload: object) => {
    const request = {
      app_name: 'plain',
      action_name,
      version: 'latest',
      payload: JSON.stringify(payload),
      async: true,
    };
    return (await client(at).invocations.create(request)).id;
  };
  const running = await Promise.all(Array.from({ length: 5 }, () => invoke('waits', { ms: 3_600_000 })));
  await expect.poll(() => states(running), { timeout: 60_000 }).toEqual({ running: 5 });
  const queued = await Promise.all(Array.from({ length: 20 }, (_, n) => invoke('echo', { n })));
  expect(await states(queued)).toEqual({ queued: 20 });
  return { running, queued };
}

async function states(ids: string[]): Promise<Record<string, number>> {
  const rows = await nodes.ask<{ status: string; count: number }>(
    sql`select status, count(*)::integer as count from invocations where id = any(${ids}::text[]) group by 1`,
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

test('after kill -9 and a new start, running invocations have failed and queued ones run', async () => {
  const { running, queued } = await fill(node);
  await node.kill('SIGKILL');
  node = await start({ CORRAL_DATA_DIR: node.dataDir });
  await expect.poll(() => states(running), { timeout: 60_000 }).toEqual({ failed: 5 });
  await expect.poll(() => states(queued), { timeout: 120_000 }).toEqual({ succeeded: 20 });
  const { status_reason } = await client(node).invocations.retrieve(running[0]!);
  expect(status_reason).toContain('The service ended while it ran');
}, 300_000);

test('the death of a node moves its queue to the other, and fails its running invocations', async () => {
  const { running, queued } = await fill(node);
  other = await start();
  await node.kill('SIGKILL');
  await expect.poll(() => states(queued), { timeout: 120_000 }).toEqual({ succeeded: 20 });
  await expect.poll(() => states(running), { timeout: 120_000 }).toEqual({ failed: 5 });
  const left = traces(node.dataDir, 'workshop/cells');
  await expect.poll(() => left.processes()).toEqual([]);
}, 300_000);

test('workers that were warm before a node joined reach it', async () => {
  const late = await start();
  const payload = JSON.stringify({ url: `${late.url}/health` });
  const request = { app_name: 'plain', action_name: 'fetches', version: 'latest', payload };
  const known = async () => (await other.members()).map(({ public_url }) => public_url);
  await expect.poll(known, { timeout: 60_000 }).toContain(late.url);
  for (const done of await Promise.all(Array.from({ length: 5 }, () => client(other).invocations.create(request))))
    expect(done, done.status_reason).toMatchObject({ status: 'succeeded', output: expect.stringContaining('200') });
  for await (const { id } of client(other).deployments.list()) await client(other).deployments.delete(id);
}, 300_000);
