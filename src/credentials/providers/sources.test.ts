import { afterEach, describe, expect, test } from 'vitest';
import {
  startConnect,
  startOwnStore,
  startVault,
  type Fault,
  type Store,
} from '../../../test/support/credential-stores.ts';
import { destinations, parseAllowList } from '../../chromium/egress/destinations.ts';
import { directRequests } from '../../chromium/egress/direct-request.ts';
import { connectSource } from './connect.ts';
import { contentsOf, forLogins } from './fields.ts';
import { httpSource } from './http.ts';
import { serviceAccountSource } from './service-account.ts';
import { SourceFailure } from './source.ts';
import { vaultSource } from './vault.ts';

const request = directRequests({ allow: destinations({ allow: parseAllowList('127.0.0.1') }) });
const stores: Store[] = [];
const opened = async <S extends Store>(store: Promise<S>): Promise<S> => {
  stores.push(await store);
  return store;
};
afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())));

const otp = 'otpauth://totp/Shop?secret=JBSWY3DPEHPK3PXP';
const plain = { token: 'tok', ca: undefined, namespace: undefined, mounts: undefined };
const failure = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(SourceFailure);
  return error as SourceFailure;
};

describe('an answer that takes long to parse is refused before it is parsed:', () => {
  const answering = (value: unknown) => async () => ({
    status: 200,
    headers: {},
    body: Buffer.from(JSON.stringify(value)),
  });
  const settings = { ...plain, serverUrl: 'https://store.example' };
  const item = { id: '1', title: 'Shop', vault_id: 'v', vault_name: 'V', path: 'v/Shop' };
  const names = Object.fromEntries(Array.from({ length: 11_000 }, (_, at) => [`k${at}`, 'x']));
  const refusal = (most: number) => ({
    code: 'bad_answer',
    message: `store.example answered with more than ${most} names and values.`,
  });

  test('a list', async () => {
    const items = Array.from({ length: 60_000 }, (_, at) => ({ id: `${at}`, title: 'Shop', urls: 5 }));
    expect(await failure(httpSource(settings, answering({ more: items, items: [] })).items())).toMatchObject(
      refusal(200_000),
    );
  });

  test('an element of a list', async () => {
    const items = [{ ...item, names }];
    expect(await failure(httpSource(settings, answering({ items })).items())).toMatchObject(refusal(20_000));
    expect(await failure(connectSource(settings, answering(items)).items())).toMatchObject(refusal(20_000));
  });

  test('an item', async () => {
    expect(await failure(httpSource(settings, answering({ values: names })).read(item))).toMatchObject(refusal(20_000));
    expect(await failure(vaultSource(settings, answering({ data: { data: names } })).read(item))).toMatchObject(
      refusal(20_000),
    );
    const fields = Array.from({ length: 2000 }, () => ({
      type: 'STRING',
      label: 'x',
      value: 'x',
      section: { id: 's' },
    }));
    expect(await failure(connectSource(settings, answering({ fields })).read(item))).toMatchObject(refusal(20_000));
  });
});

test.each(['..', '\ud800'])('an id that is %j is asked for nowhere', async (id) => {
  const settings = { ...plain, serverUrl: 'https://store.example', mounts: ['secret'] };
  const asked: typeof request = async () => expect.unreachable();
  const item = { id, vault_id: id, title: 'x', vault_name: 'v', path: `secret/${id}` };
  for (const source of [httpSource, connectSource, vaultSource])
    expect(await failure(source(settings, asked).read(item))).toMatchObject({ code: 'bad_answer' });
});

test('the answers of one operation have bounds together', async () => {
  let asked = 0;
  const body = Buffer.from(JSON.stringify({ data: { keys: ['a/', 'b/', 'x'.repeat(4000)] } }).padEnd(7_000_000));
  const endless: typeof request = async () => (asked++, { status: 200, headers: {}, body });
  const settings = { ...plain, serverUrl: 'https://store.example', mounts: ['secret'] };
  expect(await failure(vaultSource(settings, endless).items())).toMatchObject({
    code: 'bad_answer',
    message: 'The answers of store.example have more than 33554432 bytes in all.',
  });
  expect(asked).toBeLessThan(20);
});

test('the items of a store have 200,000 addresses at most', async () => {
  const many = (vault: string, items: number) =>
    Array.from({ length: items }, (_, at) => ({
      id: `${vault}${at}`,
      title: '',
      urls: Array.from({ length: 500 }, () => ({ href: 'a' })),
    }));
  const vaults = ['a', 'b', 'c', 'd'];
  const answers: Record<string, unknown> = { '/v1/vaults': vaults.map((id) => ({ id, name: id })) };
  for (const id of vaults) answers[`/v1/vaults/${id}/items`] = many(id, 100);
  const settings = { ...plain, serverUrl: 'https://store.example' };
  const asked: typeof request = async ({ pathname }) => ({
    status: 200,
    headers: {},
    body: Buffer.from(JSON.stringify(answers[pathname])),
  });
  expect(await connectSource(settings, asked).items()).toHaveLength(400);
  answers['/v1/vaults/d/items'] = many('d', 101);
  expect(await failure(connectSource(settings, asked).items())).toMatchObject({
    code: 'bad_answer',
    message: 'The items have more than 200000 addresses.',
  });
});

