import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { sql } from './sql.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => void (store = await openTestStore()));
afterAll(() => store.close());

test('the database ends an idle transaction, which is a 503 and does not end the service', async () => {
  const standing = store.db.transaction(async (tx) => {
    await tx.rows(sql`set local idle_in_transaction_session_timeout = '50ms'`);
    await tx.rows(sql`select pg_advisory_xact_lock(1)`);
    await sleep(500);
    await tx.rows(sql`select 1`);
  });
  standing.catch(() => {}); // awaited below; it may reject before
  await sleep(250);
  await store.db.transaction(async (tx) => void (await tx.rows(sql`select pg_advisory_xact_lock(1)`))); // its locks are free
  await expect(standing).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(await store.db.rows(sql`select 1 as one`)).toEqual([{ one: 1 }]);
});

test('every connection has that limit', async () => {
  for (const db of [store.db, store.quick]) {
    expect(await db.row(sql`show idle_in_transaction_session_timeout`)).toEqual({
      idle_in_transaction_session_timeout: '8s',
    });
  }
});
