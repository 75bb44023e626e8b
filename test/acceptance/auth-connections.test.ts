import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import Kernel from '@onkernel/sdk';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openKeys, secretStore } from '../../src/store/secrets.ts';
import { sql } from '../../src/store/sql.ts';
import { startShopSite, type ShopSite } from '../support/logins/shop-site.ts';
import { startWindowsSite, type WindowsSite } from '../support/logins/windows-site.ts';
import { startService, type Service } from '../support/service.ts';

const planted = { username: 'ann', password: 'pl4nted-p4ssword', wrong: 'pl4nted-wr0ng', code: 'qXz7K9' };
const totp = 'PLANTEDTOTPSECRETPLANTEDTOTPSECR';
const secrets = [planted.password, planted.wrong, planted.code, totp];

let site: ShopSite;
let keySite: WindowsSite;
let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  site = await startShopSite(planted);
  keySite = await startWindowsSite({ ...planted, totp });
  await start();
});
afterAll(async () => {
  await service?.close();
  await site?.close();
  await keySite?.close();
});

async function start(more: Record<string, string> = {}): Promise<void> {
  const hosts = `${site.host},${keySite.host}`;
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: hosts, CORRAL_MAX_SESSIONS: '4', ...more });
  sdk = service.sdk();
}

const connections = () => sdk.auth.connections;
const patience = { timeout: 150_000, interval: 200 };
const until = (id: string, expected: object) =>
  vi.waitFor(async () => {
    const now = await connections().retrieve(id);
    expect(now).toMatchObject(expected);
    return now;
  }, patience);

/** What the account page says in a session with the profile, as a user would open one. */
async function accountPage(profile: string): Promise<string> {
  const session = await sdk.browsers.create({ headless: true, profile: { name: profile } });
  const browser = await chromium.connectOverCDP(session.cdp_ws_url);
  try {
    const page = browser.contexts()[0]!.pages()[0]!;
    await page.goto(`${site.url}/account`);
    return await page.innerText('body');
  } finally {
    await browser.close();
    await sdk.browsers.deleteByID(session.session_id);
  }
}

/** The id of a field of this type, as the login asks for it now. */
const fieldOf = ({ fields }: Kernel.Auth.ManagedAuth, ...types: string[]) =>
  fields!.find(({ type }) => types.includes(type))!.id;

const around = (text: string, secret: string) =>
  text.slice(Math.max(0, text.indexOf(secret) - 200), text.indexOf(secret) + 40);

/** Everything that was read from the service, for the search for secrets at the end. */
const seen: unknown[] = [];
let id: string;
const ids: string[] = [];
const watched = { enabled: true, browser: { page: { enabled: true }, network: { enabled: true } } };

