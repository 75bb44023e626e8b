import Kernel from '@onkernel/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { startConnect, type Store } from '../support/credential-stores.ts';
import { startService, type Service } from '../support/service.ts';

const planted = { token: 'connect-t0ken-planted', password: 'item-p4ss-planted', user: 'item-user-planted' };

let store: Store;
let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  const item = { vault: 'Team', title: 'Shop', urls: ['https://shop.example'], otp: 'JBSWY3DPEHPK3PXP' };
  store = await startConnect(planted.token, [{ ...item, username: planted.user, password: planted.password }]);
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: store.host });
  sdk = service.sdk();
});
afterAll(async () => {
  await service?.close();
  await store?.close();
});

const post = (body: object) =>
  service.call('POST', '/credentials', { name: 'x', domain: 'x.example', values: {}, ...body });

describe('a credential', () => {
  test('is made, found, changed and deleted by the client users have', async () => {
    const created = await sdk.credentials.create({
      name: 'Café',
      domain: 'shop.example',
      values: { username: 'ann', password: 'open-sesame' },
      totp_secret: 'jbsw y3dp ehpk 3pxp',
    });
    expect(created).toMatchObject({ value_keys: ['username', 'password'], has_values: true, sso_provider: null });
    const { totp_code, totp_code_expires_at, ...facts } = created;
    expect(totp_code).toMatch(/^\d{6}$/);
    expect(Date.parse(totp_code_expires_at!)).toBeGreaterThan(Date.parse(created.created_at));
    expect(await sdk.credentials.retrieve('CAFE')).toEqual(facts);
    const now = await sdk.credentials.totpCode(created.id);
    expect(now).toEqual({ code: expect.stringMatching(/^\d{6}$/), expires_at: expect.stringMatching(/:[03]0\.000Z$/) });
    const changed = await sdk.credentials.update('café', {
      name: 'Tea',
      values: { pin: '1234' },
      remove_value_keys: ['username'],
      totp_secret: '',
      sso_provider: 'google',
    });
    expect(changed).toMatchObject({ value_keys: ['password', 'pin'], has_totp_secret: false, sso_provider: 'google' });
    expect(await sdk.credentials.update('Tea', { sso_provider: null })).toMatchObject({ sso_provider: null });
    await expect(sdk.credentials.totpCode('Tea')).rejects.toThrow(Kernel.NotFoundError);
    await sdk.credentials.delete('Tea');
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/totp-code'],
    ] as const)
      expect(await service.call(method, `/credentials/${created.id}${path}`)).toMatchObject({
        status: 404,
        body: { code: 'credential_not_found' },
      });
  });

  test('belongs to its project, which is not empty while it has one', async () => {
    const project = await sdk.projects.create({ name: 'Elsewhere' });
    const there = service.sdk(service.key, { projectID: project.id });
    const { id } = await there.credentials.create({ name: 'mine', domain: 'shop.example', values: {} });
    expect(await service.call('GET', `/credentials/${id}`)).toMatchObject({ status: 404 });
    expect(await service.call('DELETE', `/org/projects/${project.id}`)).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining('1 credential') },
    });
    await there.credentials.delete(id);
    await sdk.projects.delete(project.id);
  });

  test('is listed a page at a time, by domain, and by part of name or domain', async () => {
    for (const [name, domain] of [
      ['one', 'a.example'],
      ['two', 'a.example'],
      ['three', 'b.example'],
    ] as const)
      await sdk.credentials.create({ name, domain, values: { password: 'p' } });
    const names = async (query: Kernel.CredentialListParams) => {
      const found: string[] = [];
      for await (const credential of sdk.credentials.list(query)) {
        expect(credential).not.toHaveProperty('value_keys');
        found.push(credential.name);
      }
      return found;
    };
    expect(await names({ limit: 1 })).toEqual(['one', 'two', 'three']);
    expect(await names({ domain: 'https://A.example/' })).toEqual(['one', 'two']);
    expect(await names({ query: 'B.EX' })).toEqual(['three']);
    expect(await names({ query: 'TW' })).toEqual(['two']);
    expect(await names({ query: (await sdk.credentials.retrieve('two')).id })).toEqual(['two']);
    expect(await names({ domain: 'example' })).toEqual([]);
    await expect(sdk.credentials.create({ name: 'ONE', domain: 'c.example', values: {} })).rejects.toThrow(
      Kernel.ConflictError,
    );
  });

  test.each<[string, object, RegExp]>([
    ['no name', { name: '' }, /name must have at least 1/],
    ['no values', { values: undefined }, /values is missing/],
    ['values that are no text', { values: { password: 5 } }, /values.password must be a string/],
    ['a value too long', { values: { password: 'x'.repeat(10_001) } }, /values.password must have at most 10000/],
    ['a value without a name', { values: { '': 'x' } }, /values/],
    ['a name with a line break', { values: { 'a\nb': 'x' } }, /values/],
    ['too many values', { values: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [i, ''])) }, /at most 100/],
    ['no site', { domain: 'two words' }, /domain is not a host name/],
    ['a secret that is none', { totp_secret: 'not base32!' }, /totp_secret is not base32/],
  ])('is not made with %s', async (_, body, message) =>
    expect(await post(body)).toMatchObject({ status: 400, body: { message: expect.stringMatching(message) } }),
  );
});

