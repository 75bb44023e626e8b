import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { sql } from './sql.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => void (store = await openTestStore()));
afterAll(() => store?.close());

test.each([
  [[]],
  [['']],
  [['a', 'b', 'null', 'NULL', null]],
  [['a b', 'c,d', '{e}', '\n', '']],
  [['"', '\\', '\\"', '"\\', '\\\\"', ',"', '",', null, 'x']],
  [['é', '😀', '\u{1f600},"\\']],
  [[null]],
])('%j is read as it was written', async (texts) => {
  expect(await store.db.row(sql`select ${texts}::text[] as texts`)).toEqual({ texts });
});
