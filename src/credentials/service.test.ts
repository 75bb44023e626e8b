import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { eventBus } from '../events.ts';
import { orgStore } from '../org/store.ts';
import { openKeys, secretStore, type Secrets } from '../store/secrets.ts';
import { sql } from '../store/sql.ts';
import { credentialService, type CredentialService } from './service.ts';

const secret = 'JBSWY3DPEHPK3PXP';
const windowStart = 1_700_000_010_000;

let store: Awaited<ReturnType<typeof openTestStore>>;
let secrets: Secrets;
let credentials: CredentialService;
let now = windowStart;
const removed: object[] = [];
beforeAll(async () => {
  store = await openTestStore();
  secrets = secretStore(store.db, await openKeys(store.dataDir, ''));
  await orgStore(store.db).ensureDefaultProject('proj');
  await orgStore(store.db).insertProject('other', 'Other');
  const events = eventBus();
  events.on('credential.removed', (facts) => void removed.push(facts));
  credentials = credentialService({
    db: store.db,
    secrets,
    events,
    refuseHost: async () => undefined,
    publicUrl: () => 'https://corral.example',
    now: () => now,
  });
});
afterAll(() => store.close());
afterEach(async () => {
  await store.db.rows(sql`delete from credentials`);
  await store.db.rows(sql`delete from secrets`);
  removed.length = 0;
  now = windowStart;
});

const sealed = async () =>
  (await store.db.rows<{ kind: string }>(sql`select kind from secrets order by kind`)).map(({ kind }) => kind);
const request = { name: 'Shop', domain: 'https://Shop.example/login', values: { username: 'ann', password: 'p4ss' } };

