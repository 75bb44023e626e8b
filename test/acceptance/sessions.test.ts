import Kernel from '@onkernel/sdk';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { freePort } from '../support/listen.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { viewers } from '../support/live-view.ts';
import { startService, type Service } from '../support/service.ts';

let pages: Pages;
let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  pages = await startPages();
  // One session is to look at another through its live view, which is the service itself: that has to be allowed by name.
  const port = await freePort();
  service = await startService({
    CORRAL_PORT: String(port),
    CORRAL_ALLOW_PRIVATE_HOSTS: `${pages.host},127.0.0.1:${port}`,
    CORRAL_WARM_SPARES: 'headless:1,headful:1', // as in production, where most sessions take one
  });
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
    if (headless) {
      // Reading needs a page with the focus, which headless Chromium gives to each.
      const read = 'navigator.clipboard.readText().then((text) => typeof text, (error) => error.name)';
      const mine = other.defaultBrowserContext();
      expect(await same!.evaluate(read)).toBe('NotAllowedError');
      await mine.overridePermissions(new URL(pages.url).origin, ['clipboard-read']);
      expect(await same!.evaluate(read)).toBe('string');
      await mine.clearPermissionOverrides();
      expect(await same!.evaluate(read)).toBe('NotAllowedError');
      await contexts[0]!.grantPermissions(['clipboard-read', 'clipboard-write']);
      const copied = `navigator.clipboard.writeText('copied').then(() => navigator.clipboard.readText())`;
      expect(await page.evaluate(copied)).toBe('copied');
      expect(await same!.evaluate(copied)).toBe('copied');
    }
    await other.disconnect();
    expect(await page.evaluate(() => 1 + 1)).toBe(2);

    await playwright.close(); // ends the connection, not the session
    const again = await chromium.connectOverCDP(session.cdp_ws_url);
    expect(again.contexts()[0]!.pages()[0]!.url()).toBe(pages.url);
    await again.close();
    await sdk.browsers.deleteByID(session.session_id);
    await expect(sdk.browsers.retrieve(session.session_id)).rejects.toThrow(Kernel.NotFoundError);
  });

  test('takes a browser that was started for it before, and another one takes its place', async () => {
    const spares = () => service.app.sessions.counts().spares[headless ? 'headless' : 'headful'];
    await expect.poll(spares).toBe(1);
    const started = readdirSync(join(service.dataDir, 'sessions'));
    const session = await sdk.browsers.create({ headless });
    expect(started).toContain(session.session_id);
    await expect.poll(spares).toBe(1);
    await sdk.browsers.deleteByID(session.session_id);
  });

  test('speaks WebDriver BiDi, beside a CDP client on the same page', async () => {
    const session = await sdk.browsers.create({ headless });
    const cdp = await chromium.connectOverCDP(session.cdp_ws_url);
    const page = cdp.contexts()[0]!.pages()[0]!;
    await page.goto(pages.url);
    const bidi = await puppeteer.connect({
      browserWSEndpoint: session.webdriver_ws_url,
      protocol: 'webDriverBiDi',
      defaultViewport: null,
    });
    const [same] = await bidi.pages();
    await same!.click('button');
    expect(await page.textContent('output')).toBe('1');
    const own = await bidi.newPage();
    await own.goto(pages.url);
    expect(await own.title()).toBe('A page');
    await bidi.disconnect();
    expect(await page.title()).toBe('A page');
    await cdp.close();
    await sdk.browsers.deleteByID(session.session_id);
  });

  test('is used by a person through its live view, and only watched with readOnly', async () => {
    const session = await sdk.browsers.create({ headless, name: `watched-${headless}` });
    const short = await service.call('POST', `/browsers/${session.session_id}/live_view_links`, {
      expires_in_seconds: 1,
    });
    const under = (await chromium.connectOverCDP(session.cdp_ws_url)).contexts()[0]!.pages()[0]!;
    await under.goto(pages.url);
    const onScreen = async (selector: string) => {
      const { x, y, width, height } = (await under.locator(selector).boundingBox())!;
      const [left, top] = headless
        ? [0, 0]
        : await under.evaluate<[number, number]>('[outerWidth - innerWidth, outerHeight - innerHeight]');
      return { x: x + width / 2 + left, y: y + height / 2 + top };
    };

    const looking = await sdk.browsers.create({ headless: true });
    const viewer = (await chromium.connectOverCDP(looking.cdp_ws_url)).contexts()[0]!.pages()[0]!;
    const look = async (address: string) => {
      await viewer.goto(address);
      await viewer.waitForSelector('html[data-state="connected"]');
      const canvas = viewer.locator('canvas:visible');
      await expect.poll(async () => Number(await canvas.getAttribute('width'))).toBeGreaterThan(100);
      return canvas;
    };
    const click = async (canvas: ReturnType<typeof viewer.locator>, selector: string) => {
      const box = (await canvas.boundingBox())!;
      const scale = box.width / Number(await canvas.getAttribute('width'));
      const { x, y } = await onScreen(selector);
      await viewer.mouse.click(box.x + x * scale, box.y + y * scale);
    };
    const view = await look(session.browser_live_view_url!);
    expect(await viewer.textContent('#title')).toBe(session.name);
    await expect.poll(() => viewer.title()).toContain(` – ${session.name}`);
    const before = await view.screenshot();
    await click(view, 'button');
    await expect.poll(() => under.textContent('output')).toBe('1');
    await click(view, 'input');
    await viewer.keyboard.type('typed by hand');
    await expect.poll(() => under.inputValue('input')).toBe('typed by hand');
    await expect.poll(async () => before.equals(await view.screenshot())).toBe(false);

    const watching = await look(`${session.browser_live_view_url!}&readOnly=true`);
    await click(watching, 'button');
    await viewer.keyboard.type('nothing');
    // A later action of another view has arrived, so an earlier one would have arrived too.
    const later = await look(session.browser_live_view_url!);
    await click(later, 'input');
    await viewer.keyboard.press('End');
    await viewer.keyboard.type('!');
    await expect.poll(() => under.inputValue('input')).toBe('typed by hand!');
    expect(await under.textContent('output')).toBe('1');

    const afresh = await viewer.context().newPage();
    const { url: expired } = short.body as { url: string };
    await expect.poll(async () => (await afresh.goto(expired))?.status()).toBe(401);
    expect(await afresh.textContent('#state')).toMatch(/This link does not work\..*ask for a new one.*has expired\./s);
    await afresh.close();
    await sdk.browsers.deleteByID(session.session_id);
    await viewer.waitForSelector('html[data-state="ended"]');
    await viewer.goto(session.browser_live_view_url!);
    expect(await viewer.textContent('h2')).toBe('The session has ended.');
    await viewer.goto(session.browser_live_view_url!.slice(0, -5));
    expect(await viewer.textContent('h2')).toBe('This link does not work.');
    await sdk.browsers.deleteByID(looking.session_id);
  });
});