test('a profile is logged in with the help of a person, and sessions with it are', { timeout: 300_000 }, async () => {
  const made = await connections().create({
    domain: site.host,
    profile_name: 'ann',
    login_url: `${site.url}/login`,
    browser_telemetry: watched,
  });
  ({ id } = made);
  expect(made).toMatchObject({
    status: 'NEEDS_AUTH',
    flow_status: null,
    can_reauth_reason: 'no_prior_successful_login',
  });
  const again = await service.call('POST', '/auth/connections', { domain: site.host, profile_name: 'ann' });
  expect(again).toMatchObject({ status: 409, body: { code: 'already_exists', existing_id: id } });
  expect(again.headers.get('x-should-retry')).toBe('false');
  expect(
    await service.call('POST', '/auth/connections', { domain: 'a.example', profile_name: 'b', more: 1 }),
  ).toMatchObject({ status: 400 });

  const login = await connections().login(id, { record_session: true });
  expect(login).toMatchObject({ id, flow_type: 'LOGIN', hosted_url: expect.stringContaining('/auth/hosted/') });
  expect(await service.call('POST', `/auth/connections/${id}/login`)).toMatchObject({ status: 409 });
  const events: Kernel.Auth.ConnectionFollowResponse[] = [];
  const following = (async () => {
    for await (const event of await connections().follow(id)) events.push(event);
  })();

  const asked = await until(id, { flow_step: 'AWAITING_INPUT', flow_status: 'IN_PROGRESS' });
  expect(asked.discovered_fields?.map(({ type }) => type)).toContain('password');
  expect(
    await connections().submit(id, {
      field_values: { [fieldOf(asked, 'identifier')]: planted.username, [fieldOf(asked, 'password')]: planted.wrong },
    }),
  ).toEqual({ accepted: true });
  const refused = await until(id, { flow_step: 'AWAITING_INPUT', website_error: expect.stringContaining('Wrong') });
  const older = Object.fromEntries(
    refused.discovered_fields!.map(({ name, type }) => [
      name,
      type === 'password' ? planted.password : planted.username,
    ]),
  );
  await connections().submit(id, { fields: older });
  const code = await until(id, {
    flow_step: 'AWAITING_INPUT',
    fields: [expect.objectContaining({ label: expect.stringMatching(/code/i) })],
  });
  await service.call('POST', `/auth/connections/${id}/codes`, { code: planted.code });
  const done = await until(id, { flow_status: 'SUCCESS', status: 'AUTHENTICATED', flow_step: 'COMPLETED' });
  await following;
  expect(site.answered).toEqual(['wrong password', 'right password', 'right code']);
  expect(done.credential?.name).toContain('ann');
  expect(done.post_login_url).toContain('/account');
  const last = events.at(-1) as { flow_status?: string };
  expect(last.flow_status).toBe('SUCCESS');
  seen.push(asked, refused, code, done, events);

  expect(await accountPage('ann')).toContain('Signed in as ann'); // the site's cookie has no date
  const timeline = [];
  for await (const entry of connections().timeline(id)) timeline.push(entry);
  expect(timeline).toMatchObject([{ type: 'login', status: 'SUCCESS', telemetry_captured: true }]);
  const { browser_session_id: session, replay_id: replay } = timeline[0]!;
  seen.push(timeline, await sdk.browsers.retrieve(session!, { include_deleted: true }));
  const video = await vi.waitFor(async () => {
    const answer = await sdk.browsers.replays.download(replay!, { id: session! });
    expect(answer.status).toBe(200); // 202 while the file is finished
    return answer;
  }, patience);
  expect((await video.arrayBuffer()).byteLength).toBeGreaterThan(1000);
  seen.push([...video.headers], await sdk.browsers.replays.list(session!));
});

test('after a restart a check finds a lost login, and logs in without a person', { timeout: 300_000 }, async () => {
  expect(await connections().retrieve(id)).toMatchObject({
    can_reauth: true,
    can_reauth_reason: 'requirements_satisfiable',
  });
  const checkNow = () =>
    service.app.store.db.rows(sql`update auth_connections set next_check_at = now() where id = ${id}`);
  await checkNow();
  site.faults.renews = true; // so the check itself uses up the profile's cookie
  await service.app.schedule.look();
  site.faults.renews = false;
  expect(await connections().retrieve(id)).toMatchObject({ status: 'AUTHENTICATED', flow_type: 'LOGIN' });
  expect(await accountPage('ann')).toContain('Signed in as ann');

  site.endSessions();
  seen.push(service.log);
  await service.close({ keep: true });
  await start({ CORRAL_DATA_DIR: service.dataDir });
  expect(await connections().retrieve(id)).toMatchObject({ status: 'AUTHENTICATED', can_reauth: true });
  await checkNow();
  const checking = service.app.schedule.look();
  await until(id, { flow_type: 'REAUTH', flow_step: 'AWAITING_INPUT' });
  await service.call('POST', `/auth/connections/${id}/codes`, { code: planted.code }); // as a program that reads the SMS does
  await checking;
  expect(await connections().retrieve(id)).toMatchObject({ status: 'AUTHENTICATED', flow_status: 'SUCCESS' });
  expect(await accountPage('ann')).toContain('Signed in as ann');
  const timeline = (await connections().timeline(id, { limit: 3 })).getPaginatedItems();
  expect(timeline.map(({ type, status }) => `${type} ${status}`)).toEqual([
    'reauth SUCCESS',
    'health_check NEEDS_AUTH',
    'health_check AUTHENTICATED',
  ]);
});