describe('a credential', () => {
  test('answers the names of its values and nothing of what they are', async () => {
    const created = await credentials.create('proj', { ...request, totp_secret: secret, sso_provider: 'google' });
    expect(created).toEqual({
      id: expect.stringMatching(/^cred_[a-z0-9]{24}$/),
      name: 'Shop',
      domain: 'shop.example',
      created_at: expect.any(String),
      updated_at: expect.any(String),
      has_values: true,
      has_totp_secret: true,
      value_keys: ['username', 'password'],
      sso_provider: 'google',
      one_time_code_sources: [],
      totp_code: expect.stringMatching(/^\d{6}$/),
      totp_code_expires_at: new Date(windowStart + 30_000).toISOString(),
    });
    const { totp_code, totp_code_expires_at, ...facts } = created;
    expect(await credentials.get('proj', 'SHOP')).toEqual(facts);
    const { value_keys: _, one_time_code_sources: __, ...listed } = facts;
    expect(await credentials.list('proj', { limit: 20, offset: 0 })).toEqual([listed]);
    expect(await credentials.codeNow('proj', created.id)).toEqual({
      code: totp_code,
      expires_at: totp_code_expires_at,
    });
    now += 30_000;
    expect((await credentials.codeNow('proj', created.id)).code).not.toBe(totp_code);
  });

  test('merges values: removals first, then new values', async () => {
    const { id } = await credentials.create('proj', { ...request, values: { a: '1', b: '2', c: '3' } });
    const changed = await credentials.update('proj', 'Shop', {
      values: { b: 'new', d: '4' },
      remove_value_keys: ['a', 'b', 'never was'],
    });
    expect(changed.value_keys).toEqual(['c', 'b', 'd']);
    expect((await credentials.open('proj', id)).values).toEqual({ c: '3', b: 'new', d: '4' });
    expect(await credentials.update('proj', id, { remove_value_keys: ['b', 'c', 'd'] })).toMatchObject({
      has_values: false,
      value_keys: [],
    });
  });

  test('changed twice at once has both changes', async () => {
    const { id } = await credentials.create('proj', request);
    const keys = Array.from({ length: 8 }, (_, i) => `key${i}`);
    await Promise.all(keys.map((key) => credentials.update('proj', id, { values: { [key]: key } })));
    expect(Object.keys((await credentials.open('proj', id)).values).sort()).toEqual(
      [...keys, 'password', 'username'].sort(),
    );
  });

  test('takes a TOTP secret, shows its code once, and gives it up', async () => {
    await credentials.create('proj', { ...request, totp_secret: '' });
    await expect(credentials.codeNow('proj', 'Shop')).rejects.toMatchObject({ code: 'no_totp_secret' });
    const set = await credentials.update('proj', 'Shop', { totp_secret: 'jbsw y3dp ehpk 3pxp' });
    expect(set).toMatchObject({ has_totp_secret: true, totp_code: expect.any(String) });
    expect(await credentials.update('proj', 'Shop', { name: 'Shop' })).not.toHaveProperty('totp_code');
    expect(await sealed()).toEqual(['credential totp', 'credential values']);
    expect(await credentials.update('proj', 'Shop', { totp_secret: '' })).toMatchObject({ has_totp_secret: false });
    expect(await sealed()).toEqual(['credential values']);
    await expect(credentials.codeNow('proj', 'Shop')).rejects.toMatchObject({ code: 'no_totp_secret' });
  });

  test('has values of at most 100,000 characters, however many requests bring them', async () => {
    const refused = expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining('100000') });
    const some = (from: number, count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`key-${from + at}`, 'x'.repeat(10_000)]));
    await expect(credentials.create('proj', { ...request, values: some(0, 11) })).rejects.toEqual(refused);
    // Before each character is looked at: what logins type may be much more.
    const broken = { ...some(0, 11), other: '\ud83d' };
    await expect(credentials.create('proj', { ...request, values: broken })).rejects.toEqual(refused);
    const { id } = await credentials.create('proj', { ...request, values: some(0, 6) });
    await credentials.update('proj', id, { values: some(6, 4) });
    await expect(credentials.update('proj', id, { values: some(10, 1) })).rejects.toEqual(refused);
  });

  test('is refused beyond 10,000 of a project, and another project has its own', async () => {
    await store.db.rows(sql`insert into credentials (id, project_id, name, domain, value_keys)
      select 'many-' || n, 'proj', 'many ' || n, 'shop.example', '{}' from generate_series(1, 10000) n`);
    const refused = expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining('10000') });
    await expect(credentials.create('proj', request)).rejects.toEqual(refused);
    expect(await credentials.create('other', request)).toMatchObject({ name: request.name });
  });

  test('takes no value with half a character', async () => {
    const values = { password: 'p4ss\ud83d' };
    const refused = expect.objectContaining({ code: 'invalid_input' });
    await expect(credentials.create('proj', { ...request, values })).rejects.toEqual(refused);
    const { id } = await credentials.create('proj', request);
    await expect(credentials.update('proj', id, { values })).rejects.toEqual(refused);
    await expect(credentials.update('proj', id, { values: { '\ude00': 'p' } })).rejects.toEqual(refused);
  });

  test('keeps what it had when a change is refused', async () => {
    const { id } = await credentials.create('proj', request);
    await credentials.create('proj', { ...request, name: 'Café' });
    await expect(credentials.update('proj', id, { name: 'CAFE', values: { password: 'x' } })).rejects.toMatchObject({
      code: 'already_exists',
    });
    await expect(credentials.update('proj', id, { totp_secret: '1', values: { password: 'x' } })).rejects.toMatchObject(
      { code: 'invalid_input' },
    );
    const many = Object.fromEntries(Array.from({ length: 99 }, (_, i) => [`k${i}`, '']));
    await expect(credentials.update('proj', id, { values: many })).rejects.toThrow(/would have 101 values/);
    expect((await credentials.open('proj', id)).values).toEqual(request.values);
    await expect(credentials.create('proj', { ...request, name: 'Third', domain: '*' })).rejects.toThrow(/domain/);
  });

  test('is deleted with all that was sealed for it, and says so once', async () => {
    const { id } = await credentials.create('proj', { ...request, totp_secret: secret });
    const both = await Promise.allSettled([credentials.remove('proj', id), credentials.remove('proj', id)]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await sealed()).toEqual([]);
    expect(removed).toEqual([{ credentialId: id, projectId: 'proj' }]);
    await expect(credentials.open('proj', id)).rejects.toMatchObject({ code: 'credential_not_found' });
  });

  test('belongs to its project', async () => {
    const { id } = await credentials.create('proj', request);
    for (const attempt of [
      () => credentials.get('other', id),
      () => credentials.update('other', id, { name: 'x' }),
      () => credentials.remove('other', id),
      () => credentials.codeNow('other', id),
      () => credentials.open('other', id),
    ])
      await expect(attempt()).rejects.toMatchObject({ code: 'credential_not_found' });
    expect(await credentials.occupancy('proj')).toBe('1 credential');
    expect(await credentials.occupancy('other')).toBeUndefined();
  });

  test('with sealed values from another credential does not open', async () => {
    const { id } = await credentials.create('proj', request);
    const { id: theft } = await credentials.create('other', { ...request, values: {} });
    await store.db.rows(
      sql`update secrets set envelope = (select envelope from secrets where owner = ${id}) where owner = ${theft}`,
    );
    await expect(credentials.open('other', theft)).rejects.toThrow(/belongs to another place/);
  });
});

