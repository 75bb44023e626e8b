import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { silent } from '../lib/log.ts';
import { visitStore } from './open.ts';
import { sql } from './sql.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => void (store = await openTestStore(undefined, { embedded: true })));
afterAll(() => store.close());

const visit = () => visitStore({ dataDir: store.dataDir, databaseUrl: '', log: silent });

test('a visitor comes in beside a service of the same version, and leaves it running', async () => {
  const visitor = await visit();
  expect(await visitor.db.row(sql`select count(*) > 0 as some from schema_migrations`)).toEqual({ some: true });
  await visitor.close();
  expect(await store.db.row(sql`select 1 as one`)).toEqual({ one: 1 });
});

test('a visitor never migrates a database that a service uses', async () => {
  const newest = sql`select version, name from schema_migrations order by version desc limit 1`;
  const last = (await store.db.row<{ version: number; name: string }>(newest))!;
  // As a service of the version before would have left it.
  await store.db.rows(sql`delete from schema_migrations where version = ${last.version}`);
  await expect(visit()).rejects.toThrow(`used by a running service of an older version: it has no ${last.name} yet`);
  expect(await store.db.row(newest)).toMatchObject({ version: last.version - 1 });
  expect(await store.db.row(sql`select 1 as one`)).toEqual({ one: 1 });
});
