import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newDeployment } from '../../test/support/deployment-rows.ts';
import { openTestStore } from '../../test/support/store.ts';
import { apiKeyService } from '../org/api-keys.ts';
import { orgStore } from '../org/store.ts';
import { openKeys, secretStore } from '../store/secrets.ts';
import { sql } from '../store/sql.ts';
import type { LineWriter } from './logs.ts';
import { publisher } from './publisher.ts';
import { deploymentSecrets } from './secrets.ts';
import { deploymentService } from './service.ts';
import { deploymentStore, type DeploymentRow } from './store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
let service: ReturnType<typeof deploymentService>;
let publish: ReturnType<typeof publisher>;
beforeAll(async () => {
  store = await openTestStore();
  const { db } = store;
  await orgStore(db).ensureDefaultProject('proj');
  const keys = apiKeyService({ db, changed() {} });
  const secrets = deploymentSecrets({
    secrets: secretStore(db, await openKeys(store.dataDir, '')),
    publicUrl: () => 'http://127.0.0.1:1',
  });
  service = deploymentService({
    db,
    secrets,
    keys,
    region: 'local.zone-a',
    refusal: () => undefined,
    endBrowsers: async () => {},
    storage: { claim: () => ({ cover: async () => {}, release: async () => {} }) },
    waitForDisk: async () => {},
    history: { note() {} },
  });
  publish = publisher({ db, secrets, keys, stopReplaced: service.stopReplaced });
});
afterAll(() => store?.close());
beforeEach(async () => {
  for (const row of await left()) await service.stop(row.id, null);
  await store.db.rows(sql`delete from apps`);
  await store.db.rows(sql`delete from deployments`);
});

const left = () => store.db.rows<{ id: string }>(sql`select id from deployments`);
const lines = { flush: async () => {} } as LineWriter;
const built = { entry: 'index.js', apps: [{ name: 'app', actions: [{ name: 'run' }] }] };

/** A deployment that a node builds, with a source of two pieces. */
async function building(id: string, more: Partial<DeploymentRow> = {}): Promise<DeploymentRow> {
  const rows = deploymentStore(store.db);
  await rows.insert(newDeployment({ id, version: '1', source_bytes: 2, ...more }));
  for (const position of [0, 1]) await rows.addChunk(id, 'source', position, Buffer.from('x'));
  return (await rows.claim('node'))!;
}

/** What there is of deployments beside their rows. */
const belongings = () =>
  store.db.rows(sql`select 'chunk' as what from deployment_chunks union all select 'secret' from secrets
    union all select 'key' from api_keys where hidden and deleted_at is null`);
const statusOf = async (id: string) => (await deploymentStore(store.db).find(id))?.status;

test('of two that are published at once with the same version, one has it, and the other leaves no key', async () => {
  const [one, two] = [await building('one'), await building('two')];
  const both = await Promise.allSettled([publish(one, built, lines), publish(two, built, lines)]);
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  const refused = both.find((end) => end.status === 'rejected')!;
  expect(String(refused.reason)).toContain("has a version '1' already");
  const keys = await store.db.rows(sql`select id from api_keys where hidden and deleted_at is null`);
  expect(keys).toHaveLength(1);
});

test('a deployment that was stopped while it was built is not published, and has no key', async () => {
  const one = await building('one');
  await service.stop('one', null);
  await expect(publish(one, built, lines)).rejects.toThrow('stopped while it was built');
  expect(await belongings()).toEqual([]);
  expect(await statusOf('one')).toBe('stopped');
});

test('a deployment that takes an app over ends the deployment that served it, with its key and its files', async () => {
  await publish(await building('one'), built, lines);
  await publish(await building('two', { force: true }), built, lines);
  expect([await statusOf('one'), await statusOf('two')]).toEqual(['stopped', 'running']);
  const rows = await store.db.rows<{ what: string }>(sql`select deployment_id as what from deployment_chunks
    union select owner from secrets union select name from api_keys where hidden and deleted_at is null`);
  expect(rows.map(({ what }) => what).sort()).toEqual(['deployment two', 'two']);
});

test('what an ended deployment still has is removed, however the service that ended it died', async () => {
  await publish(await building('one'), built, lines);
  await building('two');
  const rows = deploymentStore(store.db);
  await rows.apply('one', 'stop'); // and no more
  await rows.releaseBuilds('node', 1);
  await rows.addChunk('two', 'build', 7, Buffer.from('of a build that was still being stored'));
  expect([await statusOf('one'), await statusOf('two')]).toEqual(['stopped', 'failed']);
  await service.tidyEnded(1);
  expect(await belongings()).toEqual([]);
  expect(await rows.untidy(1)).toEqual([]);
});