describe('what a login saves', () => {
  const login = { projectId: 'proj', domain: 'shop.example', name: 'shop.example', values: { username: 'ann' } };

  test('becomes a credential under a free name', async () => {
    await credentials.create('proj', { ...request, name: 'Shop.example' });
    const saved = await credentials.save(login);
    expect(saved).toMatchObject({ name: 'shop.example 2' });
    expect((await credentials.open('proj', saved.id)).values).toEqual({ username: 'ann' });
  });

  test('is merged into the credential it used, also after that was renamed', async () => {
    const { id } = await credentials.create('proj', request);
    await credentials.update('proj', id, { name: 'Renamed' });
    expect(await credentials.save({ ...login, credentialId: id, totpSecret: secret })).toMatchObject({
      id,
      name: 'Renamed',
    });
    expect(await credentials.open('proj', id)).toMatchObject({
      values: { username: 'ann', password: 'p4ss' },
      totp: { secret },
    });
  });

  test('makes a credential one of an identity provider only if all of its values are for that provider', async () => {
    const { id } = await credentials.create('proj', request);
    const typed = { ...login, credentialId: id, ssoProvider: 'google' };
    await credentials.save(typed);
    expect(await credentials.get('proj', id)).toMatchObject({ sso_provider: null });
    await credentials.save({ ...typed, values: { username: 'ann', password: 'of google' } });
    expect(await credentials.get('proj', id)).toMatchObject({ sso_provider: 'google' });
  });

  test('has the names of values of an identity provider, until others take their place', async () => {
    const values = { username: 'ann', password: 'of the provider' };
    const atProvider = { ...login, values, providerKeys: ['password', 'elsewhere'] };
    const { id } = await credentials.save(atProvider);
    const theirs = async () => (await credentials.open('proj', id)).providerKeys;
    expect(await theirs()).toEqual(['password']);
    await credentials.save({ ...login, credentialId: id });
    expect(await theirs()).toEqual(['password']);
    await credentials.save({ ...login, credentialId: id, values });
    expect(await theirs()).toEqual([]);
    for (const change of [{ values: { password: 'of the site' } }, { remove_value_keys: ['password'] }]) {
      await credentials.save({ ...atProvider, credentialId: id });
      expect(await theirs()).toEqual(['password']);
      await credentials.update('proj', id, change);
      expect(await theirs()).toEqual([]);
    }
  });

  test('is a new credential when the one it used was deleted', async () => {
    const { id } = await credentials.create('proj', request);
    await credentials.remove('proj', id);
    expect(await credentials.save({ ...login, credentialId: id })).toMatchObject({ name: 'shop.example' });
  });
});