test('a login that fails leaves the profile as it was, and says why', { timeout: 300_000 }, async () => {
  await sdk.credentials.update((await connections().retrieve(id)).credential!.name!, {
    values: { password: planted.wrong },
  });
  site.endSessions();
  const before = (await service.call('GET', '/profiles/ann/versions')).text;
  await connections().login(id);
  const failed = await vi.waitFor(async () => {
    const now = await connections().retrieve(id);
    if (now.flow_step === 'AWAITING_INPUT') await service.call('DELETE', `/browsers/${now.browser_session_id}`);
    expect(now.flow_status).toBe('FAILED');
    return now;
  }, patience);
  expect((await service.call('GET', '/profiles/ann/versions')).text).toBe(before);
  expect(['credentials_invalid', 'browser_error']).toContain(failed.error_code);
  seen.push(failed);
});

test('a login goes through a TOTP code and a passkey that the site demands', { timeout: 300_000 }, async () => {
  const { username, password } = planted;
  const credential = { name: 'bob', domain: keySite.host, values: { username, password }, totp_secret: totp };
  await sdk.credentials.create(credential);
  const made = await connections().create({
    domain: keySite.host,
    profile_name: 'bob',
    login_url: `${keySite.url}/key`,
    credential: { name: 'bob' },
    browser_telemetry: watched,
  });
  await connections().login(made.id, { record_session: true });
  seen.push(await until(made.id, { status: 'AUTHENTICATED', flow_status: 'SUCCESS' }));
  expect(keySite.answered).toEqual(['right password', 'right code', 'passkey created', 'passkey used']);
  const kept = secretStore(service.app.store.db, await openKeys(service.dataDir, ''));
  const passkeys = JSON.parse((await kept.get('auth connection passkeys', made.id))!) as { privateKey: string }[];
  expect(passkeys).toHaveLength(1);
  const [{ privateKey }] = passkeys as [{ privateKey: string }];
  expect(privateKey.length).toBeGreaterThan(40);
  secrets.push(privateKey, Buffer.from(privateKey, 'base64').toString('hex'));
  ids.push(made.id);
  seen.push((await service.call('GET', '/credentials/bob')).text);
});

test(
  'no secret is in a log, a row, an event, a recipe, an explanation, telemetry or the name of a video',
  { timeout: 300_000 },
  async () => {
    ids.push(id);
    expect(ids).toHaveLength(2);
    for (const each of ids) {
      const recipe = await service.call('GET', `/auth/connections/${each}/recipe`);
      expect(recipe.body.steps.length).toBeGreaterThan(1);
      const explained = await service.call('POST', `/auth/connections/${each}/explain`);
      expect(explained.body.records.length).toBeGreaterThan(0);
      seen.push(recipe.text, explained.text);
      const timeline = (await connections().timeline(each)).getPaginatedItems();
      seen.push(timeline);
      for (const { browser_session_id: session } of timeline)
        if (session) seen.push((await service.call('GET', `/browsers/${session}/telemetry/events`)).text);
    }
    const { db } = service.app.store;
    const tables = await db.rows<{ name: string }>(
      sql`select tablename as name from pg_tables where schemaname = 'corral'`,
    );
    for (const { name } of tables)
      seen.push(await db.rows({ ...sql``, name: `dump_${name}`, text: `select t::text as row from ${name} t` }));
    const videos = await readdir(join(service.dataDir, 'replays'));
    expect(videos.length).toBeGreaterThan(0);
    seen.push(videos);
    // The place of each find is shown, with a few characters around it.
    const everything = [...seen.map((part) => JSON.stringify(part)), ...service.log];
    // A column of bytes is dumped in hexadecimal digits.
    const forms = secrets.flatMap((secret) => [secret, Buffer.from(secret).toString('hex')]);
    const found = everything.flatMap((text) =>
      forms.flatMap((secret) => (text.includes(secret) ? [around(text, secret)] : [])),
    );
    expect(found).toEqual([]);

    for (const each of ids) await connections().delete(each);
    await expect(connections().retrieve(id)).rejects.toThrow(Kernel.NotFoundError);
    expect(await db.rows(sql`select kind from secrets where kind like 'auth %'`)).toEqual([]);
    expect(await sdk.profiles.retrieve('ann')).toMatchObject({ name: 'ann' });
  },
);
