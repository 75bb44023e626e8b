import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HOME } from '../../src/chromium/sandbox/mounts.ts';
import type { Browser } from 'playwright-core';

const worker = `self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  if (event.request.url.endsWith('/from-worker')) event.respondWith(new Response('the worker'));
});`;

const leaving = `(async () => {
  document.cookie = 'left=behind; max-age=3600';
  localStorage.setItem('left', 'behind');
  await new Promise((resolve, reject) => {
    const opening = indexedDB.open('left', 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore('behind');
    opening.onsuccess = resolve;
    opening.onerror = reject;
  });
  await (await caches.open('left')).put('/x', new Response('behind'));
  await navigator.serviceWorker.register('/worker.js');
  await navigator.serviceWorker.ready;
  await fetch('/cached');
})()`;

const finding = `(async () => {
  const from = async (path) => (await fetch(path)).text();
  await from('/cached');
  return {
    cookie: document.cookie,
    stored: localStorage.length,
    databases: (await indexedDB.databases()).length,
    caches: await caches.keys(),
    workers: (await navigator.serviceWorker.getRegistrations()).length,
    answeredBy: await from('/from-worker'),
    permission: (await navigator.permissions.query({ name: 'geolocation' })).state,
    size: [innerWidth, innerHeight, devicePixelRatio],
    agent: navigator.userAgent,
  };
})()`;

/** The file that a visit leaves in the browser's downloads. */
export const leftFile = 'left-behind.txt';

export type StickySite = Awaited<ReturnType<typeof startStickySite>>;

/** A web site that stores every kind of data in a browser, and can check whether the data is still there. */
export async function startStickySite() {
  let hits = 0;
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    if (path === '/worker.js') response.setHeader('content-type', 'text/javascript').end(worker);
    else if (path === '/cached') response.setHeader('cache-control', 'max-age=3600').end(String(++hits));
    else if (path === '/file')
      response.setHeader('content-disposition', `attachment; filename=${leftFile}`).end('left behind');
    else if (path === '/secret')
      if (request.headers.authorization) response.end('let in');
      else response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end('kept out');
    else if (path === '/from-worker') response.end('the server');
    else response.setHeader('content-type', 'text/html').end('<!doctype html><title>Sticky</title>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = `http://${host}/`;

  /** Leaves everything there is. */
  async function leave(browser: Browser): Promise<void> {
    const context = browser.contexts()[0]!;
    const page = context.pages()[0]!;
    await page.goto(`http://user:word@${host}/secret`);
    await page.goto(url);
    await page.evaluate(leaving);
    const cdp = await browser.newBrowserCDPSession();
    await cdp.send('Browser.grantPermissions', {
      permissions: ['geolocation', 'clipboardReadWrite', 'clipboardSanitizedWrite'],
    });
    await page.bringToFront();
    await page.evaluate(`navigator.clipboard.writeText('left behind')`);
    await cdp.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: `${HOME}/Downloads` });
    await page.evaluate(`void (location.href = '/file')`);

    const other = await browser.newContext();
    await (await other.newPage()).goto(url);
    for (let tab = 0; tab < 2; tab++) await (await context.newPage()).goto(url);
    const emulated = await context.newCDPSession(page);
    await emulated.send('Emulation.setDeviceMetricsOverride', {
      width: 320,
      height: 480,
      deviceScaleFactor: 2,
      mobile: true,
    });
    await emulated.send('Emulation.setUserAgentOverride', { userAgent: 'a phone' });
  }

  /** The data found in a browser. A fresh browser gives the expected value. */
  async function look(browser: Browser) {
    const context = browser.contexts()[0]!;
    const tabs = context.pages().map((page) => page.url());
    const page = context.pages()[0]!;
    const contexts = browser.contexts().length;
    const cookies = (await context.cookies()).length;
    await page.goto(url);
    const before = hits;
    const inPage = await page.evaluate<Record<string, unknown>>(finding);
    const cdp = await browser.newBrowserCDPSession();
    await cdp.send('Browser.grantPermissions', { permissions: ['clipboardReadWrite'] });
    await page.bringToFront();
    const clipboard = await page.evaluate<string>(`navigator.clipboard.readText()`);
    const secret = await page.goto(`${url}secret`).then(
      (answer) => answer?.text(),
      () => 'kept out', // a browser with a display would have asked for the password; last, since it leaves an error page
    );
    return { tabs, contexts, cookies, secret, ...inPage, cached: hits === before, clipboard };
  }

  return {
    host,
    leave,
    look,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
