import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { orgStore } from '../org/store.ts';
import { sql } from '../store/sql.ts';
import { poolStore } from './store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  store = await openTestStore();
  await orgStore(store.db).ensureDefaultProject('proj_test');
});
afterAll(() => store?.close());

test('a page of pools is cut where their policies are large, and a deleted pool keeps none', async () => {
  const pools = poolStore(store.db);
  for (let at = 0; at < 4; at++) {
    const config = { engine_policy: { Note: 'x'.repeat(100_000) } };
    await pools.insert({
      id: `p${at}`,
      project_id: 'proj_test',
      name: null,
      size: 1,
      config,
      profile_id: null,
      extension_ids: [],
    });
  }
  const page = (offset: number) => pools.list('proj_test', { limit: 4, offset });
  expect(await page(0)).toMatchObject({ rows: [{ id: 'p0' }, { id: 'p1' }], cut: true });
  expect(await page(2)).toMatchObject({ rows: [{ id: 'p2' }, { id: 'p3' }], cut: false });
  await pools.remove('p0', false);
  expect(await store.db.row(sql`select config from pools where id = 'p0'`)).toEqual({ config: {} });
});
