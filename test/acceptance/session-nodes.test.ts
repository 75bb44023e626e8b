import Kernel, { toFile } from '@onkernel/sdk';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { extensionFiles, zipOf } from '../support/extension-zip.ts';
import { loggedIn, startLoginSite, type LoginSite } from '../support/login-site.ts';
import { RawClient } from '../support/mux-server.ts';
import { startNodes, type Node, type Nodes } from '../support/nodes.ts';
import { startPages, type Pages } from '../support/pages.ts';

const patience = { timeout: 60_000 };

let nodes: Nodes;
let pages: Pages;
let site: LoginSite;
let settings: Record<string, string>;
/** Each test leaves two nodes that know each other, and restarts a node that it kills. */
let a: Node;
let b: Node;
beforeAll(async () => {
  pages = await startPages({
    // Its document loads for as long as the picture does, and then its process answers nothing.
    '/hangs':
      '<img src=/never><script>fetch("/text").then((a) => a.text()).then(() => setTimeout(() => { for (;;); }, 300))</script>',
    '/never': null,
    '/counts': '<script>let n = 0; setInterval(() => n < 60 && console.log(String(++n)), 50)</script>',
  });
  site = await startLoginSite();
  nodes = await startNodes();
  settings = { CORRAL_ALLOW_PRIVATE_HOSTS: `${pages.host},${site.host}`, CORRAL_MAX_SESSIONS: '4' };
  [a, b] = await Promise.all([nodes.start(settings), nodes.start(settings)]);
  await knowEachOther();
});
afterAll(async () => {
  await nodes?.close();
  await site?.close();
  await pages?.close();
});

async function knowEachOther() {
  const both = [await a.id(), await b.id()].sort();
  for (const node of [a, b])
    await vi.waitFor(async () => expect((await node.members()).map(({ id }) => id).sort()).toEqual(both), {
      ...patience,
      interval: 100,
    });
}

/** A session is made where there is most room, which may be either node: tests ask the other one for it. */
async function homeAndAway({ session_id }: { session_id: string }): Promise<[Node, Node]> {
  const [{ node_id: at }] = (await nodes.ask<{ node_id: string }>({
    name: 'where-is-it',
    text: 'select node_id from sessions where id = $1',
    values: [session_id],
  })) as [{ node_id: string }];
  return at === (await a.id()) ? [a, b] : [b, a];
}

/** Starts a node that was killed on what it left. */
async function startAgain(killed: Node): Promise<Node> {
  const started = await nodes.start({ ...settings, CORRAL_DATA_DIR: killed.dataDir });
  if (killed === a) a = started;
  else b = started;
  return started;
}

const sdkOf = (node: Node) => new Kernel({ apiKey: nodes.key, baseURL: node.url });
const nodeOf = (session: { cdp_ws_url: string }) => new URL(session.cdp_ws_url).host;

test('a profile that one node saves is used by another, and a request to the wrong node is forwarded', async () => {
  const profile = await sdkOf(a).profiles.create({ name: 'shared' });
  const zip = await toFile(await zipOf(extensionFiles('far')), 'far.zip');
  await sdkOf(b).extensions.upload({ file: zip, name: 'far' });
  const writer = await sdkOf(a).browsers.create({ headless: true, profile: { id: profile.id, save_changes: true } });
  await site.logIn(writer);
  const other = nodeOf(writer) === new URL(a.url).host ? b : a;
  const refused = await other.call('POST', '/browsers', {
    headless: true,
    profile: { id: profile.id, save_changes: true },
  });
  expect(refused).toMatchObject({ status: 409, body: { session_id: writer.session_id } });
  await sdkOf(other).browsers.deleteByID(writer.session_id);

  // One session on each node, changed through the node that does not run it.
  const sessions = await Promise.all([a, b, a, b].map((node) => sdkOf(node).browsers.create({ headless: true })));
  expect(new Set(sessions.map(nodeOf)).size).toBe(2);
  for (const session of sessions.filter((one, at) => sessions.findIndex((two) => nodeOf(two) === nodeOf(one)) === at)) {
    const far = nodeOf(session) === new URL(a.url).host ? b : a;
    await sdkOf(far).browsers.update(session.session_id, { profile: { id: profile.id } });
    expect(await site.look(session)).toEqual(loggedIn);
    await sdkOf(far).browsers.loadExtensions(session.session_id, {
      extensions: [{ name: 'far', zip_file: await toFile(await zipOf(extensionFiles('far')), 'far.zip') }],
    });
    await site.onPage(session, async (page) => {
      await page.reload();
      await page.waitForSelector('html[data-far]', { state: 'attached' });
    });
  }
  await Promise.all(sessions.map((session) => sdkOf(a).browsers.deleteByID(session.session_id)));
});

type Envelope = { seq: number; event: { type: string; data?: { text?: string; url?: string } } };

