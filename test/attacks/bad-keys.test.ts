import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startService, type Service } from '../support/service.ts';
import { upgrade } from '../support/upgrade.ts';

let service: Service;
let queries = 0;
let codeQueries = 0;
beforeAll(async () => {
  service = await startService({ CORRAL_TRUST_PROXY: '127.0.0.1' });
  const { db } = service.app.store;
  for (const name of ['row', 'rows'] as const) {
    const original = db[name].bind(db) as (...args: unknown[]) => unknown;
    Object.assign(db, {
      [name]: (...args: unknown[]) => {
        const query = JSON.stringify(args);
        if (query.includes('api_keys')) queries += 1;
        if (query.includes('secrets')) codeQueries += 1;
        return original(...args);
      },
    });
  }
  const transaction = db.transaction.bind(db);
  db.transaction = (work) => {
    codeQueries += 1;
    return transaction(work);
  };
});
afterAll(() => service?.close());

const guess = (turn: number, from: string) =>
  service.call('GET', '/browsers', undefined, {
    authorization: `Bearer sk_${String(turn).padStart(40, '0')}`,
    'x-forwarded-for': from,
  });

test('a client that guesses keys has to wait, costs no query each, and keeps no other client out', async () => {
  await service.sdk().projects.list();
  queries = 0;
  const statuses: number[] = [];
  let last;
  for (let turn = 0; turn < 300; turn++) {
    const answer = await guess(turn, '203.0.113.7');
    statuses.push(answer.status);
    if (answer.status !== 401) last = answer; // every three seconds one guess is looked up again, which may be the last of all
  }
  const turnedAway = statuses.filter((status) => status === 429).length;
  expect(statuses.slice(0, 10)).toEqual(Array<number>(10).fill(401));
  expect(turnedAway).toBeGreaterThan(100);
  expect(new Set(statuses)).toEqual(new Set([401, 429]));
  expect(last).toMatchObject({ status: 429, body: { code: 'too_many_bad_keys' } });
  expect(Number(last?.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(queries).toBeLessThan(200);

  // Valid keys are accepted from that address, both a cached key and a new one.
  const { key } = await service.sdk().apiKeys.create({ name: 'fresh' });
  for (const good of [service.key, key]) {
    const headers = { authorization: `Bearer ${good}`, 'x-forwarded-for': '203.0.113.7' };
    await expect.poll(async () => (await service.call('GET', '/browsers', undefined, headers)).status).toBe(200);
  }
  expect((await guess(1000, '203.0.113.8')).status).toBe(401);
});

test('a client that guesses sign-in codes has to wait, costs no query each, and does not block others at its address', async () => {
  const from = '203.0.113.14';
  const signIn = (code: string) =>
    service.call('POST', '/console/sign_in', { code }, { authorization: '', 'x-forwarded-for': from });
  const guesses = async (count: number) =>
    Promise.all(Array.from({ length: count }, async () => (await signIn(randomBytes(20).toString('hex'))).status));
  await guesses(40);
  codeQueries = 0;
  const statuses = await guesses(200);
  // Every three seconds one guess is looked up again. The list of codes is read once for all that wait for it.
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(150);
  expect(new Set([...statuses, 401])).toEqual(new Set([401, 429]));
  expect(codeQueries).toBeLessThan(50);

  const code = await service.app.links.create();
  expect(await signIn(code)).toMatchObject({ status: 201, body: { name: 'console' } });
  expect((await signIn(code)).status).not.toBe(201);
});

test('an IPv6 client is its /64, and another address is not counted along', async () => {
  const statuses: number[] = [];
  for (let turn = 0; turn < 80; turn++) {
    statuses.push((await guess(2000 + turn, `2001:db8:7:7::${turn.toString(16)}`)).status);
  }
  expect(statuses).toContain(429);
  expect((await guess(3000, '2001:db8:7:8::1')).status).toBe(401);
});

test('the same wrong key, sent repeatedly, is looked up once', async () => {
  await guess(4000, '203.0.113.9');
  queries = 0;
  for (let turn = 0; turn < 10; turn++) expect((await guess(4000, '203.0.113.9')).status).toBe(401);
  expect(queries).toBe(0);
});

test('a websocket is counted for the client behind the proxy, and the audit log has that address', async () => {
  const socket = (path: string, key: string, from: string) =>
    upgrade(`${service.url.replace('http', 'ws')}${path}`, {
      authorization: `Bearer ${key}`,
      'x-forwarded-for': from,
    });
  const terminal = '/browsers/none/process/00000000-0000-4000-8000-000000000000/attach';
  for (const [path, from] of [
    ['/connect', '203.0.113.10'],
    [terminal, '203.0.113.11'],
  ] as const) {
    const statuses: number[] = [];
    for (let turn = 0; turn < 80; turn++)
      statuses.push((await socket(path, `sk_${path.length}${String(turn).padStart(40, '0')}`, from)).status);
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
  }
  expect((await guess(5000, '203.0.113.12')).status).toBe(401);

  await socket('/connect?pool=none', service.key, '203.0.113.13');
  const since = new Date(Date.now() - 3_600_000).toISOString();
  const until = new Date(Date.now() + 60_000).toISOString();
  const { body } = await service.call('GET', `/audit-logs?start=${since}&end=${until}&limit=100`);
  const entry = body.find(({ path }: { path: string }) => path === '/connect');
  expect(entry).toMatchObject({ status: 404, client_ip: '203.0.113.13' });
});
