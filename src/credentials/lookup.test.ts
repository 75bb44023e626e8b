import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startConnect, startOwnStore, startVault, type Store } from '../../test/support/credential-stores.ts';
import { openTestStore } from '../../test/support/store.ts';
import { destinations, parseAllowList } from '../chromium/egress/destinations.ts';
import { directRequests } from '../chromium/egress/direct-request.ts';
import { eventBus } from '../events.ts';
import { silent } from '../lib/log.ts';
import { orgStore } from '../org/store.ts';
import { openKeys, secretStore } from '../store/secrets.ts';
import { sql } from '../store/sql.ts';
import { credentialLookup, type CredentialLookup, type CredentialReference } from './lookup.ts';
import type { CreateProvider } from './providers/schema.ts';
import { providerService, type ProviderService } from './providers/service.ts';
import { credentialService, type CredentialService } from './service.ts';

const owner = { keyId: 'k', keyName: 'k', projectId: null };
const projectId = 'proj';
const other = 'proj_other';
const secret = 'JBSWY3DPEHPK3PXP';

let store: Awaited<ReturnType<typeof openTestStore>>;
let providers: ProviderService;
let credentials: CredentialService;
let lookup: CredentialLookup;
let connect: Store;
let vault: Store;
let own: Store;
const removed: object[] = [];
beforeAll(async () => {
  connect = await startConnect('connect-token', [
    { vault: 'Team', title: 'Shop', urls: ['https://shop.example'], username: 'connect', password: 'a', otp: secret },
    { vault: 'Team', title: 'Twice', urls: ['shop.example'], username: 'first', password: 'a' },
    { vault: 'Team', title: 'Twice', urls: ['shop.example'], username: 'second', password: 'a', otp: 'n0t a secret!' },
    { vault: 'Team', title: 'No site', username: 'nowhere', password: 'a' },
  ]);
  vault = await startVault('vault-token', {
    'logins/shop': { data: { username: 'vault' }, custom: { url: '*.example' } },
  });
  own = await startOwnStore('own-token', [
    { id: 'i', vault: 'Own', title: 'Shop', urls: ['shop.example'], username: 'own' },
  ]);
  store = await openTestStore();
  const secrets = secretStore(store.db, await openKeys(store.dataDir, ''));
  const projects = orgStore(store.db);
  await projects.ensureDefaultProject(projectId);
  await projects.insertProject(other, 'Other');
  const events = eventBus();
  events.on('credential_provider.removed', (facts) => void removed.push(facts));
  const request = directRequests({ allow: destinations({ allow: parseAllowList('127.0.0.1') }) });
  const room = { db: store.db, secrets, events };
  providers = providerService({
    ...room,
    projectId: async (idOrName) => (await projects.findProjectByIdOrName(idOrName))?.id,
    refuseHost: async () => undefined,
    request,
    version: '1',
    log: silent,
  });
  credentials = credentialService({
    ...room,
    refuseHost: async () => undefined,
    publicUrl: () => 'https://corral.example',
  });
  lookup = credentialLookup({ credentials, providers, log: silent });
});
afterAll(async () => {
  await Promise.all([connect, vault, own].map((each) => each.close()));
  await store.close();
});
afterEach(async () => {
  for (const each of [connect, vault, own]) each.state.fault = undefined;
  await store.db.rows(sql`delete from credential_providers`);
  await store.db.rows(sql`delete from credentials`);
  await store.db.rows(sql`delete from secrets`);
});

type Kind = 'connect' | 'vault' | 'own';
const add = (kind: Kind, changes: Partial<CreateProvider> = {}) => {
  const kinds = {
    connect: { provider_type: 'passwordmanager' as const, token: 'connect-token', server_url: connect.url },
    vault: { provider_type: 'vault' as const, token: 'vault-token', server_url: vault.url },
    own: { provider_type: 'http' as const, token: 'own-token', server_url: own.url },
  };
  return providers.create(owner, projectId, { name: kind, ...kinds[kind], ...changes });
};
const resolve = (credential: CredentialReference, domain = 'shop.example') =>
  lookup.resolve({ projectId, credential, domain });

