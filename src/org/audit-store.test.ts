import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { sql } from '../store/sql.ts';
import { silent } from '../lib/log.ts';
import { auditBound } from './audit-bound.ts';
import { auditStore } from './audit-store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  store = await openTestStore();
});
afterAll(() => store?.close());

const entry = {
  auth_strategy: 'api_key',
  user_id: 'key_test',
  email: '',
  project_id: null,
  service: 'browsers',
  status: 200,
  method: 'GET',
  route: '/browsers',
  domain: '',
  duration_ms: 1,
  client_ip: '127.0.0.1',
  user_agent: 'test',
};

test('entries older than the days they are kept for are removed, and no others', async () => {
  const audit = auditStore(store.db);
  const ages = { '/new': '0 s', '/almost': '29 days 23 hours', '/just': '30 days 1 hour', '/old': '3 years' };
  for (const [path, age] of Object.entries(ages)) {
    await audit.insert({ ...entry, path });
    await store.db.rows(sql`update audit_log set timestamp = now() - ${age}::interval where path = ${path}`);
  }
  expect(await audit.removeOlderThan(30)).toBe(2);
  const left = await store.db.rows<{ path: string }>(sql`select path from audit_log order by id`);
  expect(left.map(({ path }) => path)).toEqual(['/new', '/almost']);
  expect(await audit.removeOlderThan(30)).toBe(0);
});

test('a project keeps its newest entries, and its flood removes none of others', async () => {
  await store.db.rows(sql`delete from audit_log`);
  const audit = auditStore(store.db);
  for (const project_id of ['modest', null]) await audit.insert({ ...entry, project_id, path: '/first' });
  await store.db
    .rows(sql`insert into audit_log (auth_strategy, user_id, email, project_id, service, status, method, path, route, domain,
      duration_ms, client_ip, user_agent)
    select 'api_key', 'key_test', '', 'flood', 'browsers', 200, 'POST', '/' || at, '', '', 1, '', '' from generate_series(1, 12000) at`);
  const bound = auditBound({ store: audit, most: 1000, log: silent });
  for (let at = 0; at < 10; at++) bound.note('flood'); // the last of them trims
  const left = sql`select project_id, count(*)::integer as count, max(path) as last from audit_log group by 1 order by 1`;
  const others = [
    { project_id: 'modest', count: 1, last: '/first' },
    { project_id: null, count: 1, last: '/first' },
  ];
  await expect
    .poll(() => store.db.rows(left))
    .toEqual([{ project_id: 'flood', count: 1000, last: '/12000' }, ...others]);
});
