import { spawnSync } from 'node:child_process';
import type Kernel from '@onkernel/sdk';
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

/** By a program that takes it well when what it looks at goes away. */
const downloads = () =>
  spawnSync('find', [service.dataDir, '-name', leftFile], { encoding: 'utf8' }).stdout.split('\n').filter(Boolean);

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
  await expect.poll(downloads).toEqual([]); // its directory goes while the next browser is lent
  await sdk.browserPools.delete(pool.id, { force: true });
});

test('a pool without reset keeps the data of the browser, and nothing of the lease', async () => {
  const kept = { size: 1, headless: true, reset_on_release: false };
  const pool = await sdk.browserPools.create(kept);
  const first = await sdk.browserPools.acquire(pool.id, {
    acquire_timeout_seconds: 50,
    name: 'mine',
    tags: { a: 'b' },
  });
  const browser = await chromium.connectOverCDP(first.cdp_ws_url);
  await browser.contexts()[0]!.addCookies([{ name: 'left', value: 'behind', url: `http://${site.host}/` }]);
  const disconnected = new Promise((resolve) => browser.once('disconnected', resolve));
  const ofChromium = { source: 'supervisor', supervisor_process: 'chromium' } as const;
  const log = await sdk.browsers.logs.stream(first.session_id, ofChromium);
  await sdk.browserPools.release(pool.id, { session_id: first.session_id });
  await disconnected;
  for await (const _ of log); // and it ends: what comes now is the next holder's
  await expect(chromium.connectOverCDP(first.cdp_ws_url), 'no client holds it').rejects.toThrow(/404/);
  const second = await sdk.browserPools.acquire(pool.id, {});
  expect(second).toMatchObject({ session_id: first.session_id, tags: {} });
  expect(second.name).toBeUndefined();
  const again = await chromium.connectOverCDP(second.cdp_ws_url);
  expect(await again.contexts()[0]!.cookies()).toHaveLength(1);
  await again.close();
  await sdk.browserPools.delete(pool.id, { force: true });
});

test('a browser that no client used goes back as it is, and the addresses of the lease end with it', async () => {
  const pool = await sdk.browserPools.create({ size: 1, headless: true });
  const acquire = () => sdk.browserPools.acquire(pool.id, { acquire_timeout_seconds: 50 });
  const release = ({ session_id }: { session_id: string }) => sdk.browserPools.release(pool.id, { session_id });
  const first = await acquire();
  await release(first);
  const second = await acquire();
  expect(second.session_id).toBe(first.session_id);
  await expect(chromium.connectOverCDP(first.cdp_ws_url), 'another client holds it').rejects.toThrow(/404/);
  expect((await fetch(`${first.base_url}/json/version`)).status).toBe(404);
  expect((await fetch(first.browser_live_view_url!)).status).toBe(404);

  const version = (await (await fetch(`${second.base_url}/json/version`)).json()) as Record<string, string>;
  const browser = await chromium.connectOverCDP(version['webSocketDebuggerUrl']!);
  expect(browser.contexts()).toHaveLength(1);
  const listed = (await sdk.browsers.list()).getPaginatedItems();
  await (await chromium.connectOverCDP(listed[0]!.cdp_ws_url)).close();
  await browser.close();
  await release(second);
  const third = await acquire();
  expect(third.session_id, 'it was used').not.toBe(second.session_id);
  await sdk.browserPools.delete(pool.id, { force: true });
});

test.each([
  ['a start_url', { start_url: 'about:blank#' }, async () => {}],
  [
    'a request that touches the page',
    {},
    (id: string) => sdk.browsers.update(id, { viewport: { width: 800, height: 600 } }),
  ],
])('a lease with %s has used its browser', async (_, request, use) => {
  const pool = await sdk.browserPools.create({ size: 1, headless: true });
  const first = await sdk.browserPools.acquire(pool.id, { acquire_timeout_seconds: 50, ...request });
  await use(first.session_id);
  await sdk.browserPools.release(pool.id, { session_id: first.session_id });
  const second = await sdk.browserPools.acquire(pool.id, { acquire_timeout_seconds: 50 });
  expect(second.session_id).not.toBe(first.session_id);
  await sdk.browserPools.delete(pool.id, { force: true });
});