test('a token that is set with a new address is not sent to the old one', async () => {
  const { id } = await add('own');
  const asked: string[] = [];
  const secrets = secretStore(store.db, await openKeys(store.dataDir, ''));
  const slow = providerService({
    db: store.db,
    secrets: {
      ...secrets,
      get: async (kind, of) => {
        await providers.update(owner, of, { server_url: 'http://127.0.0.1:9', token: 'new-token' });
        return secrets.get(kind, of);
      },
    },
    events: eventBus(),
    projectId: async () => projectId,
    refuseHost: async () => undefined,
    request: async ({ host }) => (asked.push(host), { status: 200, headers: {}, body: Buffer.from('{"items":[]}') }),
    version: '1',
    log: silent,
  });
  await expect(slow.items(owner, id)).rejects.toMatchObject({ code: 'provider_unavailable' });
  expect(asked).toEqual([]);
});

describe('a credential is found', () => {
  test('by its name, and stays linked under another', async () => {
    const { id } = await credentials.create(projectId, {
      name: 'Shop',
      domain: 'shop.example',
      values: { a: '1' },
      totp_secret: secret,
    });
    const link = await lookup.link({ projectId }, { name: 'SHOP' });
    expect(link).toEqual({ credentialId: id });
    await credentials.update(projectId, id, { name: 'Renamed' });
    expect(await lookup.describe(projectId, link)).toEqual({ name: 'Renamed' });
    expect(await lookup.resolve({ projectId, credential: link })).toMatchObject({
      values: { a: '1' },
      totp: { secret },
    });
    expect(await lookup.totpCode({ projectId, credential: link })).toMatchObject({
      code: expect.stringMatching(/^\d{6}$/),
    });
    await credentials.remove(projectId, id);
    expect(await lookup.describe(projectId, link)).toBeUndefined();
    await expect(lookup.resolve({ projectId, credential: link })).rejects.toMatchObject({
      code: 'credential_not_found',
    });
  });

  test('by a path of a provider, which may be renamed too', async () => {
    const { id } = await add('connect');
    const link = await lookup.link({ projectId }, { provider: 'CONNECT', path: 'Team/Shop' });
    expect(link).toEqual({ providerId: id, path: 'Team/Shop' });
    await providers.update(owner, id, { name: 'Renamed' });
    expect(await lookup.describe(projectId, link)).toEqual({ provider: 'Renamed', path: 'Team/Shop' });
    expect(await lookup.resolve({ projectId, credential: link, domain: 'shop.example' })).toEqual({
      values: { username: 'connect', password: 'a' },
      totp: expect.objectContaining({ secret }),
      hosts: ['https://shop.example'],
    });
    await add('vault');
    expect(await resolve({ provider: 'vault', path: 'secret/logins/shop' })).toMatchObject({
      values: { username: 'vault' },
    });
  });

  test('by an id where two items have the same path; a code that cannot be read is left out', async () => {
    await add('connect');
    await expect(resolve({ provider: 'connect', path: 'Team/Twice' })).rejects.toThrow(/has 2 items 'Team\/Twice'/);
    expect(await resolve({ provider: 'connect', path: 'item2' })).toEqual({
      values: expect.objectContaining({ username: 'second' }),
      totp: undefined,
      hosts: ['shop.example'],
    });
  });

  test('by its site in the named provider, or in the first that has it', async () => {
    await add('vault', { priority: 1 });
    await add('connect', { priority: 2 });
    await add('own', { priority: 3 });
    const providerOf = async (credential: CredentialReference, domain?: string) =>
      (await resolve(credential, domain)).values['username'];
    expect(await providerOf({ provider: 'own', auto: true })).toBe('own');
    expect(await providerOf({ auto: true })).toBe('vault');
    const first = await providers.idOf({ projectId }, 'vault');
    await providers.update(owner, first, { priority: 9 });
    expect(await providerOf({ auto: true })).toBe('connect');
    expect(await providerOf({ auto: true }, 'other.example')).toBe('vault');
    await providers.update(owner, first, { enabled: false });
    await expect(providerOf({ auto: true }, 'other.example')).rejects.toMatchObject({
      code: 'provider_item_not_found',
    });
    await expect(providerOf({ provider: 'vault', auto: true })).rejects.toThrow(/it is disabled/);
  });

  test('in a list that is kept, until the provider changes', async () => {
    const { id } = await add('own');
    own.state.requests.length = 0;
    await resolve({ provider: 'own', auto: true });
    await resolve({ provider: 'own', path: 'Own/Shop' });
    expect(own.state.requests).toEqual(['/items', '/items/i', '/items/i']);
    await providers.update(owner, id, { cache_ttl_seconds: 60 });
    await resolve({ provider: 'own', auto: true });
    expect(own.state.requests.filter((path) => path === '/items')).toHaveLength(2);
  });
});