test('a token for watching cannot drive, and one for driving cannot watch', async () => {
  const session = await sdk.browsers.create({ headless: true });
  const jwt = (address: string) => new URL(address).searchParams.get('jwt')!;
  const ask = async (path: string, token: string) => (await fetch(`${service.url}${path}?jwt=${token}`)).status;
  expect(await ask('/browser/live', jwt(session.browser_live_view_url!))).toBe(200);
  expect(await ask('/browser/live', jwt(session.cdp_ws_url))).toBe(403);
  expect(await ask('/browser/live', 'forged')).toBe(401);
  const page = async (address: string) => {
    const answer = await fetch(address, { headers: { accept: 'text/html' } });
    return [answer.status, /<h2>(.*)<\/h2>/.exec(await answer.text())?.[1]];
  };
  const link = session.browser_live_view_url!;
  expect(await page(`${link}&readOnly=banana`)).toEqual([400, 'This link does not work.']);
  expect(await page(link.replace('/live', '/liv'))).toEqual([404, 'This link does not work.']);
  const refused = async (path: string, token: string) => {
    const socket = new WebSocket(`${service.url.replace('http', 'ws')}${path}?jwt=${token}`);
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }];
    return response.statusCode;
  };
  expect(await refused('/browser/cdp', jwt(session.browser_live_view_url!))).toBe(403);
  expect(await refused('/browser/webdriver/session', jwt(session.cdp_ws_url))).toBe(403);
  expect(await refused('/browser/live/socket', jwt(session.webdriver_ws_url))).toBe(403);
  await sdk.browsers.deleteByID(session.session_id);
});

