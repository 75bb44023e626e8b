import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { destinations } from '../chromium/egress/destinations.ts';
import { EgressError } from '../chromium/egress/refusals.ts';
import { silent } from '../lib/log.ts';
import { orgStore } from '../org/store.ts';
import { openKeys, secretStore } from '../store/secrets.ts';
import { sql } from '../store/sql.ts';
import type { Reach } from './checker.ts';
import { proxyService } from './service.ts';
import { proxyStore } from './store.ts';
import { upstreams } from './upstreams.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
let secrets: ReturnType<typeof secretStore>;
beforeAll(async () => {
  store = await openTestStore();
  secrets = secretStore(store.db, await openKeys(store.dataDir, ''));
  await orgStore(store.db).ensureDefaultProject('proj');
});
afterAll(() => store.close());

const running: ReturnType<typeof proxyService>[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((service) => service.close()));
  await store.db.rows(sql`delete from proxies`);
});

/** A node's service that opens no connection: `reach` returns the result. */
function node(reach: Reach, changes: Partial<Parameters<typeof proxyService>[0]> = {}) {
  const service = proxyService({
    db: store.db,
    secrets,
    upstreams: upstreams({}),
    refuseHost: async () => undefined,
    userOf: async () => undefined,
    reach,
    checkUrl: 'http://exit.test/',
    checkMinutes: 15,
    log: silent,
    ...changes,
  });
  running.push(service);
  return service;
}
const config = { host: 'proxy.test', port: 3128, username: 'ann', password: 'open-sesame' };
const answer: Reach = async () => ({ status: 200, body: '203.0.113.7', latencyMs: 5 });

test('a proxy of the operator’s is spoken to as the operator says: another protocol is refused, but not the default', async () => {
  const isp = { protocol: 'http', host: 'gate.test', port: 3128, places: {} } as const;
  const service = node(answer, { upstreams: upstreams({ isp }) });
  for (const protocol of ['http', 'https', undefined] as const)
    expect(await service.create('proj', { type: 'isp', ...(protocol && { protocol }) })).toMatchObject({
      protocol: 'http',
    });
  await expect(service.create('proj', { type: 'isp', protocol: 'socks5' })).rejects.toMatchObject({
    code: 'invalid_input',
    message: expect.stringMatching(/^protocol is http for isp proxies/),
  });
});

test.each(['127.0.0.1', '[::1]', '::1', 'fd00::7', '::ffff:10.0.0.1', '0x7f.1', 'localhost'])(
  'a proxy at %s is refused before anything is kept of it',
  async (host) => {
    const allow = destinations({});
    const refuseHost = (name: string, port: number) =>
      allow.check(name, port).then(
        () => undefined,
        (error: EgressError) => error,
      );
    const creating = node(answer, { refuseHost }).create('proj', { type: 'custom', config: { ...config, host } });
    await expect(creating).rejects.toMatchObject({ code: 'proxy_host_refused' });
  },
);

