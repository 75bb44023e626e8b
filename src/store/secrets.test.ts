import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { addKey, openKeys, secretStore, type Secrets } from './secrets.ts';
import { sql } from './sql.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
let secrets: Secrets;
beforeAll(async () => {
  store = await openTestStore();
  secrets = secretStore(store.db, await openKeys(store.dataDir, ''));
});
afterAll(() => store?.close());

const envelopes = () =>
  store.db.rows<{ owner: string; envelope: string }>(sql`select owner, envelope from secrets order by owner`);

describe('secrets', () => {
  test('are sealed in the table and open again', async () => {
    await secrets.put('proxy password', 'a', 'hunter2');
    expect(await secrets.get('proxy password', 'a')).toBe('hunter2');
    expect(JSON.stringify(await envelopes())).not.toContain('hunter2');
    await secrets.put('proxy password', 'a', 'changed');
    expect(await secrets.get('proxy password', 'a')).toBe('changed');
    expect(await secrets.get('proxy password', 'no owner')).toBeUndefined();
    await secrets.remove('proxy password', 'a');
    expect(await secrets.get('proxy password', 'a')).toBeUndefined();
  });

  test('do not open in another row', async () => {
    await secrets.put('k', 'mine', 'x');
    await store.db.rows(
      sql`insert into secrets (kind, owner, envelope) select kind, 'thief', envelope from secrets where owner = 'mine'`,
    );
    await expect(secrets.get('k', 'thief')).rejects.toThrow('belongs to another place');
    await secrets.remove('k', 'thief');
  });

  test('are all sealed again by a rotation, and a service that still has the old keys finds the new one', async () => {
    for (let index = 0; index < 5; index++) await secrets.put('k', `r${index}`, `value ${index}`);
    const old = secrets.keys.ring().current;
    await addKey(store.dataDir);
    const rotated = secretStore(store.db, await openKeys(store.dataDir, ''));
    expect(await rotated.reseal()).toEqual({ changed: (await envelopes()).length, unopened: [] });
    expect((await envelopes()).filter(({ envelope }) => envelope.includes(old))).toEqual([]);
    expect(await rotated.reseal()).toEqual({ changed: 0, unopened: [] });
    expect(await secrets.get('k', 'r3')).toBe('value 3');
    await secrets.put('k', 'late', 'x');
    expect(await rotated.get('k', 'late')).toBe('x');
  });

  test('that no key opens are reported by a rotation, which continues with the others', async () => {
    const lost = secretStore(store.db, await openKeys(store.dataDir, 'ab'.repeat(32)));
    await lost.put('k', 'lost', 'x');
    const before = (await envelopes()).find(({ owner }) => owner === 'lost');
    await addKey(store.dataDir);
    const rotated = secretStore(store.db, await openKeys(store.dataDir, ''));
    const { changed, unopened } = await rotated.reseal();
    expect(unopened).toEqual([{ kind: 'k', owner: 'lost' }]);
    expect(changed).toBe((await envelopes()).length - 1);
    expect((await envelopes()).find(({ owner }) => owner === 'lost')).toEqual(before);
    expect(await rotated.get('k', 'r3')).toBe('value 3');
    await secrets.remove('k', 'lost');
  });

  test('an invalid key is refused with its source', async () => {
    await expect(openKeys(store.dataDir, 'hunter2')).rejects.toThrow(/CORRAL_SECRET_KEY.*32 bytes/);
  });
});
