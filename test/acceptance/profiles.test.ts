import Kernel from '@onkernel/sdk';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { killBrowser } from '../support/kill-browser.ts';
import { loggedIn, startLoginSite, type LoginSite } from '../support/login-site.ts';
import { RawClient } from '../support/mux-server.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startService, type Service } from '../support/service.ts';

let site: LoginSite;
let service: Service;
let sdk: Kernel;
/** Logged in, for tests that read it and leave it as it is. */
let kept: Kernel.Profile;
const settings = () => ({ CORRAL_ALLOW_PRIVATE_HOSTS: site.host, CORRAL_MAX_SESSIONS: '8' });
beforeAll(async () => {
  site = await startLoginSite();
  service = await startService(settings());
  sdk = service.sdk();
  kept = await loggedInProfile('made-headless', { headless: true });
});
afterAll(async () => {
  await service?.close();
  await site?.close();
});
afterEach(() => expectNothingLeft(service));

type Wishes = Kernel.BrowserCreateParams & { profile?: { force?: boolean } };
const create = (wishes: Wishes = {}) => sdk.browsers.create({ headless: true, ...wishes });
const end = (session: { session_id: string }) => sdk.browsers.deleteByID(session.session_id);
const home = (session: { session_id: string }) => join(service.dataDir, 'sessions', session.session_id, 'home');
const versionsOf = async (id: string) => (await service.call('GET', `/profiles/${id}/versions`)).body;

/** A profile that a session has logged in and saved. */
async function loggedInProfile(name: string, wishes: Wishes = {}) {
  const profile = await sdk.profiles.create({ name });
  const session = await create({ profile: { id: profile.id, save_changes: true }, ...wishes });
  await site.logIn(session);
  await end(session);
  return profile;
}

