import { toFile, type Kernel } from '@onkernel/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { extensionFiles, zipOf } from '../support/extension-zip.ts';
import { loggedIn, startLoginSite, type LoginSite } from '../support/login-site.ts';
import { startService, type Service } from '../support/service.ts';

let site: LoginSite;
let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  site = await startLoginSite();
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: site.host, CORRAL_MAX_SESSIONS: '8' });
  sdk = service.sdk();
});
afterAll(async () => {
  await service?.close();
  await site?.close();
});

const versionsOf = async (id: string) => (await service.call('GET', `/profiles/${id}/versions`)).body;
const acquire = (pool: Kernel.BrowserPool) => sdk.browserPools.acquire(pool.id, { acquire_timeout_seconds: 40 });
const release = (pool: Kernel.BrowserPool, session: { session_id: string }, reuse = true) =>
  sdk.browserPools.release(pool.id, { session_id: session.session_id, reuse });

const browsersOf = async ({ id }: Kernel.BrowserPool) => {
  const query = sql`select id from sessions where pool_id = ${id} and deleted_at is null`;
  return (await service.app.store.db.rows<{ id: string }>(query)).map((row) => row.id);
};

/** A profile that is logged in, or, with `visit`, a profile with the data of that visit. */
async function savedProfile(name: string, visit = site.logIn) {
  const profile = await sdk.profiles.create({ name });
  await save(profile.id, visit);
  return profile;
}

async function save(id: string, visit: (session: { cdp_ws_url: string }) => Promise<unknown>) {
  const session = await sdk.browsers.create({ headless: true, profile: { id, save_changes: true } });
  await visit(session);
  await sdk.browsers.deleteByID(session.session_id);
}

async function withPool(
  config: Omit<Kernel.BrowserPoolCreateParams, 'size'>,
  use: (pool: Kernel.BrowserPool) => Promise<void>,
) {
  const pool = await sdk.browserPools.create({ size: 1, headless: true, fill_rate_per_minute: 6000, ...config });
  try {
    await use(pool);
  } finally {
    await sdk.browserPools.delete(pool.id, { force: true });
  }
}

describe('a pool', () => {
  test('has its profile and extensions resolved, and its browsers start with them; save_changes means nothing', async () => {
    const profile = await savedProfile('of-a-pool');
    const zip = await toFile(await zipOf(extensionFiles('pooled')), 'pooled.zip');
    const extension = await sdk.extensions.upload({ file: zip, name: 'pooled' });
    const config = { profile: { name: 'of-a-pool', save_changes: true }, extensions: [{ name: 'pooled' }] };
    await withPool(config, async (pool) => {
      expect(pool).toMatchObject({ profile_id: profile.id, extension_ids: [extension.id] });
      expect(pool.browser_pool_config).toMatchObject({
        profile: { name: 'of-a-pool' },
        extensions: [{ name: 'pooled' }],
        refresh_on_profile_update: true,
      });
      const session = await acquire(pool);
      expect(session.profile).toMatchObject({ id: profile.id });
      expect(await site.look(session)).toEqual(loggedIn);
      await site.onPage(session, (page) => page.waitForSelector('html[data-pooled]', { state: 'attached' }));
      await release(pool, session, false);
      expect(await versionsOf(profile.id)).toHaveLength(1);
      const second = await service.call('PATCH', `/browsers/${(await acquire(pool)).session_id}`, {
        profile: { id: profile.id },
      });
      expect(second).toMatchObject({ status: 409, body: { code: 'profile_loaded' } });

      // Cleared, together with the wish to be refreshed; a field left out keeps its value.
      const without = await sdk.browserPools.update(pool.id, { profile: { id: '' } });
      expect(without).not.toHaveProperty('profile_id');
      expect(without.browser_pool_config).not.toHaveProperty('profile');
      expect(without).toMatchObject({
        extension_ids: [extension.id],
        browser_pool_config: { refresh_on_profile_update: false },
      });
      expect(await sdk.browserPools.update(pool.id, { extensions: [] })).toMatchObject({ extension_ids: [] });
      const again = await sdk.browserPools.update(pool.id, { profile: { id: profile.id } });
      expect(again).toMatchObject({
        profile_id: profile.id,
        browser_pool_config: { refresh_on_profile_update: true },
      });
    });
    await sdk.extensions.delete(extension.id);
  });

  test('of a missing profile or extension is refused', async () => {
    const create = (config: object) => service.call('POST', '/browser_pools', { size: 1, headless: true, ...config });
    for (const config of [
      { profile: { name: 'nobody' } },
      { profile: { id: 'nobody' } },
      { extensions: [{ id: 'nobody' }] },
      { refresh_on_profile_update: true },
    ])
      expect(await create(config)).toMatchObject({ status: 400, body: { code: 'invalid_input' } });
  });

  test('that asks for it replaces its idle browsers when the profile is saved; leased browsers continue', async () => {
    const profile = await savedProfile('refreshed', async () => {});
    await withPool({ profile: { id: profile.id } }, (pool) =>
      withPool({ profile: { id: profile.id }, refresh_on_profile_update: false }, async (left) => {
        const leased = await acquire(pool);
        await release(pool, leased);
        const filled = async (id: string) => (await sdk.browserPools.retrieve(id)).available_count;
        await expect.poll(() => filled(pool.id), { timeout: 60_000 }).toBe(1);
        await expect.poll(() => filled(left.id), { timeout: 60_000 }).toBe(1);
        const [before] = await browsersOf(pool);
        await save(profile.id, site.logIn);
        await expect.poll(() => browsersOf(pool), { timeout: 60_000 }).not.toContain(before); // the pool hears of it
        const fresh = await acquire(pool);
        expect(await site.look(fresh)).toEqual(loggedIn);
        const old = await acquire(left);
        expect(await site.look(old)).not.toHaveProperty('dated', 'yes');

        // A lease is never touched.
        const { body } = await service.call('GET', `/profiles/${profile.id}/versions`);
        await service.call('POST', `/profiles/${profile.id}/versions/${body[1].id}/restore`);
        expect(await site.look(fresh)).toEqual(loggedIn);
      }),
    );
  });

  test('lends browsers to which the holder may attach a profile; it is saved and goes with the lease', async () => {
    const profile = await sdk.profiles.create({ name: 'mine' });
    const config = { reset_on_release: false } as object;
    await withPool(config, async (pool) => {
      const session = await acquire(pool);
      await sdk.browsers.update(session.session_id, { profile: { name: 'mine', save_changes: true } });
      await site.logIn(session);
      await release(pool, session); // would be kept as it is, were it not for the profile
      expect(await versionsOf(profile.id)).toHaveLength(1);
      const next = await acquire(pool);
      expect(next.session_id).not.toBe(session.session_id);
      expect(next).not.toHaveProperty('profile');
      expect(await site.look(next)).not.toHaveProperty('dated', 'yes');
      await sdk.browsers.update(next.session_id, { profile: { name: 'mine' } });
      expect(await site.look(next)).toEqual(loggedIn);
    });
  });
});
