import { readdirSync } from 'node:fs';
import Kernel from '@onkernel/sdk';
import { chromium, type Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startService, type Service } from '../support/service.ts';
import { leftFile, startStickySite, type StickySite } from '../support/sticky-site.ts';

let site: StickySite;
let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  site = await startStickySite();
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: site.host });
  sdk = service.sdk();
});
afterAll(async () => {
  await service?.close();
  await site?.close();
});

const downloads = () =>
  readdirSync(service.dataDir, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith(leftFile));

async function holding<T>(poolId: string, use: (browser: Browser) => Promise<T>): Promise<T> {
  const session = await sdk.browserPools.acquire(poolId, { acquire_timeout_seconds: 50 });
  const browser = await chromium.connectOverCDP(session.cdp_ws_url);
  try {
    return await use(browser);
  } finally {
    await browser.close();
    await sdk.browserPools.release(poolId, { session_id: session.session_id });
  }
}

test.each([
  ['headless', true],
  ['headful', false],
])('the next holder finds nothing of the last one, %s', async (_, headless) => {
  const pool = await sdk.browserPools.create({ size: 1, headless });
  const fresh = await holding(pool.id, (browser) => site.look(browser));
  const used = await holding(pool.id, async (browser) => {
    await site.leave(browser);
    await expect.poll(downloads).not.toEqual([]);
    return site.look(browser);
  });
  for (const [what, found] of Object.entries(used))
    expect(found, `${what} was left, or this test shows nothing`).not.toEqual(fresh[what as keyof typeof fresh]);
  expect(await holding(pool.id, (browser) => site.look(browser))).toEqual(fresh);
  expect(downloads()).toEqual([]);
  await sdk.browserPools.delete(pool.id, { force: true });
});

test('a pool that wants it so keeps what was left, and nothing of the lease', async () => {
  const kept = { size: 1, headless: true, reset_on_release: false };
  const pool = await sdk.browserPools.create(kept);
  const first = await sdk.browserPools.acquire(pool.id, {
    acquire_timeout_seconds: 50,
    name: 'mine',
    tags: { a: 'b' },
  });
  const browser = await chromium.connectOverCDP(first.cdp_ws_url);
  await browser.contexts()[0]!.addCookies([{ name: 'left', value: 'behind', url: `http://${site.host}/` }]);
  const gone = new Promise((resolve) => browser.once('disconnected', resolve));
  await sdk.browserPools.release(pool.id, { session_id: first.session_id });
  await gone;
  await expect(chromium.connectOverCDP(first.cdp_ws_url), 'nobody holds it').rejects.toThrow(/404/);
  const second = await sdk.browserPools.acquire(pool.id, {});
  expect(second).toMatchObject({ session_id: first.session_id, tags: {} });
  expect(second.name).toBeUndefined();
  const again = await chromium.connectOverCDP(second.cdp_ws_url);
  expect(await again.contexts()[0]!.cookies()).toHaveLength(1);
  await again.close();
  await sdk.browserPools.delete(pool.id, { force: true });
});
