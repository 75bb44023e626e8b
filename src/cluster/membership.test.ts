import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { silent } from '../lib/log.ts';
import { sql } from '../store/sql.ts';
import { NodesDisagree } from './agreement.ts';
import { membership, type MembershipOptions } from './membership.ts';
import { nodeStore } from './store.ts';

type Store = Awaited<ReturnType<typeof openTestStore>>;
let store: Store;
beforeAll(async () => void (store = await openTestStore()));
afterAll(() => store.close());

const members: ReturnType<typeof membership>[] = [];
afterEach(async () => {
  await Promise.all(members.splice(0).map((member) => member.leave()));
  await store.db.rows(sql`delete from nodes`);
});

const where = (id: string) => ({ internalUrl: `http://${id}`, publicUrl: `http://${id}` });

function node(id: string, options: Partial<MembershipOptions> = {}) {
  const member = membership({
    db: store.db,
    quick: store.quick,
    id,
    version: '1',
    keys: () => ['key'],
    load: () => ({ capacity: 4, running: 1 }),
    shared: true,
    settlers: () => [],
    nodesInUse: async () => [],
    givenUp: async () => {},
    onMembers: () => {},
    onFatal: () => {},
    log: silent,
    ...options,
  });
  members.push(member);
  return member;
}

const silence = (id: string) =>
  store.db.rows(sql`update nodes set heartbeat_at = now() - interval '11 seconds' where id = ${id}`);
const ids = async () => (await nodeStore(store.db).list()).map(({ id }) => id).sort();
const until = async (holds: () => boolean | Promise<boolean>) => {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 10));
};

test('exactly one of several nodes settles a silent node, together with its row', async () => {
  await nodeStore(store.db).put({
    id: 'lost',
    life: 'x',
    internal_url: 'http://lost',
    public_url: 'http://lost',
    version: '1',
    keys: ['key'],
    capacity: 1,
    running: 1,
  });
  const settled: string[] = [];
  let failures = 2;
  const survivors = Array.from({ length: 6 }, (_, index) =>
    node(`n${index}`, {
      settlers: () => [
        async (id, tx) => {
          await tx.rows(sql`select pg_sleep(0.05)`);
          if (failures-- > 0) throw new Error('the settler fell over');
          return () => void settled.push(id);
        },
      ],
    }),
  );
  await Promise.all(survivors.map((survivor, index) => survivor.join(where(`n${index}`))));
  await silence('lost');
  await until(async () => {
    await Promise.all(survivors.map((survivor) => survivor.refresh()));
    return settled.length > 0;
  });
  await Promise.all(survivors.map((survivor) => survivor.refresh()));
  expect(settled).toEqual(['lost']);
  expect(await ids()).not.toContain('lost');
});

test('a node that was declared dead ends the sessions that others settled before it serves requests again', async () => {
  const steps: string[] = [];
  let release = () => {};
  const back = node('back', {
    givenUp: () =>
      new Promise<void>((resolve) => {
        steps.push('ending');
        release = () => {
          steps.push('ended');
          resolve();
        };
      }),
  });
  await back.join(where('back'));
  release(); // at the start there is nothing to end
  await back.ready();
  steps.length = 0;
  expect(back.ready()).toBeUndefined();
  await store.db.rows(sql`delete from nodes`);
  await back.refresh();
  expect(await ids(), 'it is listed while it ends them: sessions that it creates at that time are its own').toEqual([
    'back',
  ]);
  const served = back.ready()!.then(() => steps.push('served'));
  await back.refresh(); // heartbeats continue
  release();
  await served;
  expect(steps).toEqual(['ending', 'ended', 'served']);
  expect(back.ready()).toBeUndefined();
});

test('a node that was silent and not declared dead continues to serve', async () => {
  let ended = 0;
  const sleepy = node('sleepy', { givenUp: async () => void ended++ });
  await sleepy.join(where('sleepy'));
  await silence('sleepy');
  await sleepy.refresh();
  expect(sleepy.ready()).toBeUndefined();
  expect(ended, 'when it joined').toBe(1);
  expect(await ids()).toEqual(['sleepy']);
});

test('a node that no other node can declare dead needs no confirmation', () => {
  expect(node('alone', { shared: false }).ready()).toBeUndefined();
});

test('a database that does not answer is a refusal, not a guess', async () => {
  const broken = { rows: () => Promise.reject(new Error('gone')), row: undefined, transaction: undefined } as never;
  const cut = node('cut', { db: broken, quick: broken });
  await cut.join(where('cut'));
  await expect(cut.ready()).rejects.toMatchObject({ code: 'store_unavailable' });
});

test('sessions of absent nodes are settled, sessions of present nodes are not', async () => {
  const settled: string[] = [];
  const member = node('here', {
    nodesInUse: async () => ['here', 'never-seen'],
    settlers: () => [async (id) => () => void settled.push(id)],
  });
  await member.join(where('here'));
  await until(async () => {
    await member.refresh();
    return settled.length > 0;
  });
  expect(new Set(settled)).toEqual(new Set(['never-seen']));
});

test('a node that does not fit does not get in, first or not', async () => {
  const fatal: Error[] = [];
  await node('old').join(where('old'));
  await node('new', { version: '2', onFatal: (error) => void fatal.push(error) }).join(where('new'));
  expect(fatal).toEqual([expect.any(NodesDisagree)]);
  expect(await ids()).toEqual(['old']);
});