test('the items of a store have bounds together', async () => {
  const title = 'x'.repeat(4000);
  const items = Array.from({ length: 1900 }, (_, at) => ({ id: `${at}`, title, vault_name: 'V' }));
  const body = Buffer.from(JSON.stringify({ items }));
  const source = httpSource({ ...plain, serverUrl: 'https://store.example' }, async () => ({
    status: 200,
    headers: {},
    body,
  }));
  expect(await failure(source.items())).toMatchObject({ code: 'bad_answer' });
});

describe('a Connect server', () => {
  const entries = [
    { vault: 'Team', title: 'Shop', urls: ['https://shop.example'], username: 'ann', password: 'p4ss', otp },
    { vault: 'Ann', title: 'No site', username: 'x', password: 'y' },
  ];

  test('shows its vaults and logins, and gives the fields of one by the names people use', async () => {
    const { url } = await opened(startConnect('tok', entries));
    const source = connectSource({ ...plain, serverUrl: `${url}/v1/` }, request);
    expect(await source.vaults()).toEqual([
      { id: 'vault0', name: 'Team' },
      { id: 'vault1', name: 'Ann' },
    ]);
    const items = await source.items();
    expect(items).toEqual([
      {
        id: 'item0',
        title: 'Shop',
        vault_id: 'vault0',
        vault_name: 'Team',
        path: 'Team/Shop',
        urls: ['https://shop.example'],
      },
      { id: 'item1', title: 'No site', vault_id: 'vault1', vault_name: 'Ann', path: 'Ann/No site' },
    ]);
    expect(await source.read(items[0]!)).toEqual({
      values: { username: 'ann', password: 'p4ss', account_number: '4711' },
      totp: otp,
    });
  });

  test('that refuses the token says so without quoting it', async () => {
    const { url } = await opened(startConnect('tok', entries));
    const error = await failure(connectSource({ ...plain, token: 'stolen-token', serverUrl: url }, request).vaults());
    expect(error.code).toBe('token_refused');
    expect(error.message).not.toContain('stolen-token');
  });
});

describe('a Vault', () => {
  const secrets = {
    'logins/shop.example': { data: { username: 'ann', password: 'p4ss', totp: otp, port: 8080, tags: ['a'] } },
    'logins/eu/intranet': { data: { pin: '1' }, custom: { urls: 'https://intranet.example, *.intranet.example' } },
    'deploy key': { data: { key: 'k' } },
    gone: { data: {}, deleted: true },
  };

  test('shows the secrets of every mount of version 2, with their sites', async () => {
    const { url } = await opened(startVault('tok', secrets, { mount: 'teams/kv' }));
    const source = vaultSource({ ...plain, serverUrl: url }, request);
    expect(await source.vaults()).toEqual([{ id: 'teams/kv', name: 'teams/kv' }]);
    const items = await source.items();
    expect(Object.fromEntries(items.map(({ path, urls }) => [path, urls]))).toEqual({
      'teams/kv/deploy key': undefined,
      'teams/kv/gone': undefined,
      'teams/kv/logins/eu/intranet': ['https://intranet.example', '*.intranet.example'],
      'teams/kv/logins/shop.example': ['shop.example'],
    });
    const shop = items.find(({ title }) => title === 'shop.example')!;
    expect(await source.read(shop)).toEqual({ values: { username: 'ann', password: 'p4ss', port: '8080' }, totp: otp });
    const key = await source.itemAt!('teams/kv/deploy key');
    expect(key).toEqual(items.find(({ title }) => title === 'deploy key'));
    expect(await source.read(key!)).toEqual({ values: { key: 'k' }, totp: undefined });
    expect(await source.itemAt!('/teams/kv/logins/eu/intranet')).toMatchObject({
      path: 'teams/kv/logins/eu/intranet',
      urls: ['https://intranet.example', '*.intranet.example'],
    });
    for (const path of ['teams/kv/never', 'teams/kv/', 'other/x', ''])
      expect(await source.itemAt!(path)).toBeUndefined();
    expect((await failure(source.read((await source.itemAt!('teams/kv/gone'))!))).code).toBe('not_found');
    expect((await failure(source.itemAt!('teams/kv/../../sys/seal'))).code).toBe('bad_answer');
  });

  test('is asked for the mounts and in the namespace that were set', async () => {
    const store = await opened(startVault('tok', secrets, { namespace: 'team-a' }));
    const settings = { ...plain, serverUrl: store.url, namespace: 'team-a', mounts: ['secret'] };
    expect(await vaultSource(settings, request).vaults()).toEqual([{ id: 'secret', name: 'secret' }]);
    expect(await vaultSource(settings, request).itemAt!('secret/deploy key')).toMatchObject({ title: 'deploy key' });
    expect(store.state.requests).not.toContain('/v1/sys/internal/ui/mounts');
    expect((await failure(vaultSource({ ...settings, token: 'x' }, request).vaults())).code).toBe('token_refused');
  });
});

