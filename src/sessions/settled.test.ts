import { afterAll, beforeAll, expect, test } from 'vitest';
import { newRow } from '../../test/support/session-rows.ts';
import { openTestStore } from '../../test/support/store.ts';
import { sql } from '../store/sql.ts';
import { sessionStore } from './store.ts';

let opened: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  opened = await openTestStore();
  await opened.db.rows(sql`insert into projects (id, name) values ('proj_test', 'test')`);
});
afterAll(() => opened?.close());

test('a launch that settles its own row because it failed does not count as settled by another node', async () => {
  const store = sessionStore(opened.db);
  for (const id of ['failed', 'lost', 'running']) await store.insert(newRow({ id, node_id: id }), 'starting');
  await store.apply('failed', 'lost', { reason: 'did_not_start', detail: 'no sandbox' });
  await store.settleAll('lost', 'node_lost', 10_000);
  expect(await store.settledAmong(['failed', 'lost', 'running'])).toEqual(['lost']);
});