describe('a store that is down', () => {
  test('ends the search with its reason: a later one may have an old password', async () => {
    await add('connect', { cache_ttl_seconds: 0 });
    await add('own', { priority: 1 });
    connect.state.fault = 'sealed';
    await expect(resolve({ auto: true })).rejects.toMatchObject({
      code: 'provider_unavailable',
      message: expect.stringMatching(/provider 'connect' cannot be used: .*sealed/),
      extras: { details: [{ code: 'busy' }] },
    });
    connect.state.fault = undefined;
    expect((await resolve({ auto: true })).values['username']).toBe('connect');
  });

  test('is a result of the test, and an error of the list', async () => {
    const { id } = await add('connect');
    expect(await providers.test(owner, id)).toEqual({ success: true, vaults: [{ id: 'vault0', name: 'Team' }] });
    await providers.update(owner, id, { token: 'wrong-token' });
    expect(await providers.test(owner, id)).toEqual({
      success: false,
      vaults: [],
      error: expect.stringContaining('refuses the token'),
    });
    await expect(providers.items(owner, id)).rejects.toMatchObject({ code: 'provider_refused' });
  });
});

describe('a project', () => {
  const stranger = { ...owner, projectId: other };
  const all: CredentialReference[] = [
    { provider: 'own', path: 'Own/Shop' },
    { provider: 'own', auto: true },
  ];
  const resolveThere = (credential: CredentialReference) =>
    lookup.resolve({ projectId: other, credential, domain: 'shop.example' });

  test('uses the providers that are shared with it, and others are not there', async () => {
    const { id, projects } = await add('own');
    expect(projects).toEqual([projectId]);
    const linked = await lookup.link({ projectId }, { provider: 'own', path: 'Own/Shop' });
    own.state.requests.length = 0;
    for (const reference of [...all, { provider: id, path: 'Own/Shop' }]) {
      const there = { ...reference, provider: 'nothing' };
      const [unshared, missing] = await Promise.all(
        [reference, there].map((one) => lookup.link({ projectId: other }, one).catch((error: Error) => error)),
      );
      expect(unshared).toMatchObject({ code: 'invalid_input' });
      expect((unshared as Error).message.replace(reference.provider!, 'nothing')).toBe((missing as Error).message);
      await expect(resolveThere(reference)).rejects.toMatchObject({ code: 'invalid_input' });
    }
    await expect(resolveThere({ auto: true })).rejects.toThrow(
      /No enabled credential provider is shared with the project/,
    );
    await expect(
      lookup.resolve({ projectId: other, credential: linked, domain: 'shop.example' }),
    ).rejects.toMatchObject({ code: 'provider_not_found' });
    expect(await lookup.describe(other, linked)).toBeUndefined();
    expect(await providers.list(stranger, { limit: 10, offset: 0 })).toEqual([]);
    await expect(providers.get(stranger, id)).rejects.toMatchObject({ code: 'provider_not_found' });
    expect(own.state.requests).toEqual([]);
    await expect(lookup.link({ projectId: other, orgWide: true }, all[0]!)).rejects.toThrow(
      `'own' is not shared with project ${other}. Add the project to projects with PATCH /org/credential_providers/${id}`,
    );
  });

  test('is given a provider by its id or name, and all are by *', async () => {
    const { id } = await add('own', { projects: ['Other', other] });
    expect(await providers.get(owner, id)).toMatchObject({ projects: [other] });
    await expect(resolve(all[0]!)).rejects.toMatchObject({ code: 'invalid_input' });
    for (const reference of [...all, { auto: true }]) expect((await resolveThere(reference)).values).toBeDefined();
    expect(await providers.update(owner, id, { projects: [projectId, 'OTHER'] })).toMatchObject({
      projects: [projectId, other],
    });
    expect(await providers.get(stranger, id)).toMatchObject({ projects: [other] });
    expect(await providers.update(owner, id, { projects: ['*', other] })).toMatchObject({ projects: ['*'] });
    expect(await providers.list(stranger, { limit: 10, offset: 0 })).toMatchObject([{ projects: ['*'] }]);
    expect((await resolve(all[0]!)).values).toBeDefined();
    expect(await providers.update(owner, id, { projects: [] })).toMatchObject({ projects: [] });
    await expect(resolve(all[0]!)).rejects.toMatchObject({ code: 'invalid_input' });
    await expect(providers.update(owner, id, { projects: ['nothing'] })).rejects.toThrow(/no project is 'nothing'/);
  });

  test('that is deleted leaves the list', async () => {
    await orgStore(store.db).insertProject('proj_gone', 'Gone');
    const { id } = await add('own', { projects: [projectId, 'Gone'] });
    await orgStore(store.db).deleteProject('proj_gone');
    expect(await providers.get(owner, id)).toMatchObject({ projects: [projectId] });
  });
});

