import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { credentials } from '../../src/cluster/credential.ts';
import { keyring, newKey, parseKey } from '../../src/lib/seal.ts';
import { tokens } from '../../src/lib/tokens.ts';
import { sql } from '../../src/store/sql.ts';
import { traces, untilNothing } from '../support/leftovers.ts';
import { RawClient } from '../support/mux-server.ts';
import { startNodes, type Node, type Nodes } from '../support/nodes.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { run } from '../support/process.ts';
import type { Passenger } from '../../src/lib/caller.ts';

/** Generous: a silent node is given up after ten seconds, and noticed at the next heartbeat of another node. */
const patienceMs = 90_000;

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + patienceMs; !(await holds()); await sleep(100)) {
    if (Date.now() > end) throw new Error(`${what}: not within ${patienceMs / 1000} s`);
  }
}

const isListed = async (node: Node, other: string) => (await node.members()).some(({ id }) => id === other);

let nodes: Nodes;
let pages: Pages;
beforeAll(async () => {
  nodes = await startNodes();
  pages = await startPages();
});
afterAll(async () => {
  await nodes?.close();
  await pages?.close();
});

const rowOf = async (id: string) =>
  (
    await nodes.ask<{ state: string; ended_reason: string | null; node_id: string; uptime_ms: string }>(
      sql`select * from sessions where id = ${id}`,
    )
  )[0];

let a: Node;
let b: Node;
beforeAll(async () => {
  const env = { CORRAL_ALLOW_PRIVATE_HOSTS: pages.host };
  [a, b] = await Promise.all([
    nodes.start({ ...env, CORRAL_MAX_SESSIONS: '4' }),
    nodes.start({ ...env, CORRAL_MAX_SESSIONS: '6' }),
  ]);
  await until('both are listed', async () => (await a.members()).length === 2 && (await b.members()).length === 2);
});