test("a store of one's own speaks the documented calls", async () => {
  const entry = { id: 'a/b', vault: 'Own', title: 'Shop', urls: ['shop.example'], username: 'ann', password: 'p', otp };
  const { url } = await opened(startOwnStore('tok', [{ ...entry, id: 'ab' }]));
  const source = httpSource({ ...plain, serverUrl: url }, request);
  expect(await source.vaults()).toEqual([{ id: 'v', name: 'Own' }]);
  const [item] = await source.items();
  expect(item).toEqual({
    id: 'ab',
    title: 'Shop',
    vault_id: 'v',
    vault_name: 'Own',
    path: 'Own/Shop',
    urls: ['shop.example'],
  });
  expect(await source.read(item!)).toEqual({ values: { username: 'ann', password: 'p' }, totp: otp });
});

test.each<[Fault, string]>([
  ['sealed', 'busy'],
  ['html', 'bad_answer'],
  ['shapeless', 'bad_answer'],
  ['huge', 'unreachable'],
  ['elsewhere', 'bad_answer'],
  ['cut', 'unreachable'],
])('a store that is %s fails with the reason %s', async (fault, code) => {
  const store = await opened(startOwnStore('tok', []));
  store.state.fault = fault;
  for (const source of [connectSource, vaultSource, httpSource]) {
    const error = await failure(source({ ...plain, serverUrl: store.url }, request).items());
    expect([error.code, error.message]).toEqual([code, expect.stringContaining(store.host)]);
  }
});

test('a store that nothing listens for, or that may not be reached, says so', async () => {
  const store = await opened(startOwnStore('tok', []));
  await store.close();
  stores.length = 0;
  expect((await failure(httpSource({ ...plain, serverUrl: store.url }, request).items())).code).toBe('unreachable');
  const strict = directRequests({ allow: destinations({}) });
  const refused = await failure(httpSource({ ...plain, serverUrl: store.url }, strict).items());
  expect(refused.code).toBe('address_refused');
  expect(refused.message).toContain('CORRAL_ALLOW_PRIVATE_HOSTS');
});

test('a store that says nothing is given up', async () => {
  const store = await opened(startOwnStore('tok', []));
  store.state.fault = 'silent';
  const impatient: typeof request = (url, options) => request(url, { ...options, timeoutMs: 300 });
  expect((await failure(httpSource({ ...plain, serverUrl: store.url }, impatient).items())).code).toBe('timeout');
});

