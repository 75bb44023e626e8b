import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newDeployment } from '../../test/support/deployment-rows.ts';
import { openTestStore } from '../../test/support/store.ts';
import { orgStore } from '../org/store.ts';
import { sql } from '../store/sql.ts';
import { invocationStore } from './invocation-store.ts';
import { logStore } from './log-store.ts';
import { deploymentStore, type DeploymentRow } from './store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  store = await openTestStore();
  await orgStore(store.db).ensureDefaultProject('proj');
});
afterAll(() => store?.close());
beforeEach(async () => {
  await store.db.rows(sql`delete from invocations`);
  await store.db.rows(sql`delete from deployments`);
  await store.db.rows(sql`update projects set max_concurrent_invocations = null`);
  for (const id of ['one', 'two']) await deploymentStore(store.db).insert(newDeployment({ id }));
});

const rows = () => invocationStore(store.db);
const asked = (id: string, deployment_id: string) => ({
  id,
  project_id: 'proj',
  deployment_id,
  app_name: 'app',
  version: 'latest',
  action_name: 'run',
  payload: null,
  timeout_seconds: 900,
});
const insert = (id: string, deployment_id = 'one') => rows().insert(asked(id, deployment_id));
const claim = async (most = 10, node = 'node') => (await rows().claim(node, most))?.id;

test('invocations are taken in their order, each by one node', async () => {
  for (const id of ['a', 'b', 'c', 'd']) await insert(id);
  const taken = await Promise.all(['x', 'y', 'x', 'y', 'x'].map((node) => claim(10, node)));
  expect(taken.filter((id) => id !== undefined).sort()).toEqual(['a', 'b', 'c', 'd']);
  expect(await claim()).toBeUndefined();
});

test('a project and a deployment run as many as they may, however many ask at once', async () => {
  for (const id of ['a', 'b', 'c']) await insert(id);
  await insert('other', 'two');
  const taken = await Promise.all(Array.from({ length: 4 }, () => claim(2)));
  expect(taken.filter((id) => id !== undefined).sort()).toEqual(['a', 'b', 'other']);
  await store.db.rows(sql`update projects set max_concurrent_invocations = 3`);
  expect(await claim()).toBeUndefined();
  await rows().finish('other', { status: 'succeeded', output: '1' }, 'node');
  expect(await claim()).toBe('c');
});

test('an invocation ends once; the node that runs it and a client cannot both end it', async () => {
  await insert('a');
  await claim();
  expect(await rows().finish('a', { status: 'failed', reason: 'It was cancelled.' })).toMatchObject({
    status: 'failed',
  });
  expect(await rows().finish('a', { status: 'succeeded', output: '1' }, 'node')).toBeUndefined();
  expect(await rows().find('a')).toMatchObject({ status: 'failed', output: null });
  expect(await rows().overAmong(['a', 'gone'])).toEqual(['a', 'gone']);
});

test('what a lost node ran has failed, and what waits stays in the queue', async () => {
  for (const id of ['a', 'b']) await insert(id);
  await claim(10, 'lost');
  expect((await rows().failOn('lost', 'The node that ran it was lost.')).map(({ id }) => id)).toEqual(['a']);
  expect(await claim(10, 'other')).toBe('b');
});

test('the rows of invocations that end with their deployment or their node have no payloads', async () => {
  for (const id of ['a', 'b']) await rows().insert({ ...asked(id, 'one'), payload: '"large"' });
  await claim(10, 'lost');
  const ended = [
    ...(await rows().failOn('lost', 'The node that ran it was lost.')),
    ...(await rows().failOf('one', '')),
  ];
  expect(ended.map(({ id }) => id)).toEqual(['a', 'b']);
  expect(JSON.stringify(ended)).not.toContain('large');
});

test('a deployment is built by one node, and waits again when that node is lost, but not for ever', async () => {
  const deployments = deploymentStore(store.db);
  const built = await Promise.all([deployments.claim('x'), deployments.claim('y'), deployments.claim('z')]);
  expect(
    built
      .map((row) => row?.id)
      .filter((id) => id !== undefined)
      .sort(),
  ).toEqual(['one', 'two']);
  const mine = built.find((row) => row?.node_id === 'x') ?? built.find((row) => row !== undefined)!;
  expect(await deployments.releaseBuilds(mine.node_id!, 2)).toEqual([mine.id]);
  expect(await deployments.claim('x')).toMatchObject({ id: mine.id, attempts: 2 });
  await deployments.releaseBuilds('x', 2);
  expect(await deployments.find(mine.id)).toMatchObject({ status: 'failed', status_reason: expect.any(String) });
  expect(await deployments.apply(mine.id, 'stop')).toBeUndefined();
});

