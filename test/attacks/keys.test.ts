import type Kernel from '@onkernel/sdk';
import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';
import { upgrade } from '../support/upgrade.ts';
import { sql } from '../../src/store/sql.ts';

await requireSandbox();

let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  service = await startService();
  sdk = service.sdk();
});
afterAll(() => service?.close());

const expire = (id: string) =>
  service.app.store.db.rows(sql`update api_keys set expires_at = now() - interval '1 second' where id = ${id}`);

describe('addresses made with a key', () => {
  let projectId: string;
  let id: string;
  beforeEach(async () => {
    projectId = (await sdk.projects.create({ name: `p-${Math.random()}` })).id;
    id = (
      await service.sdk(undefined, { projectID: projectId }).browsers.create({ headless: true, timeout_seconds: 600 })
    ).session_id;
  });

  /** The addresses of a session that a key receives: of websockets and of pages. */
  async function addressesOf(key: string) {
    const client = service.sdk(key, { projectID: projectId });
    const session = await client.browsers.retrieve(id);
    const process = await client.browsers.process.spawn(id, { command: 'cat' });
    const watch = await client.post<{ url: string }>(`/browsers/${id}/live_view_links`, { body: {} });
    const terminal = `${session.base_url!.replace(/^http/, 'ws')}/process/${process.process_id}/attach`;
    const live = (address: string) => address.replace(/^http/, 'ws').replace('/browser/live?', '/browser/live/socket?');
    const byKey = `${service.url.replace(/^http/, 'ws')}/browsers/${id}/process/${process.process_id}/attach`;
    const authorization = { authorization: `Bearer ${key}`, 'x-kernel-project-id': projectId };
    const sockets: [string, Record<string, string>?][] = [
      [session.cdp_ws_url],
      [session.webdriver_ws_url],
      [live(session.browser_live_view_url!)],
      [live(watch.url)],
      [terminal],
      [byKey, authorization],
    ];
    const pages = [
      `${session.base_url}/json/version`,
      `${session.base_url}/json`,
      session.browser_live_view_url!,
      watch.url,
    ];
    return { sockets, pages };
  }

  const open = async ([address, headers]: [string, Record<string, string>?]) => {
    const socket = new WebSocket(address, headers ? { headers } : {});
    await once(socket, 'open');
    return { closed: new Promise<number>((resolve) => socket.on('error', () => {}).on('close', resolve)), socket };
  };

  test.each<[string, (key: { id: string }) => Promise<unknown>]>([
    ['is revoked', (key) => sdk.apiKeys.delete(key.id)],
    ['is rotated without grace', (key) => sdk.apiKeys.rotate(key.id, { expire_in_days: 0 })],
    ['expires', (key) => expire(key.id)],
    ['has its project archived', () => sdk.projects.update(projectId, { status: 'archived' })],
  ])('end when the key %s, and open connections are closed', async (what, end) => {
    const bound = await sdk.apiKeys.create({ name: 'bound', project_id: projectId });
    const { sockets, pages } = await addressesOf(bound.key);
    const another = await addressesOf(service.key);
    const theirs = await open(another.sockets[0]!);
    const connections = await Promise.all(sockets.map(open));
    for (const page of pages) expect((await fetch(page)).status).toBe(200);

    await end(bound);

    for (const { closed } of connections) {
      expect(await closed).toBe(what.includes('project') ? 1001 : 1008);
    }
    for (const [address, headers] of sockets) expect([401, 404]).toContain((await upgrade(address, headers)).status);
    for (const page of pages) expect([401, 404]).toContain((await fetch(page)).status);
    // Addresses of another key stay valid, unless the project itself is closed.
    if (!what.includes('project')) {
      expect(theirs.socket.readyState).toBe(WebSocket.OPEN);
      for (const page of another.pages) expect((await fetch(page)).status).toBe(200);
    }
    theirs.socket.terminate();
  });

  test('an organisation-wide key’s addresses to a replay end with the archived project', async () => {
    const client = service.sdk(undefined, { projectID: projectId });
    const { replay_id, replay_view_url } = await client.browsers.replays.start(id);
    const stop = `/browsers/${id}/replays/${replay_id}/stop`;
    const stopped = await service.call('POST', stop, undefined, { 'x-kernel-project-id': projectId });
    expect(stopped.status).toBe(200);
    expect((await fetch(replay_view_url!)).status).toBe(200);
    await sdk.projects.update(projectId, { status: 'archived' });
    await expect.poll(async () => (await fetch(replay_view_url!)).status, { timeout: 60_000 }).toBe(401);
  });
});

describe('a key that ends', () => {
  const asks = (key: string, method: string, path: string, body: object) =>
    service.call(method, path, body, { authorization: `Bearer ${key}` });

  test('makes none that outlives it', async () => {
    const { key, expires_at } = await sdk.apiKeys.create({ name: 'short', days_to_expire: 3 });
    const made = await asks(key, 'POST', '/org/api_keys', { name: 'longer' });
    expect(made.status).toBeLessThan(300);
    expect(Date.parse(made.body.expires_at as string)).toBeLessThanOrEqual(Date.parse(expires_at!));
    const longer = await asks(key, 'POST', '/org/api_keys', { name: 'longer', days_to_expire: 30 });
    expect(longer).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    const shorter = await asks(key, 'POST', '/org/api_keys', { name: 'shorter', days_to_expire: 2 });
    expect(Date.parse(shorter.body.expires_at as string)).toBeLessThan(Date.parse(expires_at!));
  });

  test('cannot rotate itself or another key into a key that outlives it', async () => {
    const { id, key, expires_at } = await sdk.apiKeys.create({ name: 'short', days_to_expire: 3 });
    const forever = await sdk.apiKeys.create({ name: 'forever' });
    for (const target of [id, forever.id]) {
      const longer = await asks(key, 'POST', `/org/api_keys/${target}/rotate`, {
        days_to_expire: 300,
        expire_in_days: 1,
      });
      expect(longer).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    }
    expect(Date.parse((await sdk.apiKeys.retrieve(forever.id)).expires_at ?? '9999-01-01')).toBeGreaterThan(
      Date.now() + 9e9,
    );
    let [last, end] = [key, Date.parse(expires_at!)];
    for (let turn = 0; turn < 3; turn++) {
      const self = turn === 0 ? id : (await sdk.apiKeys.list({ limit: 1 })).items[0]!.id;
      const next = await asks(last, 'POST', `/org/api_keys/${self}/rotate`, { expire_in_days: 1 });
      expect(next.status).toBeLessThan(300);
      expect(Date.parse(next.body.expires_at as string)).toBeLessThanOrEqual(end);
      [last, end] = [next.body.key as string, Date.parse(next.body.expires_at as string)];
    }
  });

  test('that is for one project makes none for the organisation', async () => {
    const project = await sdk.projects.create({ name: 'Only' });
    const { key } = await sdk.apiKeys.create({ name: 'only', project_id: project.id });
    for (const project_id of [undefined, null]) {
      const made = await asks(key, 'POST', '/org/api_keys', {
        name: 'wider',
        ...(project_id === null ? { project_id } : {}),
      });
      if (made.status < 300) expect(made.body.project_id).toBe(project.id);
      else expect(made.status).toBe(400);
    }
    const [first] = (await sdk.apiKeys.list({ name: 'first key' })).items;
    expect((await asks(key, 'POST', `/org/api_keys/${first!.id}/rotate`, {})).status).toBe(404);
  });
});
