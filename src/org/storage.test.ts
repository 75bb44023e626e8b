import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { storageService } from './storage.ts';

const MB = 2 ** 20;
let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => void (store = await openTestStore()));
afterAll(() => store?.close());

test('of many concurrent claims on the last space, as many succeed as fit', async () => {
  const storage = storageService({ db: store.db, nodeId: 'a', mostBytes: 10 * MB });
  const claims = Array.from({ length: 20 }, () => storage.claim('crowded'));
  const got = await Promise.allSettled(claims.map((claim) => claim.cover(3 * MB)));
  const some = got.filter(({ status }) => status === 'fulfilled').length;
  expect(some).toBeGreaterThanOrEqual(1);
  expect(some).toBeLessThanOrEqual(3);
  await expect(storage.claim('crowded').cover(10 * MB)).rejects.toMatchObject({ code: 'project_storage_full' });
  await storage.claim('another').cover(10 * MB);
  await Promise.all(claims.map((claim) => claim.release()));
  await storage.claim('crowded').cover(10 * MB);
});

test('a claim grows with the written bytes, up to the limit', async () => {
  const storage = storageService({ db: store.db, nodeId: 'a', mostBytes: 10 * MB });
  const claim = storage.claim('growing');
  for (let bytes = MB; bytes <= 10 * MB; bytes += MB) await claim.cover(bytes);
  await expect(claim.cover(10 * MB + 1)).rejects.toMatchObject({ code: 'project_storage_full' });
  await claim.cover(10 * MB);
});

test('unfinished claims of a lost node no longer count', async () => {
  const here = storageService({ db: store.db, nodeId: 'here', mostBytes: 10 * MB });
  const lost = storageService({ db: store.db, nodeId: 'lost', mostBytes: 10 * MB });
  await lost.claim('p').cover(10 * MB);
  await expect(here.claim('p').cover(1)).rejects.toMatchObject({ code: 'project_storage_full' });
  await here.nodeLost('lost');
  await here.claim('p').cover(1);
});

test('without a limit any claim is covered, and the database is not asked', async () => {
  const asked: string[] = [];
  const db = new Proxy(store.db, {
    get(target, name, receiver): unknown {
      asked.push(String(name));
      return Reflect.get(target, name, receiver);
    },
  });
  async function use(mostBytes: number) {
    asked.length = 0;
    const storage = storageService({ db, nodeId: 'a', mostBytes });
    const claim = storage.claim('without a limit');
    await claim.cover(1e15);
    await claim.release();
    expect(await storage.countMadeAgain('a cache', 'without a limit', 1e15)).toBe(true);
    expect(await storage.overfull('without a limit')).toBe(false);
    return asked;
  }
  expect(await use(0)).toEqual([]);
  expect(await use(1e16)).not.toEqual([]); // the same calls, with a limit
});
