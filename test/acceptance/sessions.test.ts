import Kernel from '@onkernel/sdk';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Service } from '../support/service.ts';

let pages: Pages;
let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  pages = await startPages();
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: pages.host });
  sdk = service.sdk();
});
afterAll(async () => {
  await service?.close();
  await pages?.close();
});

describe.each([true, false])('a session (headless: %s)', (headless) => {
  test('is there at once for Playwright, Puppeteer and raw CDP, each as if alone', async () => {
    const session = await sdk.browsers.create({ headless });
    const playwright = await chromium.connectOverCDP(session.cdp_ws_url);
    const contexts = playwright.contexts();
    expect(contexts).toHaveLength(1);
    expect(contexts[0]!.pages()).toHaveLength(1);
    const page = contexts[0]!.pages()[0]!;
    await page.goto(pages.url);
    expect(await page.title()).toBe('A page');

    const other = await puppeteer.connect({ browserWSEndpoint: session.cdp_ws_url, defaultViewport: null });
    const [same] = await other.pages();
    expect(await same!.title()).toBe('A page');
    await same!.click('button');
    expect(await page.textContent('output')).toBe('1');
    await other.disconnect();
    expect(await page.evaluate(() => 1 + 1)).toBe(2);

    await playwright.close(); // ends the connection, not the session
    const again = await chromium.connectOverCDP(session.cdp_ws_url);
    expect(again.contexts()[0]!.pages()[0]!.url()).toBe(pages.url);
    await again.close();
    await sdk.browsers.deleteByID(session.session_id);
    await expect(sdk.browsers.retrieve(session.session_id)).rejects.toThrow(Kernel.NotFoundError);
  });
});
