import { once } from 'node:events';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { deploymentStore } from '../../src/deployments/store.ts';
import { invocationStore } from '../../src/deployments/invocation-store.ts';
import { auditStore } from '../../src/org/audit-store.ts';
import { sessionStore } from '../../src/sessions/store.ts';
import { sql } from '../../src/store/sql.ts';
import { openTestStore } from '../support/store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => void (store = await openTestStore()));
afterAll(() => store?.close());

const [start, end] = ['2026-01-01T00:00:00Z', '2026-01-30T00:00:00Z'];
const page = { limit: 20, offset: 0 };
const lists: Record<string, { table: string; list: (projectId: string) => Promise<unknown> }> = {
  sessions: {
    table: 'sessions',
    list: (projectId) => sessionStore(store.db).list({ projectId, status: 'all', query: 'x', tags: {}, ...page }),
  },
  invocations: {
    table: 'invocations',
    list: (projectId) => invocationStore(store.db).list(projectId, { query: 'x', ...page }, null),
  },
  deployments: {
    table: 'deployments',
    list: (projectId) => deploymentStore(store.db).list(projectId, { query: 'x', ...page }),
  },
  'entries of the audit log': {
    table: 'audit_log',
    list: (projectId) => auditStore(store.db).list({ start, end, search: 'x' }, projectId, null, 20),
  },
};

/** A search waits for the lock of its table, as it would for the rows of a long history. */
test.each(Object.entries(lists))('slow searches for %s leave connections to others', async (_, { table, list }) => {
  const locked = new EventTarget();
  const unlock = new AbortController();
  onTestFinished(() => unlock.abort());
  const lock = store.db.transaction(async (tx) => {
    await tx.rows({
      ...sql``,
      name: `lock ${table}`,
      text: `lock table ${table} in access exclusive mode`,
      values: [],
    });
    locked.dispatchEvent(new Event('locked'));
    await once(unlock.signal, 'abort');
  });
  await once(locked, 'locked');
  const searches = Array.from({ length: 20 }, (_, at) => list(`project ${at % 5}`));
  const waiting = sql`select count(*)::integer as count from pg_stat_activity where wait_event_type = 'Lock'`;
  await expect.poll(() => store.quick.row(waiting)).toMatchObject({ count: 3 });
  expect(await store.db.row(sql`select 1 as one`)).toEqual({ one: 1 });
  unlock.abort();
  await lock;
  await Promise.all(searches);
});

test('a search has a time limit, and its connection is used again', async () => {
  const slow = store.db.page('proj', sql`select pg_sleep(60)`, 0.1);
  await expect(slow).rejects.toMatchObject({ code: 'search_too_slow', status: 503 });
  expect(await store.db.page('proj', sql`show statement_timeout`)).toEqual([{ statement_timeout: '10s' }]);
  expect(await store.db.rows(sql`show statement_timeout`)).toEqual([{ statement_timeout: '0' }]);
});
