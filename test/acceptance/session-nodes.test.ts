import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startNodes, type Node, type Nodes } from '../support/nodes.ts';
import { startPages, type Pages } from '../support/pages.ts';

let nodes: Nodes;
let pages: Pages;
let owner: Node;
let other: Node;
beforeAll(async () => {
  pages = await startPages();
  nodes = await startNodes();
  const settings = { CORRAL_ALLOW_PRIVATE_HOSTS: pages.host, CORRAL_PORT: '0' };
  owner = await nodes.start(settings);
  other = await nodes.start(settings);
});
afterAll(async () => {
  await nodes.close();
  await pages.close();
});

test('a session of another node is used, recorded and read through this one, and its video survives kill -9', async () => {
  await expect.poll(async () => (await owner.members()).length, { timeout: 10_000 }).toBe(2);
  await expect.poll(async () => (await other.members()).length, { timeout: 10_000 }).toBe(2);
  // Made where there is most room, which may be either: what matters is that the other one is asked.
  const { body: session } = await owner.call('POST', '/browsers', { headless: true, timeout_seconds: 300 });
  const [{ node_id: at }] = (await nodes.ask<{ node_id: string }>({
    name: 'where-is-it',
    text: 'select node_id from sessions where id = $1',
    values: [session.session_id],
  })) as [{ node_id: string }];
  const [home, away] = at === (await owner.id()) ? [owner, other] : [other, owner];
  const path = `/browsers/${session.session_id}`;

  expect((await away.call('POST', `${path}/computer/screenshot`, {})).headers.get('content-type')).toBe('image/png');
  expect(await away.call('POST', `${path}/computer/move_mouse`, { x: 5, y: 6, smooth: false })).toMatchObject({
    status: 200,
    text: '',
  });
  expect(await away.call('POST', `${path}/computer/get_mouse_position`, {})).toMatchObject({ body: { x: 5, y: 6 } });
  expect(await away.call('POST', `${path}/curl`, { url: pages.url })).toMatchObject({ body: { status: 200 } });
  const raw = away.here(`${session.base_url}/curl/raw?url=${encodeURIComponent(pages.url)}`);
  expect(await (await fetch(raw)).text()).toContain('<title>A page</title>');
  expect(
    (await away.call('GET', `${path}/logs/stream?source=supervisor&supervisor_process=chromium&follow=false`)).status,
  ).toBe(200);

  const { body: replay } = await away.call('POST', `${path}/replays`, { framerate: 5 });
  expect((await away.call('GET', `${path}/replays/${replay.replay_id}`)).status).toBe(202);

  const part = join(home.dataDir, 'replays', `${replay.replay_id}.part`);
  await expect.poll(async () => (await readFile(part)).includes('moof'), { timeout: 15_000 }).toBe(true); // two seconds of it
  const uptime = async () => {
    const { body } = await away.call('GET', '/browsers?status=all');
    return body.find((one: { session_id: string }) => one.session_id === session.session_id).usage.uptime_ms;
  };
  expect(await uptime()).toBeGreaterThan(0);
  const beaten = `select from nodes n join sessions s on s.node_id = n.id where s.id = $1 and heartbeat_at > created_at`;
  const seen = () => nodes.ask({ name: 'was-it-seen', text: beaten, values: [session.session_id] });
  await expect.poll(async () => (await seen()).length, { timeout: 30_000 }).toBe(1);
  await home.kill('SIGKILL');
  const list = async () => (await away.call('GET', `${path}/replays`)).body;
  await expect.poll(list, { timeout: 40_000 }).toMatchObject([{ status: 'failed', ended_reason: 'node_lost' }]);
  expect((await away.call('GET', `${path}/replays/${replay.replay_id}`)).status).toBe(404);
  const settled = await uptime(); // up to the last sign of its node
  expect(settled).toBeGreaterThan(0);

  await nodes.start({ CORRAL_DATA_DIR: home.dataDir, CORRAL_PORT: '0' });
  await expect.poll(list, { timeout: 20_000 }).toMatchObject([{ status: 'available' }]);
  const video = await away.call('GET', `${path}/replays/${replay.replay_id}`);
  expect([video.status, video.headers.get('content-type')]).toEqual([200, 'video/mp4']);
});
