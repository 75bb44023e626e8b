import Kernel from '@onkernel/sdk';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { spawnService } from '../support/process.ts';
import { startService, type Service } from '../support/service.ts';

let pages: Pages;
let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  pages = await startPages();
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: pages.host, CORRAL_MAX_SESSIONS: '12' });
  sdk = service.sdk();
});
afterAll(async () => {
  await service?.close();
  await pages?.close();
});

async function filled(id: string, count: number) {
  await expect.poll(async () => (await sdk.browserPools.retrieve(id)).available_count, { timeout: 60_000 }).toBe(count);
}

/** A full pool that is deleted after the test. */
async function withPool(config: Kernel.BrowserPoolCreateParams, use: (pool: Kernel.BrowserPool) => Promise<void>) {
  const pool = await sdk.browserPools.create(config);
  try {
    await filled(pool.id, config.size);
    await use(pool);
  } finally {
    await sdk.browserPools.delete(pool.id, { force: true });
  }
}

describe('a pool', () => {
  test('is declared, found, changed and deleted', async () => {
    const created = await sdk.browserPools.create({
      size: 1,
      name: 'Declared',
      headless: true,
      fill_rate_per_minute: 50,
    });
    expect(created).toMatchObject({
      name: 'Declared',
      acquired_count: 0,
      extension_ids: [],
      browser_pool_config: {
        size: 1,
        name: 'Declared',
        headless: true,
        stealth: false,
        timeout_seconds: 600,
        fill_rate_per_minute: 50,
      },
    });
    expect(await sdk.browserPools.retrieve('DECLARED')).toMatchObject({ id: created.id });
    const listed = await sdk.browserPools.list({ query: 'eclar' });
    expect(listed.getPaginatedItems().map((pool) => pool.id)).toEqual([created.id]);
    await expect(sdk.browserPools.create({ size: 1, name: 'declared' })).rejects.toThrow(Kernel.ConflictError);
    const updated = await sdk.browserPools.update(created.id, { size: 2, timeout_seconds: 60, name: '' });
    expect(updated.browser_pool_config).toMatchObject({
      size: 2,
      timeout_seconds: 60,
      name: 'Declared',
      fill_rate_per_minute: 50,
    });
    await sdk.browserPools.delete(created.id);
    await expect(sdk.browserPools.retrieve(created.id)).rejects.toThrow(Kernel.NotFoundError);
  });

  test('lends its browsers out exactly once, and takes them back clean', () =>
    withPool({ size: 2, headless: true }, async (pool) => {
      const first = await sdk.browserPools.acquire(pool.id, { name: 'mine', tags: { team: 'a' } });
      const second = await sdk.browserPools.acquire(pool.id, {});
      expect(first.session_id).not.toBe(second.session_id);
      expect(first).toMatchObject({ name: 'mine', tags: { team: 'a' }, timeout_seconds: 600, pool: { id: pool.id } });
      expect(await sdk.browserPools.retrieve(pool.id)).toMatchObject({ available_count: 0, acquired_count: 2 });

      const browser = await chromium.connectOverCDP(first.cdp_ws_url);
      await browser.contexts()[0]!.addCookies([{ name: 'left', value: 'behind', url: pages.url }]);
      await sdk.browserPools.release(pool.id, { session_id: first.session_id });
      await filled(pool.id, 1);
      const third = await sdk.browserPools.acquire(pool.id, {});
      expect(third.name).toBeUndefined();
      const again = await chromium.connectOverCDP(third.cdp_ws_url);
      expect(await again.contexts()[0]!.cookies()).toEqual([]);
      await again.close();
    }));

  test('lets clients wait, first come first served, and answers 204 when the time is over', () =>
    withPool({ size: 1, headless: true }, async (pool) => {
      const held = await sdk.browserPools.acquire(pool.id, {});
      const none = await service.call('POST', `/browser_pools/${pool.id}/acquire`, { acquire_timeout_seconds: 1 });
      expect(none).toMatchObject({ status: 204, text: '' });
      expect(none.headers.get('x-queue-position')).toBe('1');

      const order: string[] = [];
      const waiting = ['a', 'b', 'c'].map(async (name, index) => {
        await expect
          .poll(
            async () =>
              ((await sdk.browserPools.retrieve(pool.id)) as unknown as { waiting_count: number }).waiting_count,
          )
          .toBe(index);
        const session = await sdk.browserPools.acquire(pool.id, { name });
        order.push(name);
        await sdk.browserPools.release(pool.id, { session_id: session.session_id });
      });
      await expect
        .poll(
          async () =>
            ((await sdk.browserPools.retrieve(pool.id)) as unknown as { waiting_count: number }).waiting_count,
        )
        .toBe(3);
      await sdk.browserPools.release(pool.id, { session_id: held.session_id });
      await Promise.all(waiting);
      expect(order).toEqual(['a', 'b', 'c']);
    }));

  test('releasing twice, or an unknown session, is a 404 and changes nothing', () =>
    withPool({ size: 1, headless: true }, async (pool) => {
      const session = await sdk.browserPools.acquire(pool.id, {});
      await sdk.browserPools.release(pool.id, { session_id: session.session_id });
      await expect(sdk.browserPools.release(pool.id, { session_id: session.session_id })).rejects.toThrow(/not leased/);
      await expect(sdk.browserPools.release(pool.id, { session_id: 'unknown' })).rejects.toThrow(Kernel.NotFoundError);
      await filled(pool.id, 1);
    }));

  test('is not deleted while leased, unless by force', async () => {
    const pool = await sdk.browserPools.create({ size: 1, headless: true });
    await filled(pool.id, 1);
    const session = await sdk.browserPools.acquire(pool.id, {});
    expect(await service.call('DELETE', `/browser_pools/${pool.id}`)).toMatchObject({
      status: 400,
      body: { code: 'pool_in_use' },
    });
    const waiter = service.call('POST', `/browser_pools/${pool.id}/acquire`, {});
    await expect
      .poll(
        async () => ((await sdk.browserPools.retrieve(pool.id)) as unknown as { waiting_count: number }).waiting_count,
      )
      .toBe(1);
    await sdk.browserPools.delete(pool.id, { force: true });
    expect(await waiter).toMatchObject({ status: 404, body: { code: 'pool_deleted' } });
    await expect(sdk.browsers.retrieve(session.session_id)).rejects.toThrow(Kernel.NotFoundError);
  });

  test('is flushed of its idle browsers, and fills again; leased ones are not affected', () =>
    withPool({ size: 2, headless: true, fill_rate_per_minute: 6000 }, async (pool) => {
      const held = await sdk.browserPools.acquire(pool.id, {});
      const others = async () => {
        const rows = await service.app.store.db.rows<{ id: string; ended_reason: string | null }>(
          sql`select id, ended_reason from sessions where pool_id = ${pool.id} and id <> ${held.session_id} order by created_at`,
        );
        return rows.map((row) => [row.id, row.ended_reason]);
      };
      const [[idle]] = (await others()) as [[string, null]];
      await sdk.browserPools.flush(pool.id);
      await filled(pool.id, 1);
      await expect.poll(others).toEqual([
        [idle, 'retired'],
        [expect.not.stringMatching(idle), null],
      ]);
      const lent = await chromium.connectOverCDP(held.cdp_ws_url);
      expect(await lent.contexts()[0]!.pages()[0]!.evaluate('1 + 1')).toBe(2);
      await lent.close();
    }));

  test('opens the start_url of a lease, else its own, and says which', () =>
    withPool(
      { size: 1, headless: true, start_url: `${pages.url}of-the-pool`, reset_on_release: false } as never,
      async ({ id }) => {
        for (const [asked, expected] of [
          [{ start_url: `${pages.url}of-the-lease` }, `${pages.url}of-the-lease`],
          [{}, `${pages.url}of-the-pool`],
        ] as const) {
          const session = await sdk.browserPools.acquire(id, asked);
          expect(session.start_url).toBe(expected);
          expect(await sdk.browsers.retrieve(session.session_id)).toMatchObject({ start_url: expected });
          const browser = await chromium.connectOverCDP(session.cdp_ws_url);
          await expect.poll(() => browser.contexts()[0]!.pages()[0]!.url(), { timeout: 60_000 }).toBe(expected);
          await browser.close();
          await sdk.browserPools.release(id, { session_id: session.session_id });
        }
      },
    ));

  test('a deleted lease is replaced', () =>
    withPool({ size: 1, headless: true, fill_rate_per_minute: 6000 }, async (pool) => {
      const held = await sdk.browserPools.acquire(pool.id, {});
      await sdk.browsers.deleteByID(held.session_id);
      await filled(pool.id, 1);
      expect(await sdk.browserPools.retrieve(pool.id)).toMatchObject({ available_count: 1, acquired_count: 0 });
    }));
});

