import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Connection } from '../../src/logins/schema.ts';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { requireSandbox } from '../support/sandbox.ts';

await requireSandbox();

const options = Array.from({ length: 99 }, (_, at) => `<option value="aaaaaaaaaaaa${at}">aaaaaaaaaaaa${at}</option>`);
const selects = Array.from(
  { length: 50 },
  (_, at) =>
    `<label>Server ${at} <select name=s${at} required><option value=""></option>${options.join('')}</select></label>`,
);
/** Each character becomes eighteen without accents and compatibility forms. */
const decomposed = Array.from(
  { length: 60 },
  (_, at) =>
    `<label>Server ${at} <select name=s${at} required><option value=""></option>${Array.from({ length: 90 }, (_, value) => `<option>${'\uFDFA'.repeat(65)}${value}</option>`).join('')}</select></label>`,
);
const names = Array.from(
  { length: 59 },
  (_, at) => `<label>User ${at} <input name=u${at} autocomplete=username></label>`,
);
/** Values of a credential of which every option of the page has the beginning. */
const values = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`secret${at}`, `aa${at}/ +  b`]));
/** An item of 8 MB, with long names and a long secret that are cut into words. */
const item = { values: { ['a-'.repeat(1_900_000)]: 'x', name: 'y' }, totp_secret: 'A-'.repeat(1_900_000) };
/** An item with as many names as a large list has. */
const manyNames = { values: Object.fromEntries(Array.from({ length: 98_000 }, (_, at) => [`k${at}`, 'x'])) };

const handlers: Record<string, string> = {
  '/options': `<title>Log in</title><form>${selects.join('')}<input type=password><button>Log in</button></form>`,
  '/decomposed': `<meta charset=utf-8><title>Log in</title><form>${decomposed.join('')}<input type=password><button>Log in</button></form>`,
  '/login': '<title>Log in</title><form><input name=user><input type=password><button>Log in</button></form>',
  '/names': `<title>Log in</title><form method=post action=/home>${names.join('')}
    <label>Password <input type=password name=p></label><button>Log in</button></form>`,
  '/home': '<title>Home</title><script>document.cookie = "session=1"</script><a href=/logout>Log out</a>',
  '/store/items/1': JSON.stringify(item),
  '/store/items/2': JSON.stringify(manyNames),
};

let pages: Pages;
let service: Awaited<ReturnType<typeof measuredService>>;
let profiles = 0;
beforeAll(async () => {
  pages = await startPages(handlers);
  const items = ['1', '2'].map((id) => ({ id, title: id, path: id, urls: [pages.url] }));
  handlers['/store/items'] = JSON.stringify({ items });
  service = await measuredService({ CORRAL_ALLOW_PRIVATE_HOSTS: pages.host });
  await made('/credentials', { name: 'many', domain: pages.host, values });
}, 300_000);
afterAll(async () => {
  await service?.close();
  await pages?.close();
});

async function made(path: string, body: object): Promise<Record<string, string>> {
  const answer = await service.call('POST', path, body);
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.body as Record<string, string>;
}

/** Logs in at a page until its first look is recorded, which is after the page was read and the person was asked. */
async function lookedAt(page: string, credential?: object): Promise<void> {
  const { id } = await made('/auth/connections', {
    domain: pages.host,
    profile_name: `profile-${profiles++}`,
    login_url: `${pages.url}${page}`,
    ...(credential && { credential }),
  });
  await made(`/auth/connections/${id}/login`, {});
  const explained = async () => (await made(`/auth/connections/${id}/explain`, {}))['records'] as unknown as object[];
  await vi.waitFor(async () => expect((await explained()).length).toBeGreaterThan(0), {
    timeout: 60_000,
    interval: 500,
  });
  await service.call('DELETE', `/auth/connections/${id}`);
}

test('options of a page that nearly have the secrets of a credential do not stop the service', async () => {
  expect(await service.longestStop(() => lookedAt('options', { name: 'many' }))).toBeLessThan(mostStopMs);
}, 300_000);

test('options of a page that become many times as long without accents do not stop the service', async () => {
  expect(await service.longestStop(() => lookedAt('decomposed', { name: 'many' }))).toBeLessThan(mostStopMs);
}, 240_000);

describe('an item of a credential store', () => {
  beforeAll(async () => {
    const store = { provider_type: 'http', name: 'store', token: 'token', server_url: `${pages.url}store` };
    await made('/org/credential_providers', store);
  });

  test('with long names does not stop the service', async () => {
    const credential = { provider: 'store', path: '1' };
    expect(await service.longestStop(() => lookedAt('login', credential))).toBeLessThan(mostStopMs);
  }, 300_000);

  test('with many names does not stop the service, and the login asks a person instead', async () => {
    const login = async () => {
      const { id } = await made('/auth/connections', {
        domain: pages.host,
        profile_name: `profile-${profiles++}`,
        login_url: `${pages.url}login`,
        credential: { provider: 'store', path: '2' },
      });
      await service.call('POST', `/auth/connections/${id}/login`, {});
      await vi.waitFor(
        async () => {
          const { body } = await service.call('GET', `/auth/connections/${id}`);
          expect(body).toMatchObject({ flow_step: 'AWAITING_INPUT', fields: [{}, { type: 'password' }] });
        },
        { timeout: 60_000, interval: 500 },
      );
      await service.call('DELETE', `/auth/connections/${id}`);
    };
    expect(await service.longestStop(login)).toBeLessThan(mostStopMs);
  }, 300_000);
});

test('a connection whose login typed many names, with a credential of many names, does not stop the service', async () => {
  const long = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`k${at}`.padEnd(255, 'é-'), 'x']));
  await made('/credentials', { name: 'long', domain: pages.host, values: long });
  const { id } = await made('/auth/connections', {
    domain: pages.host,
    profile_name: 'names',
    login_url: `${pages.url}names`,
    allowed_domains: [pages.url],
    credential: { name: 'long' },
    save_credentials: false,
  });
  await made(`/auth/connections/${id}/login`, {});
  const get = async () => (await service.call('GET', `/auth/connections/${id}`)).body as Connection;
  const is = (wanted: Partial<Connection>) =>
    vi.waitFor(async () => expect(await get()).toMatchObject(wanted), { timeout: 100_000, interval: 500 });
  await is({ flow_step: 'AWAITING_INPUT' });
  const field_values = Object.fromEntries((await get()).fields!.map(({ id: name }) => [name, `typed-${name}`]));
  await made(`/auth/connections/${id}/submit`, { field_values });
  await is({ flow_status: 'SUCCESS' });
  expect(await service.longestStop(get)).toBeLessThan(mostStopMs);
}, 300_000);
