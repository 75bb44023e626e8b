import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';

await requireSandbox();

let service: Service;
beforeAll(async () => {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  // A browser of the service is to look at the service itself: that has to be allowed by name.
  service = await startService({ CORRAL_PORT: String(port), CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${port}` });
});
afterAll(() => service?.close());

test('/docs keeps a key in nothing that outlives the page, and forgets what an earlier version kept', async () => {
  const { cdp_ws_url } = await service.sdk().browsers.create({ headless: true, timeout_seconds: 600 });
  const browser = await chromium.connectOverCDP(cdp_ws_url);
  const page = browser.contexts()[0]!.pages()[0]!;
  const kept = () =>
    page.evaluate<string>(`(async () => JSON.stringify([
      { ...localStorage }, { ...sessionStorage }, document.cookie, await indexedDB.databases(), await caches.keys(),
    ]))()`);

  await page.goto(`${service.url}/docs`);
  await page.click('button.authorize');
  await page.fill('.auth-container input', service.key);
  await page.click('.auth-btn-wrapper button.authorize');
  await page.waitForSelector('.auth-btn-wrapper button:has-text("Logout")');
  expect(await kept()).not.toContain(service.key);

  await page.evaluate(`localStorage.setItem('authorized', '{"bearerAuth":{"value":"an-old-key"}}')`);
  await page.goto(`${service.url}/docs`);
  await page.waitForSelector('button.authorize.unlocked');
  expect(await kept()).not.toMatch(/an-old-key|sk_/);
  await browser.close();
});