test('events are followed and read through another node, and those that were read outlive kill -9 of their own', async () => {
  const { body: session } = await a.call('POST', '/browsers', {
    headless: true,
    timeout_seconds: 300,
    start_url: `${pages.url}counts`,
    telemetry: { browser: { network: { enabled: true }, console: { enabled: true } } },
  });
  const [home, away] = await homeAndAway(session);
  const path = `/browsers/${session.session_id}`;
  const client = await RawClient.open(away.here(session.cdp_ws_url)); // while there is one, the session does not fall asleep
  await expect.poll(async () => (await away.call('GET', `${path}/thumbnail`)).status, patience).toBe(200);
  await client.close();

  const stream = await fetch(`${away.url}${path}/telemetry/stream?replay=all`, {
    headers: { authorization: `Bearer ${nodes.key}` },
  });
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  await away.call('POST', `${path}/curl`, { url: pages.url });
  let live = '';
  while (!live.includes('"operation_id":"browserCurl"')) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`The stream ended before it reported the call:\n${live}`);
    live += value;
  }
  expect(live).toMatch(/^id: 1\ndata: \{"seq":1,/);

  const read = async (from: Node): Promise<Envelope[]> => {
    const { status, body } = await from.call('GET', `${path}/telemetry/events?since=1h&limit=100`);
    return status === 200 ? body : [];
  };
  await expect.poll(async () => (await read(away)).map(({ event }) => event.type), patience).toContain('api_call');
  const before = await read(home);
  const hanging = await RawClient.open(away.here(session.cdp_ws_url));
  await hanging.page(`${pages.url}hangs`);
  const drafts = async () => {
    const query = { name: 'drafts', text: 'select packed from telemetry_chunks where session_id = $1 and draft' };
    const rows = await nodes.ask<{ packed: Buffer }>({ ...query, values: [session.session_id] });
    return rows.map(({ packed }) => inflateRawSync(packed).toString()).join();
  };
  await expect.poll(drafts, patience).toContain(`${pages.url}text`);
  const responses = async () =>
    ((await away.call('GET', `${path}/telemetry/events?category=network&order=desc&limit=100`)).body as Envelope[])
      .filter(({ event }) => event.type === 'network_response')
      .map(({ event }) => event.data!.url);
  expect(await responses()).not.toContain(`${pages.url}text`);
  await home.kill('SIGKILL');
  for (let rest = await reader.read().catch(() => ({ done: true })); !rest.done;)
    rest = await reader.read().catch(() => ({ done: true })); // the stream ends with its node
  const after = await read(away);
  expect(after.slice(0, before.length)).toEqual(before);
  // Events are lost only at the end: there is no gap before.
  expect(after.map(({ seq }) => seq)).toEqual(after.map((_, index) => index + 1));
  const counted = after.flatMap(({ event }) => (event.type === 'console_log' ? [Number(event.data!.text)] : []));
  expect(counted.length).toBeGreaterThan(0);
  expect(counted).toEqual(counted.map((_, index) => index + 1));
  const ended = async () => (await away.call('GET', `${path}?include_deleted=true`)).body.ended_reason;
  await expect.poll(ended, patience).toBe('node_lost');
  expect((await read(away)).slice(0, before.length)).toEqual(before);
  expect(await responses()).toContain(`${pages.url}text`); // its body was not read yet
  await startAgain(home);
  await knowEachOther();
});

test('a session of another node is used, recorded and read through this one, and its video survives kill -9', async () => {
  const { body: session } = await a.call('POST', '/browsers', { headless: true, timeout_seconds: 300 });
  const [home, away] = await homeAndAway(session);
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
  await expect.poll(async () => (await readFile(part)).includes('moof'), patience).toBe(true); // two seconds of it
  const uptime = async () => {
    const { body } = await away.call('GET', '/browsers?status=all');
    return body.find((one: { session_id: string }) => one.session_id === session.session_id).usage.uptime_ms;
  };
  expect(await uptime()).toBeGreaterThan(0);
  const beaten = `select from nodes n join sessions s on s.node_id = n.id where s.id = $1 and heartbeat_at > created_at`;
  const seen = () => nodes.ask({ name: 'was-it-seen', text: beaten, values: [session.session_id] });
  await expect.poll(async () => (await seen()).length, patience).toBe(1);
  await home.kill('SIGKILL');
  const list = async () => (await away.call('GET', `${path}/replays`)).body;
  await expect.poll(list, patience).toMatchObject([{ status: 'failed', ended_reason: 'node_lost' }]);
  expect((await away.call('GET', `${path}/replays/${replay.replay_id}`)).status).toBe(404);
  const settled = await uptime(); // until the last heartbeat of its node
  expect(settled).toBeGreaterThan(0);

  await startAgain(home);
  await expect.poll(list, patience).toMatchObject([{ status: 'available' }]);
  // A node mends its videos while it starts. The others reach it when it has joined.
  const video = async () => {
    const { status, headers } = await away.call('GET', `${path}/replays/${replay.replay_id}`);
    return [status, headers.get('content-type')];
  };
  await expect.poll(video, patience).toEqual([200, 'video/mp4']);
});
