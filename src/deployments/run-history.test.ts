import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newDeployment } from '../../test/support/deployment-rows.ts';
import { openTestStore } from '../../test/support/store.ts';
import { silent } from '../lib/log.ts';
import { orgStore } from '../org/store.ts';
import { sql } from '../store/sql.ts';
import { invocationStore } from './invocation-store.ts';
import { logStore } from './log-store.ts';
import { lineWriter } from './logs.ts';
import { runHistory } from './run-history.ts';
import { runHistoryStore } from './run-history-store.ts';
import { deploymentStore } from './store.ts';

const MIB = 2 ** 20;

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  store = await openTestStore();
  await orgStore(store.db).ensureDefaultProject('proj');
  await store.db.rows(sql`insert into projects (id, name) values ('other', 'other')`);
});
afterAll(() => store?.close());
beforeEach(async () => {
  await store.db.rows(sql`delete from run_logs`);
  await store.db.rows(sql`delete from invocations`);
  await store.db.rows(sql`delete from deployments`);
  for (const project_id of ['proj', 'other'])
    await deploymentStore(store.db).insert(newDeployment({ id: `app of ${project_id}`, project_id }));
  await store.db.rows(sql`update deployments set status = 'running'`);
});

const rows = () => invocationStore(store.db);
const left = async () =>
  (await store.db.rows<{ id: string }>(sql`select id from invocations order by finished_at`)).map(({ id }) => id);
const linesLeft = async () => {
  const found = await store.db.rows<{ owner: string }>(sql`select distinct owner from run_logs order by owner`);
  return found.map(({ owner }) => owner);
};

async function invoke(id: string, project_id = 'proj'): Promise<void> {
  await rows().insert({
    id,
    project_id,
    deployment_id: `app of ${project_id}`,
    app_name: 'app',
    version: 'latest',
    action_name: 'run',
    payload: JSON.stringify('x'.repeat(MIB)),
    timeout_seconds: 900,
  });
}

/** An invocation with a payload of 1 MiB, an output of 1 MiB and a log of 1 MiB. */
async function finish(id: string, project_id = 'proj'): Promise<void> {
  await invoke(id, project_id);
  await print(id);
  await rows().finish(id, { status: 'succeeded', output: JSON.stringify('y'.repeat(MIB)) });
}

async function print(owner: string): Promise<void> {
  const lines = lineWriter({ store: logStore(store.db), log: silent }, owner, (line) => line);
  for (let at = 0; at < 16; at++) lines.add('z'.repeat(MIB / 16));
  await lines.close();
}

const history = (projectBytes: number, isShort = false) =>
  runHistory({ store: runHistoryStore(store.db), projectBytes, short: () => isShort, log: silent });

test('the oldest ended invocations go with their logs when a project has too much, and no others', async () => {
  for (const id of ['a', 'b', 'c', 'd']) await finish(id);
  await finish('kept', 'other');
  await invoke('waits');
  expect(await runHistoryStore(store.db).bytesOf('proj')).toBeGreaterThan(12 * MIB);
  const { note, tidy } = history(8 * MIB);
  note('proj', 0);
  await tidy();
  expect(await left()).toEqual(['c', 'd', 'kept', 'waits']);
  expect(await linesLeft()).toEqual(['c', 'd', 'kept']);
  expect(await runHistoryStore(store.db).bytesOf('proj')).toBeLessThan(7.2 * MIB);
});

test('a project that adds much is trimmed at once', async () => {
  for (const id of ['a', 'b', 'c']) await finish(id);
  const { note, close } = history(4 * MIB);
  note('proj', 3 * MIB);
  note('other', 1000);
  await expect.poll(left).toEqual(['c']);
  await close();
});

test('on a short disk a project keeps less', async () => {
  for (const id of ['a', 'b', 'c', 'd']) await finish(id);
  await finish('kept', 'other');
  await history(16 * MIB).tidy();
  expect(await left()).toHaveLength(5);
  await history(16 * MIB, true).tidy();
  expect(await left()).toEqual(['d', 'kept']);
});

test('ended deployments go with their logs and names, running ones keep all but their logs', async () => {
  const deployments = deploymentStore(store.db);
  const env_names = Array.from({ length: 200 }, (_, at) => `${'X'.repeat(250)}${at}`);
  for (let at = 0; at < 30; at++) {
    await deployments.insert(newDeployment({ id: `failed ${at}`, env_names }));
    if ([1, 2, 3].includes(at)) await print(`failed ${at}`);
    await deployments.apply(`failed ${at}`, 'build_failed', { reason: 'x'.repeat(16_000) });
  }
  // It has not been tidied up, so its sealed values are found by its row.
  await store.db.rows(sql`insert into secrets (kind, owner, envelope) values ('deployment env', 'failed 0', '')`);
  await print('app of proj');
  await finish('late');
  const { note, tidy } = history(4 * MIB);
  note('proj', 0);
  await tidy();
  const found = await store.db.rows<{ id: string }>(sql`select id from deployments where project_id = 'proj'`);
  const ids = found.map(({ id }) => id);
  expect(ids).toContain('app of proj');
  expect(ids).toContain('failed 0');
  expect(ids).not.toContain('failed 1');
  expect(ids.length).toBeLessThan(12);
  expect(await linesLeft()).toEqual(['late']);
  expect(await left()).toEqual(['late']);
});

test('the log that a lost node wrote is counted, and not any more when it has expired', async () => {
  await invoke('lost');
  await rows().claim('gone', 10);
  await logStore(store.db).add('lost', [{ at: new Date(Date.now() - 5 * 86_400_000), message: 'x'.repeat(MIB) }]);
  await rows().failOn('gone', 'The node that ran it was lost.');
  const bytes = async () => Number((await rows().find('lost'))!.kept_bytes);
  expect(await bytes()).toBeGreaterThan(2 * MIB);
  await store.db.rows(sql`update invocations set finished_at = now() - interval '5 days'`);
  await logStore(store.db).removeOlderThan(3);
  expect(await bytes()).toBeLessThan(1.1 * MIB);
});