describe('two nodes', () => {
  const onB = async (body: object = {}) => {
    const { body: session } = await b.call('POST', '/browsers', { headless: true, ...body });
    expect((await rowOf(session.session_id))?.node_id).toBe(await b.id());
    return session;
  };

  test('a client at one node uses a browser of the other without noticing', async () => {
    const session = await onB({ name: 'over-there' });
    const seen = await a.call('GET', `/browsers/${session.session_id}`);
    expect(seen).toMatchObject({ status: 200, body: { session_id: session.session_id, name: 'over-there' } });
    expect(new URL(seen.body.base_url).origin, 'its addresses are those of the node that has it').toBe(b.url);
    const [listed] = (await a.call('GET', '/browsers')).body;
    expect(new URL(listed.cdp_ws_url).host).toBe(new URL(b.url).host);

    const playwright = await chromium.connectOverCDP(a.here(session.cdp_ws_url));
    const page = playwright.contexts()[0]!.pages()[0]!;
    await page.goto(pages.url);
    await page.click('button');
    expect(await page.textContent('output')).toBe('1');

    const bidi = await puppeteer.connect({
      browserWSEndpoint: a.here(session.webdriver_ws_url),
      protocol: 'webDriverBiDi',
    });
    expect((await bidi.pages()).map((one) => one.url())).toContain(pages.url);
    await bidi.disconnect();

    const version = (await (await fetch(`${a.here(session.base_url)}/json/version`)).json()) as Record<string, string>;
    expect(version['webSocketDebuggerUrl']).toContain(new URL(b.url).host);
    const live = await fetch(a.here(session.browser_live_view_url));
    expect(await live.text()).toContain('<html');
    const view = new WebSocket(
      a.here(session.browser_live_view_url).replace(/^http/, 'ws').replace('/live', '/live/socket'),
    );
    await once(view, 'message');
    view.terminate();

    const renamed = await a.call('PATCH', '/browsers/over-there', { tags: { seen: 'yes' }, unheard: 1 });
    expect(renamed).toMatchObject({ status: 200, body: { tags: { seen: 'yes' } } });
    expect(renamed.headers.get('x-ignored-fields')).toBe('unheard');
    await playwright.close();
    expect((await a.call('DELETE', '/browsers/over-there')).status).toBe(204);
    await expect.poll(() => rowOf(session.session_id)).toMatchObject({ state: 'stopped', ended_reason: 'deleted' });
    expect((await a.call('GET', `/browsers/${session.session_id}`)).body).toMatchObject({ code: 'session_not_found' });
  });

  test('a node passes on the refusal of another node unchanged, under one request id', async () => {
    const session = await onB();
    const path = `/browsers/${session.session_id}`;
    const [here, there] = await Promise.all([a, b].map((node) => node.call('PATCH', path, { name: 5 })));
    expect(here).toMatchObject({ status: 400, body: there!.body });
    expect(here!.headers.get('x-request-id')).toMatch(/^req_\w+$/);
    expect((await a.call('PATCH', path, { name: 'x'.repeat(2_000_000) })).status).toBe(413);
    expect((await a.call('GET', path, undefined, { authorization: 'Bearer sk_unknown' })).status).toBe(401);
    await b.call('DELETE', path);
  });

  test('a change has one entry in the audit log, on whichever node it was made', async () => {
    const session = await onB();
    const path = `/browsers/${session.session_id}`;
    await a.call('DELETE', path, undefined, { 'user-agent': 'a client' });
    const entries = () => nodes.ask(sql`select user_agent, status from audit_log where path = ${path}`);
    await expect.poll(entries).toEqual([{ user_agent: 'a client', status: 204 }]);
  });

  test('a connection that is closed on one side is closed on the other', async () => {
    const session = await onB();
    const client = await RawClient.open(a.here(session.cdp_ws_url));
    await client.result('Browser.getVersion');
    await until('the owner has it', async () => (await b.metric('corral_session_clients')) === 1);
    client.socket.terminate();
    await until('the owner noticed', async () => (await b.metric('corral_session_clients')) === 0);

    const other = await RawClient.open(a.here(session.cdp_ws_url));
    await b.call('DELETE', `/browsers/${session.session_id}`);
    expect(await other.closed).toEqual({ code: 1001, reason: 'The session was deleted.' });
  });

  test('a message of 32 MiB goes both ways', async () => {
    const session = await onB();
    const client = await RawClient.open(a.here(session.cdp_ws_url));
    const { targetInfos } = await client.result<{ targetInfos: { targetId: string; type: string }[] }>(
      'Target.getTargets',
    );
    const { targetId } = targetInfos.find(({ type }) => type === 'page')!;
    const { sessionId } = await client.result<{ sessionId: string }>('Target.attachToTarget', {
      targetId,
      flatten: true,
    });
    const text = 'x'.repeat(32 * 1024 * 1024);
    const { result } = await client.result<{ result: { value: string } }>(
      'Runtime.evaluate',
      { expression: `'${text}'`, returnByValue: true },
      sessionId,
    );
    expect(result.value.length).toBe(text.length);
    client.socket.close();
    await b.call('DELETE', `/browsers/${session.session_id}`);
  });

  test('sessions are shared out from half full on, and a full node refuses no client while another has room', async () => {
    const before = await a.metric('corral_node_forwarded_total{kind="http"}');
    const made = [];
    for (let count = 0; count < 6; count++) made.push((await a.call('POST', '/browsers', { headless: true })).body);
    expect(made.map(({ session_id }) => typeof session_id)).toEqual(Array(6).fill('string'));
    const rows = await Promise.all(made.map(({ session_id }) => rowOf(session_id)));
    expect(new Set(rows.map((row) => row?.node_id)).size).toBe(2);
    expect(await a.metric('corral_node_forwarded_total{kind="http"}')).toBeGreaterThan(before);
    for (const { session_id } of made) expect((await a.call('DELETE', `/browsers/${session_id}`)).status).toBe(204);
    expect(await a.metric('corral_nodes')).toBe(2);
  });

  test('a project that is closed at one node takes its sessions at the other along', async () => {
    const { body: project } = await a.call('POST', '/org/projects', { name: 'short-lived' });
    const { body: session } = await b.call(
      'POST',
      '/browsers',
      { headless: true },
      { 'x-kernel-project-id': project.id },
    );
    await a.call('PATCH', `/org/projects/${project.id}`, { status: 'archived' });
    await until('it ended', async () => (await rowOf(session.session_id))?.state === 'stopped');
    expect(await rowOf(session.session_id)).toMatchObject({ ended_reason: 'project_closed' });
  });

  test('the operator sees both', async () => {
    const { stdout, code } = await run(['bin/corral.cjs', 'nodes'], {
      DATABASE_URL: nodes.databaseUrl,
      CORRAL_DATA_DIR: a.dataDir,
    });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^NODE +PUBLIC +INTERNAL/);
    for (const node of [a, b]) expect(stdout).toContain(`${await node.id()}  ${node.url}`);
  });

  describe('the credential between nodes', () => {
    const anonymous: Passenger = { requestId: 'req_x', clientIp: '', caller: null, project: null };
    const written = (key: string, to: string, method: string, url: string, passenger = anonymous) =>
      credentials({
        tokens: tokens(() => keyring([parseKey(key)!]), Date.now, 'node to node'),
        now: Date.now,
      }).write({ to, method, url }, passenger);
    const withoutKey = { authorization: '' };

    test('opens what it was written for, and nothing else', async () => {
      const project = (await a.call('GET', '/org/projects')).body[0];
      const caller = { keyId: 'key_x', keyName: 'a key', projectId: null };
      const passenger = { ...anonymous, caller, project: { id: project.id, name: project.name } };
      const shown = async (node: Node, method: string, path: string, credential: string) =>
        (await node.call(method, path, undefined, { ...withoutKey, 'x-corral-node': credential })).status;
      // A new credential each time: a used credential is refused.
      const forB = await b.id();
      const good = () => written(nodes.secretKey, forB, 'GET', '/browsers', passenger);
      expect(await shown(b, 'GET', '/browsers', good()), 'or the rest of this test shows nothing').toBe(200);
      expect(await shown(a, 'GET', '/browsers', good()), 'another node').toBe(401);
      expect(await shown(b, 'GET', '/browsers?limit=1', good()), 'another query').toBe(401);
      expect(await shown(b, 'POST', '/browsers', good()), 'another method').toBe(401);
      expect(await shown(b, 'GET', '/org/projects', good()), 'another path').toBe(401);
      const forged = written(newKey(), forB, 'GET', '/browsers', passenger);
      expect(await shown(b, 'GET', '/browsers', forged), 'another key').toBe(401);
      const session = await onB();
      const jwt = new URL(session.cdp_ws_url).searchParams.get('jwt')!;
      expect(await shown(b, 'GET', '/browsers', jwt), 'a token of a session').toBe(401);
      await b.call('DELETE', `/browsers/${session.session_id}`);
    });

    test('that a client writes counts for nothing, and does not travel', async () => {
      const spy = await fakeNode();
      try {
        const answer = await a.call('GET', `/browsers/${spy.sessionId}?x=1`, undefined, {
          'x-corral-node': 'anything',
        });
        expect(answer, 'the response of the other node is passed on').toMatchObject({ status: 418, text: 'a teapot' });
        expect(spy.heard).toHaveLength(1);
        const [{ headers }] = spy.heard as [{ headers: IncomingHttpHeaders }];
        expect(headers['authorization'], 'the key stays at the first node').toBeUndefined();
        const credential = headers['x-corral-node'] as string;
        expect(credential).not.toBe('anything');
        const replayed = await b.call('GET', `/browsers/${spy.sessionId}?x=1`, undefined, {
          ...withoutKey,
          'x-corral-node': credential,
        });
        expect(replayed.status, 'it was written for another node').toBe(401);
      } finally {
        await spy.close();
      }
      await until('the others forgot it', async () => !(await isListed(a, spy.id)) && !(await isListed(b, spy.id)));
      expect((await a.call('GET', `/browsers/${spy.sessionId}`)).body.code).toBe('session_not_found');
    });

    test('is for one hop: a forwarded request is answered or refused, never forwarded again', async () => {
      const session = await onB();
      const url = `/browsers/${session.session_id}`;
      const project = (await a.call('GET', '/org/projects')).body[0];
      const before = await a.metric('corral_node_forwarded_total{kind="http"}');
      const credential = written(nodes.secretKey, await a.id(), 'GET', url, {
        ...anonymous,
        project: { id: project.id, name: project.name },
      });
      await a.call('GET', url, undefined, { ...withoutKey, 'x-corral-node': credential });
      const jwt = new URL(session.cdp_ws_url).search;
      const socket = new WebSocket(`${a.url.replace('http', 'ws')}/browser/cdp${jwt}`, {
        headers: { 'x-corral-node': written(nodes.secretKey, await a.id(), 'GET', `/browser/cdp${jwt}`) },
      });
      const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }];
      expect(response.statusCode).toBe(404);
      expect(await a.metric('corral_node_forwarded_total{kind="http"}')).toBe(before);
      await b.call('DELETE', url);
    });
  });

  test('a node that cannot be reached is a 502 that says so', async () => {
    const stopped = await fakeNode();
    stopped.server.closeAllConnections();
    stopped.server.close();
    expect(await a.call('GET', `/browsers/${stopped.sessionId}`)).toMatchObject({
      status: 502,
      body: { code: 'node_unreachable', message: expect.stringContaining(stopped.id) },
    });
    await stopped.close();
  });

  /** A node that is only a row, a session that is only a row, and a server that remembers what it was asked. */
  async function fakeNode() {
    const heard: { headers: IncomingHttpHeaders }[] = [];
    const server = createServer((request, response) => {
      heard.push({ headers: request.headers });
      response.writeHead(418).end('a teapot');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const id = `node_fake_${Date.now()}`;
    const sessionId = `fake${Date.now()}`;
    // It beats for an hour.
    await nodes.ask(sql`insert into nodes select ${id}, 'x', ${url}, ${url}, version, keys, 0, 0, now(), now() + interval '1 hour'
      from nodes limit 1`);
    await nodes.ask(sql`insert into sessions (id, project_id, node_id, state, headless, stealth, gpu, kiosk_mode, timeout_seconds,
        viewport_width, viewport_height)
      select ${sessionId}, id, ${id}, 'live', true, false, false, false, 60, 1, 1 from projects where is_default`);
    await until('they know it', async () => (await isListed(a, id)) && (await isListed(b, id)));
    return {
      id,
      sessionId,
      server,
      heard,
      /** It falls silent, and is given up with its session. */
      async close() {
        await nodes.ask(sql`update nodes set heartbeat_at = now() - interval '1 minute' where id = ${id}`);
        await until('it was given up', async () => (await rowOf(sessionId))?.state === 'failed');
        server.closeAllConnections();
        server.close();
      },
    };
  }
});

