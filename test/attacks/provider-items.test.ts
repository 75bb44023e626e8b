import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { startConnect, type Store } from '../support/credential-stores.ts';
import { requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';

await requireSandbox();

const planted = {
  username: 'pl4nted-user',
  password: 'pl4nted-p4ssword',
  recovery: 'pl4nted-rec0very',
  card: 'pl4nted-c4rd',
  key: 'pl4nted-api-k3y',
};
const secrets = Object.values(planted);

/** A login page that sends home every key that is typed into it, whether its form is submitted or not. */
async function startSite(address: string, more = '') {
  const typed: string[] = [];
  const server: Server = createServer((request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => (body += part.toString()));
    request.on('end', () => {
      typed.push(decodeURIComponent(`${request.url} ${body}`));
      const refused = request.url === '/login' ? '<p role="alert">Wrong user name or password.</p>' : '';
      response.writeHead(200, { 'content-type': 'text/html' })
        .end(`<!doctype html><html lang="en"><title>Sign in</title>
        <h1>Sign in</h1>${refused}<form method="post" action="/login">
          <label>Username <input name="user" autocomplete="username" required></label>
          <label>Password <input name="pass" type="password" autocomplete="current-password" required></label>
          ${more}<button>Sign in</button></form>
        <script>addEventListener('input', (event) => navigator.sendBeacon('/typed', encodeURIComponent(event.target.value)))</script>`);
    });
  });
  await new Promise<void>((listening) => server.listen(0, address, listening));
  const host = `${address}:${(server.address() as AddressInfo).port}`;
  return {
    host,
    url: `http://${host}`,
    /** Which of the planted texts the site got. */
    got: () => secrets.filter((secret) => typed.some((text) => text.includes(secret))),
    forget: () => void typed.splice(0),
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
type Site = Awaited<ReturnType<typeof startSite>>;

/** The holder of a project's key goes after the passwords in a store of the organisation. */
describe('a provider of the organisation', () => {
  let shop: Site;
  let nosy: Site;
  let evil: Site;
  let store: Store;
  let service: Service;
  let provider: string;
  let stranger: { authorization: string };
  let number = 0;

  beforeAll(async () => {
    shop = await startSite('127.0.0.1');
    nosy = await startSite(
      '127.0.0.1',
      `<label>Recovery code <input name="a" required></label><label>Card number <input name="b" required></label>
       <label>API key <input name="c" required></label>`,
    );
    evil = await startSite('127.0.0.2');
    const { username, password } = planted;
    const others = { 'Recovery code': planted.recovery, 'Card number': planted.card, 'API key': planted.key };
    store = await startConnect('token', [
      { vault: 'Team', title: 'Shop', urls: [shop.url], username, password },
      { vault: 'Team', title: 'Nosy', urls: [nosy.url], username, password, others },
      { vault: 'Team', title: 'No site', username, password },
    ]);
    const CORRAL_ALLOW_PRIVATE_HOSTS = [store, shop, nosy, evil].map(({ host }) => host).join(',');
    service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS, CORRAL_MAX_SESSIONS: '4' });
    const request = { provider_type: 'passwordmanager', name: 'Team', token: 'token', server_url: store.url };
    provider = (await service.call('POST', '/org/credential_providers', request)).body.id;
    const project = (await service.call('POST', '/org/projects', { name: 'Stranger' })).body.id;
    const { body } = await service.call('POST', '/org/api_keys', { name: 'stranger', project_id: project });
    stranger = { authorization: `Bearer ${body.key}` };
  });
  afterAll(async () => {
    await service?.close();
    for (const each of [store, shop, nosy, evil]) await each?.close();
  });

  const connect = (body: object, headers: Record<string, string> = {}) =>
    service.call('POST', '/auth/connections', { profile_name: `profile-${++number}`, ...body }, headers);

  /** Logs in until the login is over or asks a person. */
  async function login(id: string, headers: Record<string, string> = {}) {
    expect(await service.call('POST', `/auth/connections/${id}/login`, {}, headers)).toMatchObject({ status: 200 });
    return vi.waitFor(
      async () => {
        const { body } = await service.call('GET', `/auth/connections/${id}`, undefined, headers);
        expect(body.flow_status !== 'IN_PROGRESS' || body.flow_step === 'AWAITING_INPUT').toBe(true);
        return body;
      },
      { timeout: 120_000, interval: 200 },
    );
  }

  /** A connection with this credential, as one was made before the store had the item, or named other sites. */
  async function madeEarlier(body: object, kind: 'item' | 'auto_of', path: string | null): Promise<string> {
    const { id } = (await connect(body)).body;
    await service.app.store.db.rows(sql`update auth_connections
      set credential_kind = ${kind}, provider_id = ${provider}, provider_path = ${path} where id = ${id}`);
    return id;
  }

  test('is not there for a project that it is not shared with, by name, id, path and site', async () => {
    for (const named of ['Team', provider])
      for (const way of [{ path: 'Team/Shop' }, { auto: true }]) {
        const ask = (of: string) =>
          connect({ domain: shop.host, login_url: shop.url, credential: { provider: of, ...way } }, stranger);
        const [unshared, missing] = [await ask(named), await ask('nothing')];
        expect(unshared).toMatchObject({ status: 400, body: { code: 'invalid_input' } });
        expect(unshared.body.message.replaceAll(named, 'nothing')).toBe(missing.body.message);
      }
    expect(await service.call('GET', '/org/credential_providers', undefined, stranger)).toMatchObject({ body: [] });
    const [unshared, missing] = await Promise.all(
      [provider, 'nothing'].map((id) => service.call('GET', `/org/credential_providers/${id}`, undefined, stranger)),
    );
    expect(unshared?.status).toBe(404);
    expect(unshared?.body.message.replaceAll(provider, 'nothing')).toBe(missing?.body.message);
  });

  test('gives nothing to a login of such a project that asks all providers', { timeout: 300_000 }, async () => {
    shop.forget();
    const made = await connect({ domain: shop.host, login_url: shop.url, credential: { auto: true } }, stranger);
    expect(made).toMatchObject({ status: 201 });
    expect(await login(made.body.id, stranger)).toMatchObject({ flow_step: 'AWAITING_INPUT' });
    expect(shop.got()).toEqual([]);
  });

  test.each<[string, () => object]>([
    ['the domain of the item and a login page elsewhere', () => ({ domain: shop.host, credential: { auto: true } })],
    ['the same with the provider', () => ({ domain: shop.host, credential: { provider: 'Team', auto: true } })],
    ['a path and a site elsewhere', () => ({ domain: evil.host, credential: { provider: 'Team', path: 'Team/Shop' } })],
    ['an id and a site elsewhere', () => ({ domain: evil.host, credential: { provider, path: 'item0' } })],
    ['an item without a site', () => ({ domain: evil.host, credential: { provider: 'Team', path: 'Team/No site' } })],
  ])('takes no connection with %s', async (_, body) => {
    expect(await connect({ login_url: `${evil.url}/login`, ...body() })).toMatchObject({
      status: 400,
      body: { code: 'item_not_for_site', message: expect.stringContaining('Add ') },
    });
    const later = await connect({ login_url: shop.url, domain: shop.host });
    const { domain: _domain, ...credential } = body() as { domain: string };
    expect(
      await service.call('PATCH', `/auth/connections/${later.body.id}`, {
        login_url: `${evil.url}/login`,
        ...credential,
      }),
    ).toMatchObject({ status: 400, body: { code: 'item_not_for_site' } });
  });

  test.each<[string, () => Promise<string>]>([
    [
      'a login page elsewhere',
      () => madeEarlier({ domain: shop.host, login_url: `${evil.url}/login` }, 'auto_of', null),
    ],
    ['a site elsewhere', () => madeEarlier({ domain: evil.host, login_url: evil.url }, 'item', 'Team/Shop')],
  ])('has nothing typed by an older connection with %s', { timeout: 300_000 }, async (_, made) => {
    evil.forget();
    expect(await login(await made())).toMatchObject({
      flow_status: 'FAILED',
      error_code: 'domain_not_allowed',
      error_message: expect.stringContaining('to the sites of the item'),
    });
    expect(evil.got()).toEqual([]);
  });

  test(
    'is typed at the site that the item names, by a project that it is shared with',
    { timeout: 300_000 },
    async () => {
      shop.forget();
      const credential = { provider: 'Team', path: 'Team/Shop' };
      const { id } = (await connect({ domain: shop.host, login_url: shop.url, credential })).body;
      await login(id);
      expect(shop.got()).toEqual([planted.username, planted.password]);
    },
  );

  test('gives a page that asks for other fields of the item none of them', { timeout: 300_000 }, async () => {
    const credential = { provider: 'Team', path: 'Team/Nosy' };
    const { body } = await connect({ domain: nosy.host, login_url: nosy.url, credential });
    await login(body.id);
    const { username, password } = planted;
    expect(nosy.got().filter((text) => text !== username && text !== password)).toEqual([]);
  });

  test('ends the login of a project that it was taken from', { timeout: 300_000 }, async () => {
    shop.forget();
    const credential = { provider: 'Team', path: 'Team/Shop' };
    const { body } = await connect({ domain: shop.host, login_url: shop.url, credential });
    await service.call('PATCH', `/org/credential_providers/${provider}`, { projects: [] });
    expect(await login(body.id)).toMatchObject({
      flow_status: 'FAILED',
      error_code: 'credentials_invalid',
      error_message: expect.stringContaining('not shared with its project'),
    });
    expect(shop.got()).toEqual([]);
    // The new name is for other projects.
    await service.call('PATCH', `/org/credential_providers/${provider}`, { name: 'Renamed for others' });
    for (const path of [`/auth/connections/${body.id}`, '/auth/connections?limit=100']) {
      const { text } = await service.call('GET', path);
      expect(text).toContain(body.id);
      expect(text).not.toContain('Renamed for others');
    }
  });
});
