import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { WebSocket } from 'ws';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { untilNothing } from '../support/leftovers.ts';
import { startShopSite, type ShopSite } from '../support/logins/shop-site.ts';
import { RawClient } from '../support/mux-server.ts';
import { onTheMachine } from '../support/nothing-left.ts';
import { spawnService } from '../support/process.ts';

/**
 * Code has mistakes: a promise that is not awaited, an exception in a callback. One process serves all tenants, so such a fault must end no
 * more than the session or the login whose work it was. The faults are put into a service that runs in a process of its own.
 */
const planted = { username: 'ann', password: 'pl4nted-p4ssword' };
const patience = { timeout: 60_000, interval: 100 };
let dataDir: string;
let site: ShopSite;
let service: Awaited<ReturnType<typeof spawnService>>;
let key: string;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'corral-faults-'));
  site = await startShopSite(planted);
  service = await spawnService({
    CORRAL_DATA_DIR: dataDir,
    CORRAL_ALLOW_PRIVATE_HOSTS: site.host,
    CORRAL_WARM_SPARES: 'off',
    NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, '../support/hostile/faults.mjs')).href}`,
  });
  key = (await readFile(join(dataDir, 'api-key'), 'utf8')).trim();
}, 300_000);

afterAll(async () => {
  await service?.kill();
  await site?.close();
  await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

async function call(method: string, path: string, body?: object) {
  const response = await fetch(service.url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    text,
    body: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text,
  };
}

/** A session, with a client on one of its pages. */
async function session() {
  const { body } = await call('POST', '/browsers', { headless: true });
  const client = await RawClient.open(body.cdp_ws_url);
  const { sessionId } = await client.page();
  return {
    id: body.session_id as string,
    address: body.cdp_ws_url as string,
    client,
    evaluate: (expression: string) => client.evaluate(expression, sessionId),
  };
}

/** The session as the list of ended ones has it. */
const ended = (id: string) =>
  vi.waitFor(async () => {
    const { body } = await call('GET', '/browsers?status=deleted&limit=100');
    const found = body.find(({ session_id }: { session_id: string }) => session_id === id);
    expect(found?.ended_reason).toBeTruthy();
    return found;
  }, patience);

const counted = async (kind: string, owner: string) => {
  const { text } = await call('GET', '/metrics');
  return Number(new RegExp(`^corral_faults_total{kind="${kind}",owner="${owner}"} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
};

const isOneProcess = () => expect(service.child.exitCode ?? service.child.signalCode, service.output()).toBeNull();

test.each([
  ['rejection', 'a rejection'],
  ['exception', 'an exception'],
])(
  'a page whose words make the service fail with %s ends its own session alone',
  { timeout: 300_000 },
  async (kind, words) => {
    const [victim, bystander] = [await session(), await session()];
    const before = await counted(kind, 'session');
    void victim.evaluate(`'fault:' + ' ${words}'`).catch(() => {});
    expect(await victim.client.closed).toEqual({
      code: 1001,
      reason: 'The service failed in the work of this session.',
    });
    expect(await ended(victim.id)).toMatchObject({
      ended_reason: 'fault',
      ended_detail: expect.stringContaining('log'),
    });
    isOneProcess();
    expect(await bystander.evaluate('6 * 7')).toBe(42);
    expect(await counted(kind, 'session')).toBe(before + 1);
    const line = service
      .output()
      .split('\n')
      .find((line) => line.includes('"fault"') && line.includes(victim.id));
    expect(JSON.parse(line!)).toMatchObject({ kind, owner: 'session', id: victim.id });
    await call('DELETE', `/browsers/${bystander.id}`);
  },
);

test('a client whose message makes the service fail ends its own session alone', { timeout: 300_000 }, async () => {
  const [victim, bystander] = [await session(), await session()];
  // Without a mask, the service receives the words as they are.
  const bare = new WebSocket(victim.address, { generateMask: (mask) => mask.fill(0) });
  bare.on('error', () => {}).on('open', () => bare.send('fault: an exception'));
  await victim.client.closed;
  expect(await ended(victim.id)).toMatchObject({ ended_reason: 'fault' });
  isOneProcess();
  expect(await bystander.evaluate('6 * 7')).toBe(42);
  await call('DELETE', `/browsers/${bystander.id}`);
});

test(
  'a session that is deleted while its login asks for the cookies ends that login alone',
  { timeout: 300_000 },
  async () => {
    const bystander = await session();
    await call('POST', '/credentials', { name: 'ann', domain: site.host, values: planted });
    const connection = await call('POST', '/auth/connections', {
      domain: site.host,
      profile_name: 'ann',
      login_url: `${site.url}/login`,
      credential: { name: 'ann' },
    });
    expect(connection.status, connection.text).toBe(201);
    const { id } = connection.body;
    expect(await call('POST', `/auth/connections/${id}/login`, {})).toMatchObject({ status: 200 });
    const state = async () => (await call('GET', `/auth/connections/${id}`)).body;
    await vi.waitFor(() => expect(service.output()).toContain('The cookies are asked for.'), patience);
    const { browser_session_id: browser } = await state();
    expect(await call('DELETE', `/browsers/${browser}`)).toMatchObject({ status: 204 });
    const over = await vi.waitFor(async () => {
      const now = await state();
      expect(now.flow_status).not.toBe('IN_PROGRESS');
      return now;
    }, patience);
    expect(over).toMatchObject({ flow_status: 'FAILED', error_code: 'browser_error' });
    isOneProcess();
    expect(await bystander.evaluate('6 * 7')).toBe(42);
    await call('DELETE', `/browsers/${bystander.id}`);
  },
);

test('nothing of the ended sessions is left', { timeout: 60_000 }, async () => {
  expect(await untilNothing(() => onTheMachine(dataDir), 30_000)).toEqual([]);
  isOneProcess();
});
