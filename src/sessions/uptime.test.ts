import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newRow } from '../../test/support/session-rows.ts';
import { openTestStore } from '../../test/support/store.ts';
import { nodeStore } from '../cluster/store.ts';
import { sql } from '../store/sql.ts';
import { sessionStore } from './store.ts';

let opened: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  opened = await openTestStore();
  await opened.db.rows(sql`insert into projects (id, name) values ('proj_test', 'test')`);
});
afterAll(() => opened?.close());
beforeEach(async () => {
  await opened.db.rows(sql`delete from sessions`);
  await sessionStore(opened.db).insert(newRow({ id: 's', node_id: 'n' }), 'live');
});

/** As another node reads it. */
async function uptime(): Promise<number> {
  return Number((await sessionStore(opened.db).find('s'))!.uptime);
}
const awakeFor = (time: string) =>
  opened.db.rows(sql`update sessions set awake_since = now() - ${time}::interval where id = 's'`);

test('the uptime of a session is read from its row, awake, asleep, awake again and ended', async () => {
  const store = sessionStore(opened.db);
  await awakeFor('10 s');
  expect(await uptime()).toBeGreaterThanOrEqual(10_000);
  await store.setClock('s', { uptimeMs: 12_345, awake: false });
  expect(await uptime()).toBe(12_345);
  await store.setClock('s', { uptimeMs: 12_345, awake: true });
  await awakeFor('20 s');
  expect(await uptime()).toBeGreaterThanOrEqual(32_345);
  await store.apply('s', 'stop_requested', { reason: 'deleted', uptimeMs: 33_333 });
  expect(await uptime()).toBe(33_333);
  await store.setClock('s', { uptimeMs: 1, awake: true }); // late: it has ended
  expect(await uptime()).toBe(33_333);
});

test('a session ran until the last sign of its node', async () => {
  const store = sessionStore(opened.db);
  const node = { life: 'l', internal_url: '', public_url: '', version: '', keys: [], capacity: 1, running: 1 };
  await nodeStore(opened.db).put({ id: 'n', ...node });
  await opened.db.rows(sql`update nodes set heartbeat_at = '2026-01-01T00:00:06Z'`);
  await opened.db.rows(sql`update sessions set uptime_ms = 1000, awake_since = '2026-01-01T00:00:00Z'`);
  await store.settleAll('n', 'service_restarted');
  expect(await uptime()).toBe(7000);
});

test('a node that was given up was silent for a while, which does not count', async () => {
  const store = sessionStore(opened.db);
  await awakeFor('1 hour');
  await store.settleAll('n', 'node_lost', 3_590_000);
  expect(await uptime()).toBeGreaterThanOrEqual(10_000);
  expect(await uptime()).toBeLessThan(600_000);
});

test('a session that stood by when its node was lost keeps its uptime', async () => {
  const store = sessionStore(opened.db);
  await store.setClock('s', { uptimeMs: 5000, awake: false });
  await store.settleAll('n', 'node_lost', 10_000);
  expect(await uptime()).toBe(5000);
});
