import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newDeployment } from '../../test/support/deployment-rows.ts';
import { openTestStore } from '../../test/support/store.ts';
import { errors } from '../errors.ts';
import { orgStore } from '../org/store.ts';
import { sql } from '../store/sql.ts';
import { appStore } from './app-store.ts';
import { runHub } from './hub.ts';
import { invocationService } from './invocation-service.ts';
import { invocationStore } from './invocation-store.ts';
import { deploymentStore } from './store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  store = await openTestStore();
  await orgStore(store.db).ensureDefaultProject('proj');
  await deploymentStore(store.db).insert(newDeployment({ id: 'one' }));
  await appStore(store.db).give({
    id: 'app',
    project_id: 'proj',
    app_name: 'app',
    version: 'latest',
    deployment_id: 'one',
    actions: [{ name: 'run' }],
  });
});
afterAll(() => store?.close());
beforeEach(() => store.db.rows(sql`delete from invocations`));

const request = { app_name: 'app', version: 'latest', action_name: 'run' };
const waiting = new AbortController().signal;

function service(more: Partial<Parameters<typeof invocationService>[0]> = {}) {
  const hub = runHub();
  const invocations = invocationService({
    db: store.db,
    hub,
    invocationCap: async () => null,
    endBrowsers: async () => {},
    disk: { path: '/', short: () => false },
    waitForDisk: async () => {},
    history: { note() {} },
    ...more,
  });
  return { hub, ...invocations };
}
const queued = async () => (await store.db.rows<{ id: string }>(sql`select id from invocations`)).map(({ id }) => id);

test('an answer waits for the end of the invocation, which a notification reports', async () => {
  const { invoke, hub } = service();
  const answer = invoke('proj', request, waiting);
  await expect.poll(queued).toHaveLength(1);
  const [id] = await queued();
  await invocationStore(store.db).finish(id!, { status: 'succeeded', output: '{"a":1}' });
  hub.hear(`state ${id}`);
  expect(await answer).toEqual({ id, action_name: 'run', status: 'succeeded', output: '{"a":1}' });
});

test('an answer that has waited as long as it may returns the running invocation', async () => {
  const { invoke } = service({ waitMs: 50 });
  const { id, status } = await invoke('proj', request, waiting);
  expect(status).toBe('queued');
  await invocationStore(store.db).claim('node', 10);
  expect(await invocationStore(store.db).find(id)).toMatchObject({ status: 'running', payload: null });
});

test('an end with a lost notification is found when the connection to the database is back', async () => {
  const { invoke, hub } = service();
  const answer = invoke('proj', request, waiting);
  await expect.poll(queued).toHaveLength(1);
  const [id] = await queued();
  await invocationStore(store.db).finish(id!, { status: 'failed', reason: 'It threw.' });
  hub.wakeAll();
  expect(await answer).toMatchObject({ status: 'failed', status_reason: 'It threw.' });
});

test('a disconnected client is not waited for; its invocation stays in the queue', async () => {
  const { invoke } = service();
  const disconnected = new AbortController();
  const answer = invoke('proj', request, disconnected.signal);
  await expect.poll(queued).toHaveLength(1);
  disconnected.abort();
  expect(await answer).toMatchObject({ status: 'queued' });
  expect(await queued()).toHaveLength(1);
});

test('a project has a bounded number of queued invocations and bytes of payloads; one large payload alone is taken', async () => {
  const { invoke } = service({ bounds: { waiting: 2, waitingBytes: 2 ** 20 } });
  const later = { ...request, async: true };
  await invoke('proj', { ...later, payload: JSON.stringify('x'.repeat(2 ** 20)) }, waiting);
  await expect(invoke('proj', { ...later, payload: '1' }, waiting)).rejects.toMatchObject({
    code: 'invocation_queue_full',
    message: expect.stringContaining('1 MiB of payloads'),
  });
  await invocationStore(store.db).claim('node', 10);
  await invoke('proj', later, waiting);
  await invoke('proj', later, waiting);
  await expect(invoke('proj', later, waiting)).rejects.toMatchObject({
    code: 'invocation_queue_full',
    message: expect.stringContaining('2 invocations'),
  });
});

