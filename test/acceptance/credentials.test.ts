import Kernel from '@onkernel/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startService, type Service } from '../support/service.ts';

let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  service = await startService();
  sdk = service.sdk();
});
afterAll(() => service?.close());

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
