import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { silent } from '../lib/log.ts';
import { sql } from '../store/sql.ts';
import { auditService } from './audit.ts';
import { auditStore } from './audit-store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => void (store = await openTestStore()));
afterAll(() => store?.close());

test('an export of long entries comes in chunks of a bounded size, each entry once', async () => {
  await store.db.rows(sql`insert into audit_log
      (auth_strategy, user_id, email, service, status, method, path, route, domain, duration_ms, client_ip, user_agent)
    select 'api_key', 'key', '', 'browsers', 404, 'DELETE', '/browsers/' || repeat('x', 2000), '/browsers/:id', '', 1, '::1', repeat('y', 500)
    from generate_series(1, 5000)`);
  const audit = auditService({ db: store.db, quick: store.db, most: 1000, log: silent });
  const caller = { keyId: 'key', keyName: 'key', projectId: null };
  const start = new Date(Date.now() - 3_600_000).toISOString();
  const filters = { start, end: new Date(Date.now() + 3_600_000).toISOString(), limit: 50_000, format: 'jsonl' };
  const seen = new Set<string>();
  let rows = 0;
  for (let cursor: string | undefined, more = true; more;) {
    const chunk = await audit.exportChunk(caller, { ...filters, ...(cursor && { cursor }) });
    expect(chunk.body.length).toBeLessThan(6 * 2 ** 20);
    rows += chunk.rows;
    for (const line of chunk.body.toString().trim().split('\n')) seen.add(JSON.parse(line).event_id);
    cursor = chunk.next;
    more = cursor !== undefined;
  }
  expect({ rows, seen: seen.size }).toEqual({ rows: 5000, seen: 5000 });
});

test('more old entries are removed than one statement takes', async () => {
  await store.db.rows(sql`update audit_log set timestamp = now() - interval '40 days'`);
  await store.db.rows(sql`insert into audit_log
      (auth_strategy, user_id, email, service, status, method, path, route, domain, duration_ms, client_ip, user_agent, timestamp)
    select 'api_key', 'key', '', 'browsers', 404, 'DELETE', '/', '/', '', 1, '::1', '', now() - interval '40 days' from generate_series(1, 6000)`);
  expect(await auditStore(store.db).removeOlderThan(30)).toBe(11_000);
});
