import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium, type Page } from 'playwright-core';

/** What a browser that is logged in has of this site. */
export const loggedIn = {
  dated: 'yes',
  undated: 'yes',
  localStorage: 'kept',
  indexedDb: 'a row',
  serviceWorker: 'answered by the worker',
};

const leaveEverything = `(async () => {
  localStorage.setItem('is', 'kept');
  await navigator.serviceWorker.register('/worker.js');
  await navigator.serviceWorker.ready;
  const db = await new Promise((resolve) => {
    const opening = indexedDB.open('site');
    opening.onupgradeneeded = () => opening.result.createObjectStore('rows');
    opening.onsuccess = () => resolve(opening.result);
  });
  await new Promise((resolve) => {
    const writing = db.transaction('rows', 'readwrite');
    writing.objectStore('rows').put('a row', 1);
    writing.oncomplete = resolve;
  });
})()`;

const findEverything = `(async () => {
  const cookies = Object.fromEntries(document.cookie.split('; ').map((cookie) => cookie.split('=')));
  const registered = (await navigator.serviceWorker.getRegistrations()).length > 0;
  if (registered) await navigator.serviceWorker.ready;
  const row = await new Promise((resolve) => {
    const opening = indexedDB.open('site');
    opening.onupgradeneeded = () => opening.transaction.abort();
    opening.onerror = () => resolve(undefined);
    opening.onsuccess = () => {
      const reading = opening.result.transaction('rows').objectStore('rows').get(1);
      reading.onsuccess = () => resolve(reading.result);
    };
  });
  return {
    dated: cookies.dated,
    undated: cookies.undated,
    localStorage: localStorage.getItem('is') ?? undefined,
    indexedDb: row,
    ...(registered ? { serviceWorker: await (await fetch('/worker-says')).text() } : {}),
  };
})()`;

/** A web site on loopback that leaves everything in a browser that sites leave there. */
export async function startLoginSite() {
  const server = createServer((request, response) => {
    const answer = (type: string, body: string) => response.setHeader('content-type', type).end(body);
    if (request.url === '/worker.js')
      return answer(
        'text/javascript',
        `self.addEventListener('install', () => self.skipWaiting());
         self.addEventListener('activate', (event) => event.waitUntil(clients.claim()));
         self.addEventListener('fetch', (event) => {
           if (event.request.url.endsWith('/worker-says')) event.respondWith(new Response('answered by the worker'));
         });`,
      );
    if (request.url === '/worker-says') return answer('text/plain', 'answered by the site');
    if (request.url === '/cookies') return answer('text/plain', request.headers.cookie ?? '');
    if (request.url === '/login') response.setHeader('set-cookie', ['dated=yes; Max-Age=86400', 'undated=yes']);
    return answer('text/html', `<!doctype html><title>${request.url}</title>`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;

  /** The first page of a session, for as long as `use` takes. */
  async function onPage<T>(session: { cdp_ws_url: string }, use: (page: Page) => Promise<T>): Promise<T> {
    const browser = await chromium.connectOverCDP(session.cdp_ws_url);
    try {
      return await use(browser.contexts()[0]!.pages()[0]!);
    } finally {
      await browser.close();
    }
  }

  return {
    host: `127.0.0.1:${port}`,
    url,
    onPage,

    logIn: (session: { cdp_ws_url: string }) =>
      onPage(session, async (page) => {
        await page.goto(`${url}/login`);
        await page.evaluate(leaveEverything);
        await page.goto(`${url}/`); // a tab that is restored must not log in again
      }),

    /** What the site finds in a session's browser. */
    look: (session: { cdp_ws_url: string }) =>
      onPage(session, async (page) => {
        await page.goto(`${url}/`);
        return page.evaluate<Record<string, unknown>>(findEverything);
      }),

    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

export type LoginSite = Awaited<ReturnType<typeof startLoginSite>>;