test('lines keep their order, are read from where one was, and are forgotten by age', async () => {
  const logs = logStore(store.db);
  const at = new Date();
  await logs.add('x', [
    { at, message: 'one' },
    { at, message: 'two' },
  ]);
  await logs.add('x', [{ at: new Date(0), message: 'old' }]);
  const first = await logs.after('x', '0', null, 2);
  expect(first.map(({ message }) => message)).toEqual(['one', 'two']);
  expect((await logs.after('x', first[1]!.id, null, 2)).map(({ message }) => message)).toEqual(['old']);
  expect((await logs.after('x', '0', new Date(1000), 9)).map(({ message }) => message)).toEqual(['one', 'two']);
  await logs.removeOlderThan(1);
  expect((await logs.after('x', '0', null, 9)).map(({ message }) => message)).toEqual(['one', 'two']);
});

test('a project that runs fewer comes first, however long the queue of another is', async () => {
  await store.db.rows(sql`insert into projects (id, name) values ('other', 'other') on conflict do nothing`);
  await store.db.rows(sql`update deployments set project_id = 'other' where id = 'two'`);
  for (const id of ['a', 'b', 'c']) await insert(id);
  await rows().insert({ ...asked('late', 'two'), project_id: 'other' });
  expect([await claim(), await claim(), await claim()]).toEqual(['a', 'late', 'b']);
});

test('a page of large invocations is cut, and says so', async () => {
  const payload = JSON.stringify('x'.repeat(5 * 2 ** 20));
  for (const id of ['a', 'b', 'c']) await rows().insert({ ...asked(id, 'one'), payload });
  const page = (offset: number) => rows().list('proj', { limit: 20, offset }, null);
  expect(await page(0)).toMatchObject({ rows: [{ id: 'c' }], cut: true });
  expect(await page(1)).toMatchObject({ rows: [{ id: 'b' }], cut: true });
  expect(await page(2)).toMatchObject({ rows: [{ id: 'a' }], cut: false });
  expect(await rows().counts('proj')).toEqual({ running: 0, queued: 3, bytes: 3 * payload.length });
});

test('lines are read in portions of a bounded size', async () => {
  const logs = logStore(store.db);
  const line = { at: new Date(), message: 'x'.repeat(64 * 1024) };
  await logs.add(
    'flood',
    Array.from({ length: 10 }, () => line),
  );
  let [after, portions] = ['0', 0];
  for (let lines = await logs.after('flood', after, null, 500); lines.length > 0; portions++) {
    expect(lines.length).toBeLessThanOrEqual(4);
    after = lines.at(-1)!.id;
    lines = await logs.after('flood', after, null, 500);
  }
  expect(portions).toBe(3);
});

test('a project that has filled the disk of a node waits there, and not on another node', async () => {
  await store.db.rows(sql`insert into projects (id, name) values ('other', 'other') on conflict do nothing`);
  await store.db.rows(sql`update deployments set project_id = 'other' where id = 'two'`);
  await insert('greedy');
  await rows().insert({ ...asked('modest', 'two'), project_id: 'other' });
  expect((await rows().claim('full', 10, ['proj']))?.id).toBe('modest');
  expect(await rows().claim('full', 10, ['proj'])).toBeUndefined();
  expect((await rows().claim('empty', 10, []))?.id).toBe('greedy');
  const deployments = deploymentStore(store.db);
  expect((await deployments.claim('full', ['proj']))?.id).toBe('two');
  expect(await deployments.claim('full', ['proj'])).toBeUndefined();
  expect((await deployments.claim('empty', []))?.id).toBe('one');
});

test('builds of projects take turns', async () => {
  await store.db.rows(sql`insert into projects (id, name) values ('other', 'other') on conflict do nothing`);
  const deployments = deploymentStore(store.db);
  const [first] = await store.db.rows<DeploymentRow>(sql`select * from deployments where id = 'one'`);
  await deployments.insert({ ...first!, id: 'late', project_id: 'other', source_bytes: 0 });
  const built = [];
  for (let row = await deployments.claim('node'); row; row = await deployments.claim('node')) built.push(row.id);
  expect(built).toEqual(['one', 'late', 'two']);
});
