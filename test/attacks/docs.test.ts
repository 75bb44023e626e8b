import { chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../support/listen.ts';
import { requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';

await requireSandbox();

let service: Service;
let page: Page;
const complaints: string[] = [];

beforeAll(async () => {
  const port = await freePort();
  // A browser of the service is to look at the service itself: that has to be allowed by name.
  service = await startService({ CORRAL_PORT: String(port), CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${port}` });
  const { cdp_ws_url } = await service.sdk().browsers.create({ headless: true, timeout_seconds: 600 });
  const browser = await chromium.connectOverCDP(cdp_ws_url);
  page = browser.contexts()[0]!.pages()[0]!;
  page.setDefaultTimeout(100_000); // the page draws every operation, which takes seconds on two free cores
  page.on('request', (request) => {
    if (!request.url().startsWith(service.url) && !request.url().startsWith('data:')) complaints.push(request.url());
  });
  page.on('console', (message) => {
    if (/Content Security Policy/i.test(message.text())) complaints.push(message.text());
  });
});
afterAll(() => service?.close());

const kept = () =>
  page.evaluate<string>(`(async () => JSON.stringify([
    { ...localStorage }, { ...sessionStorage }, document.cookie, await indexedDB.databases(), await caches.keys(),
  ]))()`);

test('/docs stores no key beyond the page, and removes a key that an earlier version stored', async () => {
  await page.goto(`${service.url}/docs`);
  const key = page.getByPlaceholder('Token').first();
  await key.fill(service.key);
  await key.blur();
  await expect.poll(() => key.inputValue()).toBe(service.key);
  expect(await kept()).not.toContain(service.key);

  await page.evaluate(`localStorage.setItem('authorized', '{"bearerAuth":{"value":"an-old-key"}}')`);
  await page.goto(`${service.url}/docs`);
  await page.getByPlaceholder('Token').first().waitFor();
  expect(await kept()).not.toMatch(/an-old-key|sk_/);
});

test('/docs begins with browsers, shows samples for this service, finds operations, and links to the guides', async () => {
  await page.goto(`${service.url}/docs`);
  await page.getByRole('heading', { name: 'Corral', exact: true }).waitFor();
  expect(await page.title()).toBe('Corral API');
  await page.getByText('List sessions').first().waitFor();
  await expect.poll(() => page.locator('body').innerText()).toMatch(/Introduction\s+Browsers\s/);
  await page.getByText('Start a browser', { exact: true }).first().click();
  const sample = page.getByText('const client = new Kernel({ baseURL:').first();
  await sample.waitFor();
  expect(await sample.innerText()).toContain(service.url);

  await page.locator('button[role=search]').first().click();
  await page.locator('input[role=combobox]').last().fill('flush');
  await page.locator('[id^=search-result]', { hasText: '/flush' }).first().waitFor();

  await page.goto(`${service.url}/docs/guides`);
  await page.getByRole('link', { name: 'pools.md' }).click();
  await page.waitForURL(`${service.url}/docs/guides/pools`);
  await page.getByRole('heading', { level: 1 }).waitFor();

  await page.goto(`${service.url}/docs/guides/using-a-session`);
  const sizes = () =>
    page.evaluate<number[]>(`[...document.querySelectorAll('img')].map((image) => image.naturalWidth)`);
  await expect.poll(async () => (await sizes()).every((width) => width > 100)).toBe(true);
});

test('/docs loads nothing from elsewhere, and its policy is broken by nothing', () => {
  expect(complaints).toEqual([]);
});
