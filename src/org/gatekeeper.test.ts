import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { eventBus } from '../events.ts';
import { sql } from '../store/sql.ts';
import { apiKeyService } from './api-keys.ts';
import { gatekeeper } from './gatekeeper.ts';
import { projectService } from './projects.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
let gate: ReturnType<typeof gatekeeper>;
const ids: Record<string, string> = {};
const keys: Record<string, string> = {};

beforeAll(async () => {
  store = await openTestStore();
  gate = gatekeeper({ db: store.db, trusted: () => store.anchor.listening });
  store.anchor.on('corral_org', () => gate.forget());
  const changed = () => gate.forget();
  const projects = projectService({ db: store.db, events: eventBus(), changed, occupants: () => [] });
  const service = apiKeyService({ db: store.db, changed });
  const operator = service.operator;
  await projects.ensureDefault();
  ids['default'] = (await projects.get(operator, 'Default')).id;
  ids['own'] = (await projects.create(operator, 'Own')).id;
  ids['other'] = (await projects.create(operator, 'Other')).id;
  ids['archived'] = (await projects.create(operator, 'Archived')).id;
  await projects.update(operator, ids['archived'], { status: 'archived' });
  keys['org'] = (await service.create(operator, { name: 'org' })).key;
  keys['own'] = (await service.create(operator, { name: 'own', project_id: ids['own'] })).key;
});
afterAll(() => store?.close());

// Section 18 of the facts, row by row. `X-Kernel-Project-Id` takes ids only, `X-Kernel-Project` names too.
describe('the project of a request', () => {
  test.each<[string, string, { id?: string; idOrName?: string }, string]>([
    ['an org-wide key without a header', 'org', {}, 'default'],
    ['an org-wide key with the id of the default', 'org', { id: 'default' }, 'default'],
    ['an org-wide key with another id', 'org', { id: 'other' }, 'other'],
    ['an org-wide key with another name', 'org', { idOrName: 'OTHER' }, 'other'],
    ['a bound key without a header', 'own', {}, 'own'],
    ['a bound key with its own id', 'own', { id: 'own' }, 'own'],
    ['a bound key with its own name', 'own', { idOrName: 'own' }, 'own'],
  ])('%s', async (_, key, selector, project) => {
    const caller = await gate.authenticate(keys[key]!, '192.0.2.1');
    const named = selector.id ? { id: ids[selector.id]! } : selector;
    expect((await gate.resolveProject(caller, named)).id).toBe(ids[project]);
  });

  test.each<[string, string, { id?: string; idOrName?: string }, string]>([
    ['an unknown id', 'org', { id: 'proj_unknown' }, 'project_not_found'],
    ['a name instead of an id', 'org', { id: 'Other' }, 'project_not_found'],
    ['an archived project', 'org', { idOrName: 'Archived' }, 'project_not_found'],
    ['a bound key with another project', 'own', { idOrName: 'Other' }, 'forbidden'],
    ['a bound key with a project that does not exist', 'own', { id: 'proj_unknown' }, 'forbidden'],
  ])('is refused for %s', async (_, key, selector, code) => {
    const caller = await gate.authenticate(keys[key]!, '192.0.2.1');
    await expect(gate.resolveProject(caller, selector)).rejects.toMatchObject({ code });
  });
});

test('a key that another process revoked is removed from the cache on the notification of the database', async () => {
  const service = apiKeyService({ db: store.db, changed: () => {} });
  const { id, key } = await service.create(service.operator, { name: 'revoked elsewhere' });
  await gate.authenticate(key, '192.0.2.1');
  const notified = new Promise<void>((resolve) => store.anchor.on('corral_org', () => resolve()));
  await store.db.rows(sql`update api_keys set deleted_at = now() where id = ${id}`);
  await notified;
  await expect(gate.authenticate(key, '192.0.2.1')).rejects.toMatchObject({ code: 'unauthorized' });
});

test('the cache is not used while notifications of the database do not arrive', async () => {
  let trusted = true;
  const blind = gatekeeper({ db: store.db, trusted: () => trusted });
  const service = apiKeyService({ db: store.db, changed: () => {} });
  const { id, key } = await service.create(service.operator, { name: 'blind' });
  await blind.authenticate(key, '192.0.2.1');
  await store.db.rows(sql`update api_keys set deleted_at = now() where id = ${id}`);
  trusted = false;
  await expect(blind.authenticate(key, '192.0.2.1')).rejects.toMatchObject({ code: 'unauthorized' });
});
