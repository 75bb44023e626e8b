import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { sql } from '../store/sql.ts';
import { auditStore } from './audit-store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  store = await openTestStore();
});
afterAll(() => store?.close());

test('entries older than the days they are kept for are removed, and no others', async () => {
  const audit = auditStore(store.db);
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