test('a viewport does not change while a viewer is connected, unless the change is forced', async () => {
  const { session_id: id, browser_live_view_url: view } = await sdk.browsers.create({ headless: true });
  const change = (viewport: object) => service.call('PATCH', `/browsers/${id}`, { viewport });
  const { search } = new URL(view!);
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}/browser/live/socket${search}`);
  await once(socket, 'open');
  await expect.poll(() => service.app.sessions.running(id)?.viewerCount).toBe(1);
  const before = (await sdk.browsers.retrieve(id)).viewport;
  expect(await change({ width: 1280, height: 720 })).toMatchObject({
    status: 409,
    body: { code: 'viewport_in_use', message: expect.stringContaining('viewport.force') },
  });
  expect((await sdk.browsers.retrieve(id)).viewport).toEqual(before);
  expect(await change({ width: 1280, height: 720, force: true })).toMatchObject({ status: 200 });
  expect((await sdk.browsers.retrieve(id)).viewport).toMatchObject({ width: 1280, height: 720 });

  socket.close();
  await expect.poll(() => service.app.sessions.running(id)?.viewerCount).toBe(0);
  expect(await change({ width: 1024, height: 768 })).toMatchObject({ status: 200 });
  await sdk.browsers.deleteByID(id);
});

test('a viewport follows the frame of a viewer that requests it and is not read-only', async () => {
  const looking = await viewers();
  try {
    for (const headless of [true, false]) {
      const viewport = { width: 1024, height: 768 };
      const { session_id: id, browser_live_view_url: url } = await sdk.browsers.create({ headless, viewport });
      const look = async (query: string, size: { width: number; height: number }) => {
        const page = await looking.browser.newPage({ viewport: size });
        await page.goto(`${url}&header=false&resize=true${query}`);
        await page.waitForSelector('html[data-state="connected"]', { timeout: 60_000 });
        return page;
      };
      const watching = await look('&readOnly=true', { width: 600, height: 500 });
      const view = await look('', { width: 800, height: 640 });
      const sizes = async (by = view) => {
        const { viewport: row } = await sdk.browsers.retrieve(id);
        const canvas = by.locator('#stage canvas:visible');
        const shown = ['width', 'height'].map(async (name) => Number(await canvas.getAttribute(name)));
        return [row?.width, row?.height, ...(await Promise.all(shown))];
      };
      const become = async (width: number, height: number, by = view) => {
        await expect.poll(() => sizes(by), { timeout: 60_000 }).toEqual([width, height, width, height]);
      };
      await become(800, 640);
      await view.setViewportSize({ width: 900, height: 700 });
      await become(900, 700);
      // Of two views, the last that changed is followed. The other still shows the whole page.
      const other = await look('', { width: 700, height: 800 });
      await become(700, 800, other);
      const shown = () => view.locator('#stage canvas:visible').boundingBox();
      await expect.poll(async () => Math.round((await shown())!.height), { timeout: 60_000 }).toBe(700);
      await other.close();
      await become(900, 700);
      await watching.close();
      await view.close();
      await sdk.browsers.deleteByID(id);
    }
  } finally {
    await looking.stop();
  }
});
