import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { sql } from '../store/sql.ts';
import { rateLimit } from './rate-limit.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => void (store = await openTestStore()));
beforeEach(async () => void (await store.db.rows(sql`delete from rate_buckets`)));
afterAll(() => store.close());

const refused = { code: 'rate_limit_exceeded' };
/** Moves the time of the last fill, as if that much time had passed. */
const pass = (time: string) => store.db.rows(sql`update rate_buckets set filled_at = filled_at - ${time}::interval`);

test('nodes take from one bucket, also at the same time', async () => {
  const nodes = [rateLimit(4, store.db)!, rateLimit(4, store.db)!];
  const answers = await Promise.allSettled([0, 1, 0, 1, 0, 1].map((node) => nodes[node]!.take()));
  const left = answers.flatMap((answer) =>
    answer.status === 'fulfilled' ? [answer.value['X-RateLimit-Remaining']] : [],
  );
  expect(new Set(left)).toEqual(new Set(['0', '1', '2', '3']));
  expect(left).toHaveLength(4);
  for (const answer of answers) if (answer.status === 'rejected') expect(answer.reason).toMatchObject(refused);
});

test('a look takes nothing', async () => {
  const limit = rateLimit(2, store.db)!;
  expect((await limit.look())['X-RateLimit-Remaining']).toBe('2');
  await limit.take();
  for (let times = 0; times < 3; times++)
    expect(await limit.look()).toEqual({ 'X-RateLimit-Limit': '2', 'X-RateLimit-Remaining': '1' });
});

test('it fills evenly, up to what a minute allows', async () => {
  const limit = rateLimit(2, store.db)!;
  await limit.take();
  await limit.take();
  await expect(limit.take()).rejects.toMatchObject(refused);
  await pass('31 seconds');
  await limit.take();
  await expect(limit.take()).rejects.toMatchObject(refused);
  await pass('1 hour');
  expect(await limit.take()).toEqual({ 'X-RateLimit-Limit': '2', 'X-RateLimit-Remaining': '1' });
});

test('a clock that is put back stops no client for longer than a minute', async () => {
  const limit = rateLimit(1, store.db)!;
  await limit.take();
  await pass('-1 hour');
  await expect(limit.take()).rejects.toMatchObject(refused); // from here on the new time counts
  await pass('61 seconds');
  await limit.take();
});