test('a project has 1000 proxies at most, also when they are created at the same time on several nodes', async () => {
  await store.db.rows(sql`insert into proxies (id, project_id, type, protocol, config, next_check_at)
    select 'p' || number, 'proj', 'custom', 'http', '{"host": "proxy.test", "port": 1}', 'infinity'
    from generate_series(1, 998) number`);
  const nodes = [node(answer, { checkMinutes: 0 }), node(answer, { checkMinutes: 0 })];
  const create = (at: number) => nodes[at % 2]!.create('proj', { type: 'custom', config });
  const created = await Promise.allSettled(Array.from({ length: 6 }, (_, at) => create(at)));
  expect(created.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  for (const each of created)
    if (each.status === 'rejected') expect(each.reason).toMatchObject({ status: 409, code: 'proxy_limit_reached' });
  await nodes[0]!.remove('proj', 'p1');
  expect(await create(1)).toMatchObject({ type: 'custom' });
});

describe('scheduled checks', () => {
  test('are done by one node each', async () => {
    const off = node(answer, { checkMinutes: 0 });
    const ids = await Promise.all(
      Array.from({ length: 12 }, async () => (await off.create('proj', { type: 'custom', config })).id!),
    );
    const asked: string[] = [];
    const reach: Reach = async (proxy, url) => {
      asked.push(`${proxy.host} ${proxy.login?.password} ${url.href}`);
      return answer(proxy, url);
    };
    const nodes = [node(reach), node(reach), node(reach)];
    for (const each of nodes) each.start();
    const statuses = async () => (await off.list('proj', { limit: 100, offset: 0 })).map(({ status }) => status);
    await expect.poll(statuses).toEqual(ids.map(() => 'available'));
    for (const each of nodes) each.start(); // none is due any more
    await Promise.all(nodes.map((each) => each.close()));
    expect(asked).toEqual(ids.map(() => 'proxy.test open-sesame http://exit.test/'));
  });

  test('take turns between projects', async () => {
    await orgStore(store.db).insertProject('other', 'other');
    const off = node(answer, { checkMinutes: 0 });
    for (let at = 0; at < 9; at++) await off.create('proj', { type: 'custom', config });
    const { id } = await off.create('other', { type: 'custom', config });
    const rows = await proxyStore(store.db).takeDue(4, 15);
    expect(rows).toHaveLength(4);
    expect(rows.map((row) => row.id)).toContain(id);
  });

  test('report when a proxy fails, keep its last address, and report when it works again', async () => {
    let there = true;
    const service = node(async (proxy, url) => {
      if (!there) throw new EgressError('proxy_unreachable', 'The proxy could not be reached.');
      return answer(proxy, url);
    });
    const { id } = await service.create('proj', { type: 'custom', config });
    const look = async () => {
      await store.db.rows(sql`update proxies set next_check_at = now()`);
      service.start();
      return (await service.get('proj', id!)).status;
    };
    await expect.poll(look).toBe('available');
    there = false;
    await expect.poll(look).toBe('unavailable');
    expect(await service.get('proj', id!)).toMatchObject({ ip_address: '203.0.113.7' });
    expect(await service.get('proj', id!)).not.toHaveProperty('latency_ms');
    there = true;
    await expect.poll(look).toBe('available');
  });

  test('end with the service, and no request is sent afterwards', async () => {
    let asked = 0;
    const service = node(async (proxy, url) => {
      asked++;
      return answer(proxy, url);
    });
    await service.close();
    await service.create('proj', { type: 'custom', config });
    service.start();
    expect(asked).toBe(0);
  });
});

describe('a check', () => {
  test.each([
    ['203.0.113.7\n', '203.0.113.7'],
    ['{"ip":"2001:db8::1"}', '2001:db8::1'],
    ['{"country":"DE","origin":"203.0.113.8"}', '203.0.113.8'],
  ])('reads the address from %j', async (body, ip) => {
    const service = node(async () => ({ status: 200, body, latencyMs: 5 }), { checkMinutes: 0 });
    const { id } = await service.create('proj', { type: 'custom', config });
    expect(await service.check('proj', id!, undefined)).toMatchObject({ ip_address: ip, latency_ms: 5 });
  });

  test.each<[string, number]>([
    ['<html>Welcome</html>', 200],
    ['203.0.113.7', 503],
    ['{"ip":5}', 200],
    ['', 200],
    ['[', 200],
  ])('fails on %j with status %i', async (body, status) => {
    const service = node(async () => ({ status, body, latencyMs: 5 }), { checkMinutes: 0 });
    const { id } = await service.create('proj', { type: 'custom', config });
    await expect(service.check('proj', id!, undefined)).rejects.toMatchObject({ code: 'proxy_check_failed' });
    expect(await service.get('proj', id!)).toMatchObject({ status: 'unavailable' });
  });
});

test('a password is sealed, and removed with its proxy', async () => {
  const service = node(answer, { checkMinutes: 0 });
  const { id } = await service.create('proj', { type: 'custom', config });
  const sealed = () => store.db.rows<{ envelope: string }>(sql`select envelope from secrets where owner = ${id}`);
  expect(await sealed()).toEqual([{ envelope: expect.stringMatching(/^v1\./) }]);
  expect((await service.endpoint('proj', id!, 'label')).login).toEqual({ username: 'ann', password: 'open-sesame' });
  await service.remove('proj', id!);
  expect(await sealed()).toEqual([]);
  await expect(service.endpoint('proj', id!, 'label')).rejects.toMatchObject({ code: 'invalid_input' });
});