describe('a profile', () => {
  test('is created, found by id and name without regard to case and accents, renamed and deleted', async () => {
    const profile = await sdk.profiles.create({ name: 'café' });
    expect(profile).toMatchObject({ id: expect.any(String), name: 'café', created_at: expect.any(String) });
    expect(await sdk.profiles.retrieve('CAFÉ')).toMatchObject({ id: profile.id });
    const listed = async (query: Kernel.ProfileListParams) =>
      (await sdk.profiles.list(query)).getPaginatedItems().map(({ id }) => id);
    expect(await listed({ name: 'Cafe' })).toEqual([profile.id]);
    expect(await listed({ query: 'AFÉ' })).toEqual([profile.id]);
    expect(await listed({ query: profile.id })).toEqual([profile.id]);
    expect(await listed({ query: profile.id.slice(4, -4).toUpperCase() })).toEqual([profile.id]);
    expect(await listed({ name: 'caf' })).toEqual([]);
    await expect(sdk.profiles.create({ name: 'CAFE' })).rejects.toThrow(Kernel.ConflictError);
    expect(await sdk.profiles.update(profile.id, { name: 'tea' })).toMatchObject({ name: 'tea' });
    await expect(sdk.profiles.retrieve('café')).rejects.toThrow(/GET \/profiles lists them/);
    expect(await service.call('GET', `/profiles/${profile.id}/download`)).toMatchObject({ status: 202, text: '' });
    await sdk.profiles.delete('tea');
    await expect(sdk.profiles.retrieve(profile.id)).rejects.toThrow(Kernel.NotFoundError);
    const nameless = await sdk.profiles.create({});
    expect(nameless.name).toBeNull();
    await sdk.profiles.delete(nameless.id);
  });

  test('that is not there is said at once, and costs no browser', async () => {
    const refused = await service.call('POST', '/browsers', { headless: true, profile: { name: 'nobody' } });
    expect(refused).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(/no profile has the name 'nobody'/) },
    });
    expect(await service.call('POST', '/browsers', { profile: { id: 'a', name: 'b' } })).toMatchObject({ status: 400 });
  });

  test('survives save, restart of the service and restore, headless and headful, and from one to the other', async () => {
    const made = [kept, await loggedInProfile('made-headful', { headless: false })];
    await service.close({ keep: true });
    service = await startService({ ...settings(), CORRAL_DATA_DIR: service.dataDir });
    sdk = service.sdk();
    for (const { id, name } of made) {
      for (const headless of [true, false]) {
        const session = await create({ headless, profile: { id } });
        expect(session.profile).toMatchObject({ id, name, last_used_at: expect.any(String) });
        expect(await site.look(session), `${name} opened with headless: ${headless}`).toEqual(loggedIn);
        await end(session);
      }
      expect(await versionsOf(id)).toHaveLength(1); // readers left no trace
    }
  });

  test('brings its tabs back, unless there is a start_url', async () => {
    const { id } = await sdk.profiles.create({ name: 'tabs' });
    const writer = await create({ profile: { id, save_changes: true } });
    await site.logIn(writer);
    const browser = await chromium.connectOverCDP(writer.cdp_ws_url);
    await (await browser.contexts()[0]!.newPage()).goto(`${site.url}/second`);
    await browser.close();
    await end(writer);
    const urls = async (session: { cdp_ws_url: string }) => {
      const again = await chromium.connectOverCDP(session.cdp_ws_url);
      const found = again
        .contexts()[0]!
        .pages()
        .map((page) => new URL(page.url()).pathname);
      await again.close();
      return found.sort();
    };
    const restored = await create({ profile: { id } });
    await expect.poll(() => urls(restored)).toEqual(['/', '/second']);
    await end(restored);
    const started = await create({ profile: { id }, start_url: `${site.url}/start` });
    await expect.poll(() => urls(started)).toEqual(['/start']);
    expect(await site.look(started)).toEqual(loggedIn);
    await end(started);
  });

  test('is read by many sessions while one writes; a second writer is refused with the id of the first, unless it insists', async () => {
    const { id, name } = await loggedInProfile('shared');
    const writer = await create({ profile: { id, save_changes: true } });
    const readers = await Promise.all([create({ profile: { id } }), create({ profile: { name: name! } })]);
    for (const reader of readers) expect(await site.look(reader)).toEqual(loggedIn);
    const body = { headless: true, profile: { id, save_changes: true } };
    const refused = await service.call('POST', '/browsers', body);
    expect(refused).toMatchObject({ status: 409, body: { code: 'profile_in_use', session_id: writer.session_id } });
    expect(refused.headers.get('x-should-retry')).toBe('false');
    const forced = await create({ profile: { id, save_changes: true, force: true } });
    await end(forced);
    // Its last save cannot be written for a while, and so long it is being stopped.
    const state = async () =>
      (await service.call('GET', `/browsers/${writer.session_id}?include_deleted=true`)).body.state;
    const ending = await service.app.store.db.transaction(async (tx) => {
      await tx.rows(sql`lock table profile_versions in exclusive mode`);
      const ended = end(writer);
      await expect.poll(state).toBe('stopping');
      return { ended };
    });
    await ending.ended;
    expect(await state()).toBe('stopped');
    expect(await versionsOf(id)).toHaveLength(3);
    await end(await create({ profile: { id, save_changes: true } })); // no session writes any more
    await Promise.all(readers.map(end));
  });

  test('is saved when its session idles out, even out of standby', async () => {
    const { id } = await sdk.profiles.create({});
    const session = await create({ profile: { id, save_changes: true }, timeout_seconds: 10 });
    await site.logIn(session);
    await expect.poll(async () => (await versionsOf(id)).length, { timeout: 60_000, interval: 500 }).toBe(1);
    const again = await create({ profile: { id } });
    expect(await site.look(again)).toEqual(loggedIn);
    await end(again);
  });

  test('is restored from an earlier version', async () => {
    const { id } = await loggedInProfile('versioned');
    const [first] = await versionsOf(id);
    const session = await create({ profile: { id, save_changes: true } });
    await site.onPage(session, (page) => page.context().clearCookies());
    await end(session);
    expect(await versionsOf(id)).toEqual([
      expect.objectContaining({ session_id: session.session_id, current: true }),
      { ...first, current: false },
    ]);
    const loggedOut = await create({ profile: { id } });
    expect(await site.look(loggedOut)).not.toHaveProperty('dated', 'yes');
    await end(loggedOut);
    const restore = (version: string) => service.call('POST', `/profiles/${id}/versions/${version}/restore`);
    expect(await restore('nonsense')).toMatchObject({ status: 404, body: { code: 'profile_version_not_found' } });
    expect(await restore(first.id)).toMatchObject({ status: 200, body: { id } });
    const again = await create({ profile: { id } });
    expect(await site.look(again)).toEqual(loggedIn);
    await end(again);
  });

  test('is downloaded as the archive that is stored, or as the tar in it, without caches', async () => {
    const { id } = kept;
    const zst = Buffer.from(await (await sdk.profiles.download(id)).arrayBuffer());
    const tar = Buffer.from(await (await sdk.profiles.download(id, { format: 'tar' })).arrayBuffer());
    // How large the tar is depends on how full Chromium left its databases: about 1 MB, which is also Node's limit of an output.
    expect(execFileSync('zstd', ['-d', '-c'], { input: zst, maxBuffer: 2 ** 30 }).equals(tar)).toBe(true);
    const names = execFileSync('tar', ['-t'], { input: tar }).toString();
    expect(names).toContain('./Default/Cookies');
    expect(names).not.toMatch(/\/(Cache|Code Cache|GPUCache|Singleton\w+|Safe Browsing)(\/|$)/m);
    expect(zst.length).toBeLessThan(2 ** 20);
    // Sealed at rest: neither the archive nor its content is readable.
    const rows = await service.app.store.db.rows<{ sealed: Buffer }>(sql`select sealed from profile_chunks`);
    for (const { sealed } of rows) expect(sealed.includes(zst.subarray(0, 16))).toBe(false);
  });

  test('that an older Chromium made opens in this one', async () => {
    const profile = await sdk.profiles.create({});
    const session = await create({ profile: { id: profile.id, save_changes: true } });
    await site.logIn(session);
    const mark = join(home(session), 'user-data/Last Version');
    const major = Number(readFileSync(mark, 'utf8').split('.')[0]);
    writeFileSync(mark, `${major - 1}.0.0.1`);
    await end(session);
    const again = await create({ profile: { id: profile.id } });
    expect(await site.look(again)).toEqual(loggedIn);
    expect(readFileSync(join(home(again), 'user-data/Last Version'), 'utf8')).toMatch(new RegExp(`^${major}\\.`));
    await end(again);
  });

  test('cut short or tampered with is said so when a session starts, and never half a profile', async () => {
    const { id } = await loggedInProfile('damaged');
    const { db } = service.app.store;
    const chunks = await db.rows<{
      version_id: string;
      position: number;
      sealed: Buffer;
    }>(sql`select c.* from profile_chunks c
      join profiles p on p.version_id = c.version_id where p.id = ${id} order by position desc`);
    const [last] = chunks;
    const refusal = { status: 500, body: { code: 'profile_damaged', message: expect.stringMatching(/versions/) } };
    const start = () => service.call('POST', '/browsers', { headless: true, profile: { id } });
    const changed = Buffer.from(last!.sealed);
    changed[100]! ^= 1;
    await db.rows(
      sql`update profile_chunks set sealed = ${changed} where version_id = ${last!.version_id} and position = ${last!.position}`,
    );
    expect(await start()).toMatchObject(refusal);
    await db.rows(
      sql`delete from profile_chunks where version_id = ${last!.version_id} and position = ${last!.position}`,
    );
    expect(await start()).toMatchObject(refusal);
    // Attached to a session that runs, it leaves that session as it was.
    const session = await create();
    const client = await RawClient.open(session.cdp_ws_url);
    const change = { name: 'other', tags: { a: 'b' }, viewport: { width: 800, height: 600 } };
    for (const [profile, refused] of [
      [{ id }, refusal],
      [{ id: 'nothing' }, { status: 400, body: { code: 'invalid_input' } }],
    ] as const)
      expect(await service.call('PATCH', `/browsers/${session.session_id}`, { ...change, profile })).toMatchObject(
        refused,
      );
    expect(await client.result('Browser.getVersion')).toHaveProperty('product');
    const after = await sdk.browsers.retrieve(session.session_id);
    for (const field of ['profile', 'name']) expect(after).not.toHaveProperty(field);
    expect(after).toMatchObject({ tags: {}, viewport: session.viewport });
    await client.close();
  });

  test('is attached to a session that runs, headless or headful, at the same addresses', async () => {
    const { id } = await loggedInProfile('attached');
    for (const [headless, versions] of [
      [true, 2],
      [false, 3],
    ] as const) {
      const session = await create({ headless });
      const client = await RawClient.open(session.cdp_ws_url);
      const patched = await sdk.browsers.update(session.session_id, { profile: { id, save_changes: true } });
      expect(patched.profile).toMatchObject({ id });
      expect(await client.closed).toMatchObject({ code: 1012, reason: expect.stringMatching(/profile.*same address/) });
      expect(await site.look(session), `headless: ${headless}`).toEqual(loggedIn);
      const second = await service.call('PATCH', `/browsers/${session.session_id}`, { profile: { id } });
      expect(second).toMatchObject({ status: 409, body: { code: 'profile_loaded' } });
      const found = await sdk.browsers.list({ query: id });
      expect(found.getPaginatedItems().map(({ session_id }) => session_id)).toEqual([session.session_id]);
      await end(session);
      expect(await versionsOf(id)).toHaveLength(versions);
    }
  });

  test('is unchanged when its session crashes for good, and is not saved after it was deleted', async () => {
    const { id } = await loggedInProfile('crashing');
    const session = await create({ profile: { id, save_changes: true } });
    await service.app.sessions.stop(session.session_id, 'crashed', 'for the test');
    expect(await versionsOf(id)).toHaveLength(1);
    const writer = await create({ profile: { id, save_changes: true } });
    await sdk.profiles.delete(id);
    await end(writer);
    const rows = await service.app.store.db.rows(sql`select id from profile_versions where profile_id = ${id}`);
    expect(rows).toEqual([]);
  });

  test('a session that crashes and comes back is still logged in', async () => {
    const session = await create({ profile: { id: kept.id } });
    const client = await RawClient.open(session.cdp_ws_url);
    await killBrowser(service, session.session_id);
    expect(await client.closed).toMatchObject({ code: 1012 });
    expect(await site.look(session)).toEqual(loggedIn);
    await end(session);
  });
});
