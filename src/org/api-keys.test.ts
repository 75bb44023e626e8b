import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { sql } from '../store/sql.ts';
import { apiKeyService } from './api-keys.ts';
import { orgStore } from './store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  store = await openTestStore();
  await orgStore(store.db).ensureDefaultProject('proj');
});
afterAll(() => store?.close());

test('a project has a bounded number of valid keys, created or rotated; expired keys do not count', async () => {
  const { create, rotate, operator } = apiKeyService({ db: store.db, changed() {} });
  const one = await create(operator, { name: 'one', project_id: 'proj' });
  await store.db.rows(sql`insert into api_keys (id, name, hash, lookup, masked_key, project_id, created_by)
    select 'key_' || n, 'n', '', n::text, '', 'proj', '' from generate_series(1, 999) n`);
  const refused = { code: 'api_key_limit_reached' };
  await expect(create(operator, { name: 'more', project_id: 'proj' })).rejects.toMatchObject(refused);
  await expect(rotate(operator, one.id, {})).rejects.toMatchObject(refused);
  await create(operator, { name: 'of the organisation' });
  await store.db.rows(sql`update api_keys set expires_at = now() - interval '1 day' where id = 'key_1'`);
  await create(operator, { name: 'more', project_id: 'proj' });
  const lookups = await orgStore(store.db).keyLookups();
  expect([lookups.has('1'), lookups.has('2')]).toEqual([false, true]);
  const replaced = await rotate(operator, one.id, { expire_in_days: 0 });
  expect(replaced.key).not.toBe(one.key);
});