test('requests that arrive at once do not exceed the bound of the queue', async () => {
  const { invoke } = service({ bounds: { waiting: 2, waitingBytes: 2 ** 20 } });
  const later = { ...request, async: true };
  const answers = await Promise.allSettled(Array.from({ length: 20 }, () => invoke('proj', later, waiting)));
  expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  expect(await queued()).toHaveLength(2);
});

test('a payload has at most 4.5 MiB, however many characters that is', async () => {
  const { invoke } = service();
  const later = { ...request, async: true };
  await invoke('proj', { ...later, payload: JSON.stringify('ж'.repeat(2.25 * 2 ** 20 - 1)) }, waiting);
  const payload = JSON.stringify('ж'.repeat(2.25 * 2 ** 20));
  await expect(invoke('proj', { ...later, payload }, waiting)).rejects.toMatchObject({ code: 'invalid_input' });
});

test('none is taken when the disk has only its reserve left, and no client that waits is put behind the limit', async () => {
  const full = service({ waitForDisk: () => Promise.reject(errors.storage_full({ path: '/data' })) });
  await expect(full.invoke('proj', request, waiting)).rejects.toMatchObject({ code: 'storage_full' });
  const limited = service({ invocationCap: async () => 1 });
  await limited.invoke('proj', { ...request, async: true }, waiting);
  await limited.invoke('proj', { ...request, async: true }, waiting);
  await expect(limited.invoke('proj', request, waiting)).rejects.toMatchObject({ code: 'invocation_limit_reached' });
});

test('on a short disk an invocation can be cancelled, and no output is stored for it', async () => {
  const { id } = await service().invoke('proj', { ...request, async: true }, waiting);
  const full = service({ disk: { path: '/data', short: () => true } });
  await expect(full.update('proj', id, { status: 'succeeded', output: '1' })).rejects.toMatchObject({
    code: 'storage_full',
  });
  expect(await full.update('proj', id, { status: 'failed' })).toMatchObject({ status: 'failed' });
});

test('what no app takes is refused before its payload is checked', async () => {
  const { invoke, update } = service();
  const wrong = { ...request, payload: 'no JSON' };
  await expect(invoke('proj', { ...wrong, app_name: 'none' }, waiting)).rejects.toMatchObject({
    code: 'app_not_found',
  });
  await expect(update('proj', 'none', { status: 'succeeded', output: 'no JSON' })).rejects.toMatchObject({
    code: 'invocation_not_found',
  });
  await expect(invoke('proj', wrong, waiting)).rejects.toMatchObject({ code: 'invalid_input' });
});

test('of many large texts of a project that are checked at once, some are refused', async () => {
  const { invoke } = service();
  const payload = `[${'{},'.repeat(100_000)}{}]`;
  const all = await Promise.allSettled(
    Array.from({ length: 40 }, () => invoke('proj', { ...request, async: true, payload }, waiting)),
  );
  const refused = all.filter((end) => end.status === 'rejected').map((end) => (end.reason as { code: string }).code);
  expect(new Set(refused)).toEqual(new Set(['large_texts_full']));
  expect(refused.length).toBeLessThan(30);
});

test('the texts of an invocation are read when there is room for them', async () => {
  const { invoke, get, list } = service();
  const payload = JSON.stringify('x'.repeat(2 ** 20));
  const { id } = await invoke('proj', { ...request, async: true, payload }, waiting);
  const added: number[] = [];
  const room = { add: async (bytes: number) => void added.push(bytes) };
  expect((await get('proj', id, room)).payload).toBe(payload);
  const { rows } = await list('proj', { limit: 1, offset: 0 }, room);
  expect(rows[0]!.payload).toBe(payload);
  expect(added[0]).toBe(2 * payload.length);
  expect(added[1]).toBeGreaterThanOrEqual(2 * payload.length);
  const full = { add: () => Promise.reject(new Error('no room')) };
  await expect(get('proj', id, full)).rejects.toThrow('no room');
  await expect(list('proj', { limit: 1, offset: 0 }, full)).rejects.toThrow('no room');
});
