import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { keyring } from '../lib/seal.ts';
import { apiKeyService } from '../org/api-keys.ts';
import { projectService } from '../org/projects.ts';
import { eventBus } from '../events.ts';
import { secretStore } from '../store/secrets.ts';
import { sql } from '../store/sql.ts';
import { consoleLinks, linkMinutes } from './links.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => void (store = await openTestStore()));
afterAll(() => store?.close());

const ring = (byte: number) => {
  const keys = keyring([Buffer.alloc(32, byte)]);
  return { ring: () => keys, reread: async () => {} };
};

function room({ now = Date.now, key = 1 } = {}) {
  const keys = apiKeyService({ db: store.db, changed: () => {} });
  const links = consoleLinks({ db: store.db, secrets: secretStore(store.db, ring(key)), keys, now });
  return { keys, links };
}

test('a code is exchanged once, for a key that ends within a day and is in the list', async () => {
  const { keys, links } = room();
  const code = await links.create();
  const made = await links.exchange(code, '10.0.0.1');
  expect(made).toMatchObject({ name: 'console', project_id: null, key: expect.stringMatching(/^sk_/) });
  expect(Date.parse(made.expires_at!) - Date.now()).toBeLessThanOrEqual(24 * 3600 * 1000);
  expect((await keys.get(keys.operator, made.id, false)).created_by.id).toBe('console');
  await expect(links.exchange(code, '10.0.0.1')).rejects.toMatchObject({ code: 'unauthorized' });
});

test('of many that exchange a code at once, one gets a key', async () => {
  const { links } = room();
  const code = await links.create();
  const got = await Promise.allSettled(Array.from({ length: 8 }, () => links.exchange(code, '10.0.0.2')));
  expect(got.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});

test('a code that is too old, of other keys, or never made is refused, and a guesser has to wait', async () => {
  let now = Date.now();
  const { links } = room({ now: () => now });
  const old = await links.create();
  now += linkMinutes * 60_000 + 1;
  await expect(links.exchange(old, '10.0.0.3')).rejects.toMatchObject({ code: 'unauthorized' });
  const foreign = await room({ key: 2 }).links.create();
  await expect(links.exchange(foreign, '10.0.0.3')).rejects.toMatchObject({ code: 'unauthorized' });
  for (let guess = 0; guess < 20; guess++) await links.exchange(`guess${guess}`, '10.0.0.3').catch(() => {});
  await expect(links.exchange('another', '10.0.0.3')).rejects.toMatchObject({ code: 'too_many_bad_keys' });
  for (const from of ['10.0.0.4', '10.0.0.3'])
    await expect(links.exchange(await links.create(), from)).resolves.toMatchObject({ name: 'console' });
  await expect(links.exchange('another', '10.0.0.3')).rejects.toMatchObject({ code: 'too_many_bad_keys' });
});

test('the database has no code', async () => {
  const { links } = room();
  const code = await links.create();
  const rows = await store.db.rows<{ row: string }>(sql`select secrets::text as row from secrets`);
  expect(rows.length).toBeGreaterThan(0);
  for (const { row } of rows) expect(row).not.toContain(code);
});

test('the key of a link for one project is for that project, makes keys that last, and may end itself', async () => {
  const { keys, links } = room();
  const projects = projectService({ db: store.db, events: eventBus(), changed: () => {}, occupants: () => [] });
  const { id } = await projects.create(keys.operator, 'of the link');
  const made = await links.exchange(await links.create(id), '10.0.0.5');
  expect(made.project_id).toBe(id);
  const person = { keyId: made.id, keyName: made.name, projectId: made.project_id };
  expect(await keys.create(person, { name: 'program' })).toMatchObject({ expires_at: null, project_id: id });
  await keys.remove(person, made.id);
  await expect(keys.get(keys.operator, made.id, false)).rejects.toMatchObject({ code: 'api_key_not_found' });
});