describe('an item', () => {
  const at = (credential: CredentialReference, domain: string, loginUrl?: string) =>
    lookup.resolve({ projectId, credential, domain, loginUrl });

  test.each<[string, CredentialReference, string, string | undefined, string]>([
    ['a domain', { provider: 'connect', path: 'Team/Shop' }, 'evil.example', undefined, 'evil.example'],
    ['a name below', { provider: 'connect', path: 'Team/Shop' }, 'a.shop.example', undefined, 'a.shop.example'],
    [
      'a login page',
      { provider: 'connect', path: 'Team/Shop' },
      'shop.example',
      'https://evil.example/x',
      'https://evil.example',
    ],
    [
      'a login page found by the site',
      { provider: 'connect', auto: true },
      'shop.example',
      'https://evil.example/x',
      'https://evil.example',
    ],
    [
      'a login page found in any store',
      { auto: true },
      'shop.example',
      'https://evil.example/x',
      'https://evil.example',
    ],
    ['a login page without TLS', { auto: true }, 'shop.example', 'http://shop.example/', 'http://shop.example'],
    ['a site at all', { provider: 'connect', path: 'Team/No site' }, 'shop.example', undefined, 'shop.example'],
  ])('that does not name %s is not opened for it', async (_, credential, domain, loginUrl, site) => {
    await add('connect');
    connect.state.requests.length = 0;
    await expect(at(credential, domain, loginUrl)).rejects.toMatchObject({
      code: 'item_not_for_site',
      message: expect.stringContaining(`does not name ${site},`),
    });
    expect(connect.state.requests.filter((path) => /items\/./.test(path))).toEqual([]);
    const link = await lookup.link({ projectId }, credential);
    expect(await lookup.refusal({ projectId, credential: link, domain, loginUrl })).toMatchObject({
      code: 'item_not_for_site',
    });
  });

  test('of a Vault is held against its own sites too', async () => {
    await add('vault');
    const path = { provider: 'vault', path: 'secret/logins/shop' };
    await expect(at(path, 'shop.test')).rejects.toMatchObject({ code: 'item_not_for_site' });
    expect(await at(path, 'shop.example', 'https://www.shop.example/login')).toMatchObject({ hosts: ['*.example'] });
  });

  test('is not refused before a login while its store does not answer, or does not have it yet', async () => {
    await add('connect');
    const refusal = async (path: string) =>
      lookup.refusal({
        projectId,
        credential: await lookup.link({ projectId }, { provider: 'connect', path }),
        domain: 'shop.example',
      });
    expect(await refusal('Team/Shop')).toBeUndefined();
    expect(await refusal('Team/Later')).toBeUndefined();
    connect.state.fault = 'sealed';
    await providers.update(owner, await providers.idOf({ projectId }, 'connect'), { cache_ttl_seconds: 0 });
    expect(await refusal('Team/No site')).toBeUndefined();
  });

  test('gives other fields than those of every login where the provider names them', async () => {
    const { id } = await add('connect');
    expect((await at({ auto: true }, 'shop.example')).values).toEqual({ username: 'connect', password: 'a' });
    expect(await providers.update(owner, id, { fields: [' Account Number '] })).toMatchObject({
      fields: ['Account Number'],
    });
    expect((await at({ auto: true }, 'shop.example')).values).toMatchObject({ account_number: '4711' });
  });
});