test('a service that is killed with leases held comes back with whole pools, and without leases', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'corral-killed-'));
  const settings = { CORRAL_DATA_DIR: dataDir, CORRAL_API_KEY: 'sk_operators_own_key', CORRAL_WARM_SPARES: 'off' };
  let killed = await spawnService(settings);
  const client = () => new Kernel({ apiKey: settings.CORRAL_API_KEY, baseURL: killed.url });
  try {
    const { id } = await client().browserPools.create({ size: 3, headless: true });
    const whole = { available_count: 3, acquired_count: 0, warming_count: 0, waiting_count: 0 };
    const state = () => client().browserPools.retrieve(id);
    await expect.poll(state, { timeout: 50_000 }).toMatchObject(whole);
    const held = await client().browserPools.acquire(id, { name: 'mine' });
    await client().browserPools.acquire(id, {});
    await killed.kill('SIGKILL');

    killed = await spawnService(settings);
    await expect.poll(state, { timeout: 50_000 }).toMatchObject(whole);
    await expect(client().browsers.retrieve(held.session_id)).rejects.toThrow(Kernel.NotFoundError);
    await expect(client().browserPools.release(id, { session_id: held.session_id })).rejects.toThrow(/not leased/);
    const again = await client().browserPools.acquire(id, { name: 'mine' });
    expect(again.session_id).not.toBe(held.session_id);
  } finally {
    await killed.kill();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
});
