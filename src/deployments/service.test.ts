import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newDeployment } from '../../test/support/deployment-rows.ts';
import { openTestStore } from '../../test/support/store.ts';
import { errors } from '../errors.ts';
import { orgStore } from '../org/store.ts';
import { storageService } from '../org/storage.ts';
import { openKeys, secretStore } from '../store/secrets.ts';
import { sql } from '../store/sql.ts';
import { appStore } from './app-store.ts';
import { deploymentSecrets } from './secrets.ts';
import { deploymentService, type NewSource } from './service.ts';
import { deploymentStore } from './store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
let service: ReturnType<typeof deploymentService>;
let short = false;
beforeAll(async () => {
  store = await openTestStore();
  const { db } = store;
  await orgStore(db).ensureDefaultProject('proj');
  service = deploymentService({
    db,
    secrets: deploymentSecrets({
      secrets: secretStore(db, await openKeys(store.dataDir, '')),
      publicUrl: () => 'http://127.0.0.1:1',
    }),
    keys: { removeHidden: async () => {} },
    region: 'local.zone-a',
    refusal: () => undefined,
    endBrowsers: async () => {},
    storage: storageService({ db, nodeId: 'node', mostBytes: 2 ** 20 }),
    waitForDisk: async () => {
      if (short) throw errors.storage_full({ path: '/data' });
    },
    history: { note() {} },
  });
});
afterAll(() => store?.close());
beforeEach(async () => {
  short = false;
  await store.db.rows(sql`delete from deployments`);
});

const source = (env: Record<string, string> = {}): NewSource => ({
  version: 'latest',
  force: false,
  region: undefined,
  env,
  source: { git: { type: 'github', url: 'https://git.example/app', ref: 'main', entrypoint: 'index.js' } },
});
const claims = () => store.db.rows(sql`select id from storage_claims`);

test('a project has so many deployments in line, however many are asked for at once', async () => {
  const rows = deploymentStore(store.db);
  for (let at = 0; at < 48; at++) await rows.insert(newDeployment({ id: `${at}` }));
  const both = await Promise.allSettled(Array.from({ length: 5 }, () => service.create('proj', source())));
  expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  expect(both.find((end) => end.status === 'rejected')?.reason).toMatchObject({
    code: 'deployment_queue_full',
    message: expect.stringContaining('50 deployments'),
  });
  expect(await rows.countWaiting('proj')).toBe(50);
  await service.stop('0', null);
  await service.create('proj', source());
});

test('the variables of a deployment count for its project until it stops, and none is taken without room', async () => {
  const large = source({ A: 'x'.repeat(400 * 1024) });
  const { id } = await service.create('proj', large);
  await service.create('proj', large);
  await expect(service.create('proj', large)).rejects.toMatchObject({ code: 'project_storage_full' });
  expect(await claims()).toEqual([]);
  await service.stop(id, null);
  await service.create('proj', large);
});

test('none is taken when the disk has only its reserve left', async () => {
  short = true;
  await expect(service.create('proj', source())).rejects.toMatchObject({ code: 'storage_full' });
});

test('pages of deployments and apps are cut where they have many bytes, and say so', async () => {
  const rows = deploymentStore(store.db);
  const names = Array.from({ length: 200 }, (_, at) => `${'X'.repeat(250)}${at}`);
  for (let at = 0; at < 100; at++) {
    await rows.insert(newDeployment({ id: `${at}`, env_names: names }));
    await appStore(store.db).give({
      id: `app ${at}`,
      project_id: 'proj',
      app_name: `${at}`,
      version: 'latest',
      deployment_id: `${at}`,
      actions: [{ name: 'run' }],
    });
  }
  for (const page of [service.list, service.apps]) {
    const seen: string[] = [];
    for (let [more, offset] = [true, 0]; more; offset = seen.length) {
      const { rows: some, cut } = await page('proj', { limit: 100, offset });
      expect(JSON.stringify(some).length).toBeLessThan(5 * 2 ** 20);
      seen.push(...some.map(({ id }) => id));
      more = cut;
    }
    expect(new Set(seen).size).toBe(100);
    expect((await page('proj', { limit: 100, offset: 0 })).cut).toBe(true);
  }
  await store.db.rows(sql`delete from apps`);
});

test('the bytes of a build are not counted after its deployment was stopped', async () => {
  const rows = deploymentStore(store.db);
  await rows.insert(newDeployment({ id: 'one' }));
  await rows.claim('node');
  await rows.setBuilt('one', 7);
  const bytes = () => store.db.row(sql`select build_bytes from deployments`);
  expect(await bytes()).toEqual({ build_bytes: '7' });
  await service.stop('one', null);
  await rows.setBuilt('one', 7);
  expect(await bytes()).toEqual({ build_bytes: '0' });
});
