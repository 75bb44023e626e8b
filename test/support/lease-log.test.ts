import { afterAll, beforeAll, expect, test } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { logLeases } from './lease-log.ts';
import { openTestStore } from './store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => void (store = await openTestStore()));
afterAll(() => store?.close());

test('the log of leases reports a waiter that is served before an earlier one', async () => {
  const { db } = store;
  const faults = await logLeases((query) => db.rows(query));
  await db.rows(sql`alter table pool_waiters drop constraint pool_waiters_pool_id_fkey`); // the line alone, without a pool
  for (const lease of ['first', 'second', 'third'])
    await db.rows(sql`insert into pool_waiters (pool_id, node_id, lease_id) values ('pool', 'node', ${lease})`);
  const serve = (lease: string) =>
    db.rows(sql`update pool_waiters set session_id = 'a browser' where lease_id = ${lease}`);
  await serve('first');
  expect(await faults()).toEqual([]);
  await serve('third');
  expect(await faults()).toEqual(['third was served out of turn']);
});
