import { afterAll, beforeAll, expect, test } from 'vitest';
import { startNodes, type Node, type Nodes } from '../support/nodes.ts';
import { startPages, type Pages } from '../support/pages.ts';

let nodes: Nodes;
let pages: Pages;
let one: Node;
let two: Node;
beforeAll(async () => {
  pages = await startPages();
  nodes = await startNodes();
  const settings = { CORRAL_ALLOW_PRIVATE_HOSTS: pages.host, CORRAL_PORT: '0' };
  [one, two] = await Promise.all([nodes.start(settings), nodes.start(settings)]);
});
afterAll(async () => {
  await nodes?.close();
  await pages?.close();
});

const patience = { timeout: 60_000 };
type Envelope = { seq: number; event: { type: string } };

test('events are followed and read through another node, and those that were read outlive kill -9 of their own', async () => {
  await expect.poll(async () => (await one.members()).length, patience).toBe(2);
  await expect.poll(async () => (await two.members()).length, patience).toBe(2);
  const { body: session } = await one.call('POST', '/browsers', {
    headless: true,
    timeout_seconds: 300,
    telemetry: { browser: { network: { enabled: true } } },
  });
  const [{ node_id: at }] = (await nodes.ask<{ node_id: string }>({
    name: 'where-it-captures',
    text: 'select node_id from sessions where id = $1',
    values: [session.session_id],
  })) as [{ node_id: string }];
  const [home, away] = at === (await one.id()) ? [one, two] : [two, one];
  const path = `/browsers/${session.session_id}`;

  const stream = await fetch(`${away.url}${path}/telemetry/stream?replay=all`, {
    headers: { authorization: `Bearer ${nodes.key}` },
  });
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  await away.call('POST', `${path}/curl`, { url: pages.url });
  let live = '';
  while (!live.includes('"operation_id":"browserCurl"')) live += (await reader.read()).value ?? '';
  expect(live).toMatch(/^id: 1\ndata: \{"seq":1,/);

  const read = async (from: Node): Promise<Envelope[]> => {
    const { status, body } = await from.call('GET', `${path}/telemetry/events?since=1h&limit=100`);
    return status === 200 ? body : [];
  };
  await expect.poll(async () => (await read(away)).map(({ event }) => event.type), patience).toContain('api_call');
  const before = await read(home);
  await home.kill('SIGKILL');
  for (let rest = await reader.read().catch(() => ({ done: true })); !rest.done;)
    rest = await reader.read().catch(() => ({ done: true })); // the stream ends with its node
  const after = await read(away);
  expect(after.slice(0, before.length)).toEqual(before);
  const ended = async () => (await away.call('GET', `${path}?include_deleted=true`)).body.ended_reason;
  await expect.poll(ended, patience).toBe('node_lost');
  expect((await read(away)).slice(0, before.length)).toEqual(before);
});