describe('a credential provider', () => {
  const create = (body: object) =>
    service.call('POST', '/org/credential_providers', { provider_type: 'onepassword', name: 'x', token: 't', ...body });

  test('is made, tested, listed, changed and deleted by the client users have', async () => {
    const created = await sdk.credentialProviders.create({
      provider_type: 'onepassword',
      name: 'Team',
      token: 'ops_none',
    });
    expect(created).toEqual({
      id: expect.stringMatching(/^credprov_/),
      provider_type: 'onepassword',
      name: 'Team',
      enabled: true,
      priority: 0,
      cache_ttl_seconds: 300,
      server_url: null,
      projects: [await defaultProject()],
      fields: [],
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    const rotated = { token: planted.token, server_url: store.url };
    const changed = await sdk.credentialProviders.update(created.id, { ...rotated, name: 'Crew', priority: 3 });
    expect(changed).toMatchObject({ name: 'Crew', priority: 3, server_url: store.url });
    expect(await sdk.credentialProviders.retrieve(created.id)).toEqual(changed);
    expect(await sdk.credentialProviders.test(created.id)).toEqual({
      success: true,
      vaults: [{ id: 'vault0', name: 'Team' }],
    });
    expect(await sdk.credentialProviders.listItems(created.id)).toEqual({
      items: [
        {
          id: 'item0',
          title: 'Shop',
          vault_id: 'vault0',
          vault_name: 'Team',
          path: 'Team/Shop',
          urls: ['https://shop.example'],
        },
      ],
    });
    const found: string[] = [];
    for await (const { name } of sdk.credentialProviders.list({ query: 'RE' })) found.push(name);
    expect(found).toEqual(['Crew']);
    await expect(
      sdk.credentialProviders.create({ provider_type: 'onepassword', name: 'CREW', token: 't' }),
    ).rejects.toThrow(Kernel.ConflictError);
    await sdk.credentialProviders.delete(created.id);
    await expect(sdk.credentialProviders.test(created.id)).rejects.toThrow(Kernel.NotFoundError);
  });

  test('is for the project in which it is made, for those it names, or for all', async () => {
    const project = await sdk.projects.create({ name: 'Sharing' });
    const there = { 'x-kernel-project-id': project.id };
    const request = { provider_type: 'onepassword', token: 't' };
    const path = '/org/credential_providers';
    const own = await service.call('POST', path, { ...request, name: 'theirs' }, there);
    expect(own).toMatchObject({ status: 201, body: { projects: [project.id] } });
    const changed = await service.call('PATCH', `${path}/${own.body.id}`, {
      projects: ['sharing', 'Default'],
      fields: ['PIN'],
    });
    expect(changed.body).toMatchObject({ projects: [project.id, await defaultProject()], fields: ['PIN'] });
    const all = await create({ name: 'all', projects: ['*'] });
    expect(all).toMatchObject({ status: 201, body: { projects: ['*'] } });
    await create({ name: 'hidden', projects: [] });
    const { body: key } = await service.call('POST', '/org/api_keys', { name: 'bound', project_id: project.id });
    const bound = { authorization: `Bearer ${key.key}` };
    const seen = await service.call('GET', path, undefined, bound);
    expect(seen.body).toMatchObject([
      { name: 'theirs', projects: [project.id] },
      { name: 'all', projects: ['*'] },
    ]);
    for (const { name } of (await service.call('GET', path)).body as { name: string }[])
      expect(await service.call('POST', path, { ...request, name }, bound)).toMatchObject({ status: 403 });
    const credential = { provider: 'hidden', auto: true };
    expect(
      await service.call('POST', '/auth/connections', { domain: 'a.example', profile_name: 'a', credential }, bound),
    ).toMatchObject({ status: 400, body: { message: expect.stringContaining("no credential provider is 'hidden'") } });
    expect(
      await service.call('POST', '/auth/connections', { domain: 'a.example', profile_name: 'a', credential }, there),
    ).toMatchObject({ status: 400, body: { message: expect.stringContaining('is not shared with project') } });
    await sdk.projects.delete(project.id);
    expect((await service.call('GET', `${path}/${own.body.id}`)).body.projects).toEqual([await defaultProject()]);
    for (const { id } of (await service.call('GET', path)).body) await service.call('DELETE', `${path}/${id}`);
  });

  test.each<[string, object, RegExp]>([
    ['no token', { token: '' }, /token must have at least 1/],
    ['a token with a line break', { token: 'a\r\nX-Vault-Token: b' }, /token has characters/],
    ['a type that is none', { provider_type: 'keepass' }, /provider_type must be one of/],
    ['no address where one is needed', { provider_type: 'vault' }, /server_url is missing/],
    ['an address that is none', { server_url: 'ftp://x.example' }, /server_url must be an http/],
    ['a password in the address', { server_url: 'https://ann:pw@x.example' }, /server_url must be an http/],
    [
      'a private address',
      { server_url: 'http://10.1.2.3:8200' },
      /10.1.2.3:8200 is on a private network.*CORRAL_ALLOW/,
    ],
    ['this service', { server_url: 'http://127.0.0.1:1' }, /127.0.0.1:1 is on a private network/],
    ['fields of another type', { mounts: ['secret'] }, /are for providers of type vault/],
    [
      'mounts that lead elsewhere',
      { provider_type: 'vault', server_url: 'https://8.8.8.8', mounts: ['../sys'] },
      /mounts has a name/,
    ],
    ['certificates that are none', { server_url: 'https://8.8.8.8', ca_bundle: 'x' }, /ca_bundle is not a list of PEM/],
    ['a project that is none', { projects: ['nothing'] }, /projects: no project is 'nothing'/],
    ['a time out of bounds', { cache_ttl_seconds: 86_401 }, /at most 86400/],
  ])('is not made with %s', async (_, body, message) =>
    expect(await create(body)).toMatchObject({ status: 400, body: { message: expect.stringMatching(message) } }),
  );

  test('and a credential leave no secret in the database, the log and the responses', async () => {
    const hidden = ['value-s3cret-planted', 'ONSWG4TFOQWXA3DBNZ2GKZBA', ...Object.values(planted)];
    const answers: string[] = [];
    const call = async (method: string, path: string, body?: unknown) => {
      const answer = await service.call(method, path, body);
      answers.push(answer.text, JSON.stringify([...answer.headers]));
      return answer;
    };
    const credential = {
      name: 'planted',
      domain: 'shop.example',
      values: { password: hidden[0] },
      totp_secret: hidden[1],
    };
    await call('POST', '/credentials', credential);
    await call('POST', '/credentials', credential); // refused
    await call('POST', '/credentials', JSON.stringify(credential).slice(0, -1)); // broken off
    await call('POST', '/credentials', { ...credential, name: 'other', values: { password: [hidden[0]] } });
    await call('PATCH', '/credentials/planted', { values: { password: hidden[0] }, totp_secret: `${hidden[1]}1` });
    for (const path of ['', '/planted', '/planted/totp-code']) await call('GET', `/credentials${path}`);
    const request = { provider_type: 'passwordmanager', name: 'planted', token: planted.token, server_url: store.url };
    const { body: provider } = await call('POST', '/org/credential_providers', request);
    for (const fault of [undefined, 'sealed', 'html', 'cut'] as const) {
      store.state.fault = fault;
      await call('POST', `/org/credential_providers/${provider.id}/test`);
      await call('GET', `/org/credential_providers/${provider.id}/items`);
    }
    store.state.fault = undefined;
    // Read as a login reads it: the sealed values are those that were sent.
    expect(
      await service.app.credentials.resolve({ projectId: await defaultProject(), credential: { name: 'planted' } }),
    ).toMatchObject({
      values: { password: hidden[0] },
    });
    const item = { projectId: await defaultProject(), credential: { auto: true }, domain: 'shop.example' };
    expect(await service.app.credentials.resolve(item)).toMatchObject({ values: { password: planted.password } });

    const { db } = service.app.store;
    const tables = await db.rows<{ name: string }>(
      sql`select format('%I.%I', schemaname, tablename) as name from pg_tables
        where schemaname not in ('pg_catalog', 'information_schema')`,
    );
    let rows = '';
    for (const { name } of tables)
      rows += JSON.stringify(await db.rows({ name: '', text: `select t::text from ${name} t`, values: [] }));
    expect(rows).toContain('planted');
    const places = { database: rows, log: service.log.join('\n'), answers: answers.join('\n') };
    const leaks = Object.entries(places).flatMap(([place, text]) =>
      hidden.flatMap((value) =>
        [value, Buffer.from(value).toString('base64').replace(/=+$/, '')].some((form) => text.includes(form))
          ? [`${value} is in the ${place}`]
          : [],
      ),
    );
    expect(leaks).toEqual([]);
  });
});

const defaultProject = async () => (await service.call('GET', '/org/projects')).body[0].id as string;
