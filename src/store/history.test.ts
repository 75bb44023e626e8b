import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { forgetHistory } from './history.ts';
import { sql } from './sql.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => void (store = await openTestStore()));
afterAll(() => store.close());

const tables = ['sessions', 'pools', 'profiles', 'extensions', 'proxies', 'api_keys', 'projects'] as const;

/** One of each resource in a separate project, deleted at that age or not deleted. */
async function fill(name: string, deleted: string | null): Promise<void> {
  const at = deleted === null ? null : sql`select now() - ${deleted}::interval as at`;
  const when = at && (await store.db.row<{ at: Date }>(at))!.at;
  const { db } = store;
  await db.rows(sql`insert into projects (id, name, deleted_at) values (${name}, ${name}, ${when})`);
  await db.rows(sql`insert into api_keys (id, name, hash, lookup, masked_key, project_id, created_by, deleted_at)
    values (${name}, ${name}, '', ${name}, '', ${name}, '', ${when})`);
  await db.rows(sql`insert into proxies (id, project_id, type, protocol, config, deleted_at)
    values (${name}, ${name}, 'custom', 'http', '{}', ${when})`);
  await db.rows(sql`insert into extensions (id, project_id, size_bytes, checksum, deleted_at)
    values (${name}, ${name}, 0, '', ${when})`);
  await db.rows(sql`insert into profiles (id, project_id, deleted_at) values (${name}, ${name}, ${when})`);
  await db.rows(sql`insert into pools (id, project_id, size, config, profile_id, deleted_at)
    values (${name}, ${name}, 1, '{}', ${name}, ${when})`);
  await db.rows(sql`insert into sessions (id, project_id, node_id, state, headless, stealth, gpu, kiosk_mode, timeout_seconds,
      viewport_width, viewport_height, pool_id, profile_id, deleted_at)
    values (${name}, ${name}, 'n', ${when ? 'stopped' : 'live'}, true, false, false, false, 60, 1, 1, ${name}, ${name}, ${when})`);
}

/** Which of the projects above still have a row in each table. */
async function left(): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const table of tables) {
    const rows = await store.db.rows<{ id: string }>({
      ...sql``,
      name: `left_${table}`,
      text: `select id from ${table} where id in ('old', 'young', 'alive', 'filmed') order by id`,
    });
    found[table] = rows.map(({ id }) => id);
  }
  return found;
}

test('old deleted rows are removed, except those that other rows need', async () => {
  await fill('old', '11 days');
  await fill('young', '9 days');
  await fill('alive', null);
  await fill('filmed', '11 days');
  await store.db.rows(sql`insert into replays (id, session_id, project_id, node_id, framerate)
    values ('r', 'filmed', 'filmed', 'n', 10)`);

  expect(await forgetHistory(store.db, 10)).toBe(tables.length + 3); // of the filmed one: its key, its proxy, its extension
  const all = ['alive', 'filmed', 'young'];
  expect(await left()).toEqual({
    sessions: all,
    pools: all,
    profiles: all,
    extensions: ['alive', 'young'],
    proxies: ['alive', 'young'],
    api_keys: ['alive', 'young'],
    projects: all,
  });

  await store.db.rows(sql`delete from replays`);
  await forgetHistory(store.db, 10);
  expect(new Set(Object.values(await left()).flat())).toEqual(new Set(['alive', 'young']));
});

test('more than one portion goes at once', async () => {
  await store.db.rows(sql`insert into projects (id, name, deleted_at)
    select 'p' || n, 'p' || n, now() - interval '100 days' from generate_series(1, 2500) n`);
  expect(await forgetHistory(store.db, 90)).toBe(2500);
});