describe('a node that does not fit is refused with a sentence', () => {
  test('when its secret key is another', async () => {
    await expect(nodes.start({ CORRAL_SECRET_KEY: newKey() })).rejects.toThrow(
      new RegExp(
        `Node (${await a.id()}|${await b.id()}) .* has another secret key .* Give both the same CORRAL_SECRET_KEY`,
      ),
    );
    const both = await nodes.start({ CORRAL_SECRET_KEY: `${nodes.secretKey},${newKey()}` });
    await both.kill(); // a new key that is second everywhere can be put first, node by node
  });

  test('when its version is another', async () => {
    const ago = (interval: string) =>
      nodes.ask(sql`insert into nodes select 'node_elder', 'x', internal_url, public_url, '0.0.1', keys, 0, 0, now(), now() + ${interval}::interval
        from nodes where id <> 'node_elder' limit 1 on conflict (id) do update set heartbeat_at = now() + ${interval}::interval`);
    await ago('1 hour');
    await expect(nodes.start()).rejects.toThrow(
      /Node node_elder .* runs version 0\.0\.1, and this one is version .* Stop that node first, or start version 0\.0\.1/,
    );
    await ago('-1 minute');
    await (await nodes.start()).kill(); // a node that ended does not block another
  });
});

describe('three nodes, and one of them', () => {
  let c: Node;
  /** Nodes know each other by their next heartbeat. */
  const isKnown = (id: string) => until('it is listed', async () => (await isListed(a, id)) && (await isListed(b, id)));

  test('leaves when it is stopped: the others know at once', async () => {
    c = await nodes.start();
    const id = await c.id();
    await isKnown(id);
    const { body: session } = await c.call('POST', '/browsers', { headless: true });
    const { body: kept } = await a.call('POST', '/browsers', { headless: true });
    const through = await RawClient.open(c.here(kept.cdp_ws_url));
    await through.result('Browser.getVersion');
    await c.kill('SIGTERM');
    await through.closed;
    expect(await nodes.ask(sql`select 1 from nodes where id = ${id}`)).toEqual([]);
    expect(await rowOf(session.session_id)).toMatchObject({ state: 'stopped', ended_reason: 'shutdown' });
    await until('it is not listed any more', async () => !(await isListed(a, id)));
    await a.call('DELETE', `/browsers/${kept.session_id}`);
  });

  test('is killed: one of the others settles its sessions, once', async () => {
    c = await nodes.start({ CORRAL_DATA_DIR: c.dataDir });
    const id = await c.id();
    const sessions = await Promise.all(
      [1, 2, 3].map(async () => (await c.call('POST', '/browsers', { headless: true })).body),
    );
    await isKnown(id);
    const open = await RawClient.open(a.here(sessions[0].cdp_ws_url));
    await c.kill('SIGKILL');
    await open.closed;
    await until('all are settled', async () => {
      const rows = await Promise.all(sessions.map(({ session_id }) => rowOf(session_id)));
      return rows.every((row) => row?.state === 'failed' && row.ended_reason === 'node_lost');
    });
    await until('it is forgotten', async () => !(await isListed(a, id)) && !(await isListed(b, id)));
    const { status, body } = await b.call('GET', `/browsers/${sessions[0].session_id}`);
    expect([status, body.code]).toEqual([404, 'session_not_found']);
    const said = () => `${a.output()}${b.output()}`.match(/"sessions":3.*sessions\.settled_for_lost_node/g);
    await expect.poll(said).toHaveLength(1);

    c = await nodes.start({ CORRAL_DATA_DIR: c.dataDir });
    expect(await untilNothing(traces(c.dataDir).processes, patienceMs)).toEqual([]);
    expect(await rowOf(sessions[0].session_id)).toMatchObject({ ended_reason: 'node_lost' });
    expect(said()).toHaveLength(1);
  });

  test('is suspended and resumes later: it ends the sessions that others settled before it serves again', async () => {
    const id = await c.id();
    await isKnown(id);
    const sessions = await Promise.all(
      [1, 2].map(async () => (await c.call('POST', '/browsers', { headless: true })).body),
    );
    const attached = await RawClient.open(sessions[0].cdp_ws_url);
    const trace = traces(c.dataDir);
    expect(trace.processes()).not.toEqual([]);

    c.child.kill('SIGSTOP');
    try {
      // A request to the suspended owner through another node is answered when the owner is declared dead.
      const through = a.call('GET', `/browsers/${sessions[0].session_id}`);
      await until('it was given up', async () => !(await isListed(a, id)));
      expect((await through).status).toBe(502);
      for (const { session_id } of sessions) {
        await expect.poll(() => rowOf(session_id)).toMatchObject({ state: 'failed', ended_reason: 'node_lost' });
      }
      // These reach it while it sleeps, and are the first thing it sees when it wakes.
      const early = sessions.map(({ base_url }) => fetch(`${base_url}/json/version`).then(({ status }) => status));
      const late = c.call('GET', `/browsers/${sessions[1].session_id}`);
      await sleep(500);
      c.child.kill('SIGCONT');
      expect(await Promise.all(early)).toEqual([404, 404]);
      expect((await late).body.code).toBe('session_not_found');
    } finally {
      c.child.kill('SIGCONT');
    }
    expect(await attached.closed).toMatchObject({ code: 1001 });
    expect(await untilNothing(trace.processes, patienceMs)).toEqual([]);
    expect(await untilNothing(trace.directories, patienceMs)).toEqual([]); // they go after their processes
    await isKnown(id);
    for (const { session_id } of sessions) {
      expect(await rowOf(session_id)).toMatchObject({ state: 'failed', ended_reason: 'node_lost' });
    }
    const { body: fresh } = await c.call('POST', '/browsers', { headless: true });
    const client = await RawClient.open(a.here(fresh.cdp_ws_url));
    await client.result('Browser.getVersion');
  });
});
