import { afterAll, beforeAll, expect, test } from 'vitest';
import { newRow } from '../../test/support/session-rows.ts';
import { openTestStore } from '../../test/support/store.ts';
import { orgStore } from '../org/store.ts';
import { policyOf } from './policy.ts';
import { sessionStore } from './store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  store = await openTestStore();
  await orgStore(store.db).ensureDefaultProject('proj_test');
});
afterAll(() => store?.close());

const policy = (bytes: number) => ({ Note: 'x'.repeat(bytes) });

test('a policy has so many names and values', () => {
  const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 0]));
  expect(policyOf({ engine_policy: names(4000) })).toBeDefined();
  expect(() => policyOf({ engine_policy: names(49_000) })).toThrow('at most 10000 names and values');
  expect(() => policyOf({ chrome_policy: { Deep: Array.from({ length: 20_000 }, () => 0) } })).toThrow('chrome_policy');
});

test('a page of sessions is cut where their policies are large, and the next one begins there', async () => {
  const sessions = sessionStore(store.db);
  for (let at = 0; at < 6; at++)
    await sessions.insert(
      newRow({ id: `s${at}`, policy: at < 4 ? policy(100_000) : null, invocation_id: 'inv' }),
      'live',
    );
  const page = (offset: number) =>
    sessions.list({ projectId: 'proj_test', status: 'all', query: null, tags: {}, limit: 4, offset });
  const first = await page(0);
  expect(first.rows.map(({ id }) => id)).toEqual(['s5', 's4', 's3', 's2']);
  expect(first.cut).toBe(true);
  expect(await page(4)).toMatchObject({ rows: [{ id: 's1' }, { id: 's0' }], cut: false });
  expect((await sessions.ofInvocation('inv')).map(({ id, policy }) => [id, policy])).toEqual(
    Array.from({ length: 6 }, (_, at) => [`s${at}`, null]),
  );
});

test('an ended session keeps a small policy only, however it ended', async () => {
  const sessions = sessionStore(store.db);
  for (const id of ['ends', 'lost']) {
    await sessions.insert(newRow({ id: `${id} large`, node_id: id, policy: policy(20_000) }), 'live');
    await sessions.insert(newRow({ id: `${id} small`, node_id: id, policy: policy(1000) }), 'live');
  }
  for (const size of ['large', 'small']) {
    expect((await sessions.apply(`ends ${size}`, 'stop_requested'))?.policy).not.toBeNull();
    await sessions.apply(`ends ${size}`, 'cleaned_up', { reason: 'deleted' });
  }
  await sessions.settleAll('lost', 'node_lost');
  for (const id of ['ends', 'lost']) {
    expect((await sessions.find(`${id} large`))?.policy).toBeNull();
    expect((await sessions.find(`${id} small`))?.policy).toEqual(policy(1000));
  }
});