describe('a service account', () => {
  const tokenFor = (signInAddress: string) => {
    const muk = {
      alg: 'A256GCM',
      ext: true,
      k: 'A'.repeat(43),
      key_ops: ['decrypt', 'encrypt'],
      kty: 'oct',
      kid: 'mp',
    };
    const userAuth = { method: 'SRPg-4096', alg: 'PBES2g-HS256', iterations: 650_000, salt: 'bm90LWEtc2FsdA' };
    const throttleSecret = { seed: 'ab'.repeat(32), uuid: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ' };
    const email = 'x@1passwordserviceaccounts.com';
    const secretKey = 'A3-ABCDEF-ABCDEF-ABCDE-ABCDE-ABCDE-ABCDE';
    const facts = {
      signInAddress,
      userAuth,
      email,
      srpX: 'ab'.repeat(32),
      muk,
      secretKey,
      throttleSecret,
      deviceUuid: 'a'.repeat(26),
    };
    return `ops_${Buffer.from(JSON.stringify(facts)).toString('base64url')}`;
  };

  test('is refused with an invalid token, and with an address of this machine', async () => {
    expect((await failure(serviceAccountSource('garbage', '1', request).vaults())).code).toBe('token_refused');
    const asked: string[] = [];
    const strict = directRequests({ allow: destinations({}) });
    const watched: typeof request = (url, options) => {
      asked.push(url.href);
      return strict(url, options);
    };
    const error = await failure(serviceAccountSource(tokenFor('127.0.0.1:8443'), '1', watched).vaults());
    expect(asked).toEqual(['https://127.0.0.1:8443/api/v3/auth/start']);
    expect(error.code).toBe('address_refused');
    // An answer that is no answer must not take the service with it.
    const odd: typeof request = async () => ({ status: 200, headers: {}, body: Buffer.from('{}') });
    await failure(serviceAccountSource(tokenFor('my.example'), '1', odd).vaults());
  }, 60_000);

  /** A module that answers like the SDK. */
  const sdkWith = (lists: Record<string, object[]>, item: object = {}) => {
    const found = Object.keys(lists).map((id) => ({ id, title: `Vault ${id}` }));
    const source = `const lists = ${JSON.stringify(lists)};
      export const createClient = async () => ({
        vaults: { list: async () => ${JSON.stringify(found)} },
        items: { list: async (id) => lists[id], get: async () => (${JSON.stringify(item)}) },
      });`;
    return serviceAccountSource('token', '1', request, `data:text/javascript,${encodeURIComponent(source)}`);
  };
  const overview = (id: string, category: string) => ({ id, title: `Title ${id}`, category, tags: ['x'] });

  test('is read through its SDK', async () => {
    const site = (url: string, autofillBehavior: string) => ({ url, label: 'website', autofillBehavior });
    const websites = [site('https://shop.example', 'AnywhereOnWebsite'), site('https://x.example', 'Never')];
    const field = (id: string, fieldType: string, value: string) => ({ id, title: id, fieldType, value, details: {} });
    const fields = [
      field('username', 'Text', 'ann'),
      field('password', 'Concealed', 'p4ss'),
      field('TOTP_1', 'Totp', otp),
      field('card', 'CreditCardNumber', '4111'),
    ];
    const lists = {
      v: [{ ...overview('a', 'Login'), websites }, overview('b', 'SecureNote')],
      w: [overview('c', 'Password')],
    };
    const source = sdkWith(lists, { fields, notes: 'a note' });
    expect(await source.vaults()).toEqual([
      { id: 'v', name: 'Vault v' },
      { id: 'w', name: 'Vault w' },
    ]);
    const items = await source.items();
    expect(items).toEqual([
      {
        id: 'a',
        title: 'Title a',
        vault_id: 'v',
        vault_name: 'Vault v',
        path: 'Vault v/Title a',
        urls: ['https://shop.example'],
      },
      { id: 'c', title: 'Title c', vault_id: 'w', vault_name: 'Vault w', path: 'Vault w/Title c' },
    ]);
    expect(await source.read(items[0]!)).toEqual({ values: { username: 'ann', password: 'p4ss' }, totp: otp });
  });

  test('passes the first ten thousand logins on, and a large item is refused', async () => {
    const many = Array.from({ length: 5500 }, (_, at) => overview(String(at), 'Login'));
    const notes = Array.from({ length: 5000 }, () => overview('note', 'SecureNote'));
    const fields = Array.from({ length: 3000 }, (_, at) => ({
      id: `${at}`,
      title: 'x',
      fieldType: 'Text',
      value: 'x',
    }));
    const source = sdkWith({ v: [...notes, ...many], w: many }, { fields });
    const items = await source.items();
    expect(items).toHaveLength(10_000);
    expect(items.at(-1)).toMatchObject({ id: '4499', vault_id: 'w' });
    expect(await failure(source.read(items[0]!))).toMatchObject({
      code: 'bad_answer',
      message: 'The password manager answered with more than 20000 names and values.',
    });
  });
});

test('the first field of a name wins, and those of the store itself come before others', () => {
  const other = (label: string, value: string) => ({ kind: 'other' as const, label, value });
  expect(
    contentsOf([
      other('Password', 'old'),
      { kind: 'password', label: 'Kennwort', value: 'new' },
      other('E-Mail', 'a'),
      other('e mail', 'b'),
      other('', 'nameless'),
      other('long', 'x'.repeat(10_001)),
    ]),
  ).toEqual({ values: { password: 'new', e_mail: 'a' }, totp: undefined });
});

test('logins get what every login needs of an item, and the fields that the provider names', () => {
  const values = {
    username: 'ann',
    e_mail: 'ann@shop.example',
    password: 'p4ss',
    old_password: 'p3ss',
    pin: '1234',
    account_number: '4711',
    recovery_code: 'r3c',
    api_key: 'k',
    secret: 's',
  };
  expect(forLogins({ values, totp: otp }, [])).toEqual({
    values: { username: 'ann', e_mail: 'ann@shop.example', password: 'p4ss' },
    totp: otp,
  });
  expect(Object.keys(forLogins({ values }, ['Account Number', 'PIN', 'nothing']).values)).toEqual([
    'username',
    'e_mail',
    'password',
    'pin',
    'account_number',
  ]);
});