describe('a provider', () => {
  test('keeps its token to the store it was sent for', async () => {
    const { id } = await add('own');
    await expect(providers.update(owner, id, { server_url: vault.url })).rejects.toThrow(/only together with token/);
    expect(await providers.update(owner, id, { server_url: `${own.url}/`, token: 'own-token' })).toMatchObject({
      server_url: own.url,
    });
    expect(await providers.test(owner, id)).toMatchObject({ success: true });
  });

  test('changed twice at once has both changes', async () => {
    const { id } = await add('own');
    await Promise.all([providers.update(owner, id, { priority: 5 }), providers.update(owner, id, { enabled: false })]);
    expect(await providers.get(owner, id)).toMatchObject({ priority: 5, enabled: false });
  });

  test('is deleted with its token, and says so', async () => {
    const { id } = await add('own');
    const link = await lookup.link({ projectId }, { provider: id, auto: true });
    await providers.remove(owner, id);
    expect(removed).toEqual([{ providerId: id }]);
    expect(await store.db.rows(sql`select * from secrets`)).toEqual([]);
    expect(await lookup.describe(projectId, link)).toBeUndefined();
    await expect(lookup.resolve({ projectId, credential: link, domain: 'x.example' })).rejects.toMatchObject({
      code: 'provider_not_found',
    });
  });

  test('takes a key of the organisation', async () => {
    const { id } = await add('own');
    const member = { ...owner, projectId };
    for (const attempt of [
      () => providers.create(member, projectId, { provider_type: 'onepassword', name: 'x', token: 't' }),
      () => providers.update(member, id, { enabled: false }),
      () => providers.remove(member, id),
      () => providers.test(member, id),
      () => providers.items(member, id),
    ])
      await expect(attempt()).rejects.toMatchObject({ code: 'forbidden' });
  });
});

test.each<[CredentialReference, RegExp]>([
  [{}, /must be one of/],
  [{ name: 'a', provider: 'b' }, /must be one of/],
  [{ provider: 'b' }, /must be one of/],
  [{ path: 'a', auto: true }, /must be one of/],
  [{ path: 'a' }, /needs credential.provider/],
  [{ name: 'nothing' }, /no credential of this project is named 'nothing'/],
  [{ provider: 'nothing', path: 'a' }, /no credential provider is 'nothing'/],
])('the reference %j is refused', async (reference, message) =>
  expect(lookup.link({ projectId }, reference)).rejects.toThrow(message),
);
