import { Configuration, PlaywrightCrawler, ProxyConfiguration } from '@crawlee/playwright';
import { PuppeteerCrawler } from '@crawlee/puppeteer';
import { chromium } from 'playwright';
import puppeteer from 'puppeteer-core';
import { pageSteps } from './puppeteer.mjs';
import { pageSteps as playwrightSteps } from './playwright.mjs';

/** Chromium sends what is on loopback, as the site of the tour is, past a proxy. Playwright asks it not to. */
const loopbackToo = (_pageId, controller, options) => {
  if (controller.browser.createBrowserContext) options.proxyBypassList = ['<-loopback>'];
};

/** A crawler with one page, which stays in its handler until the tour is over. */
const driver = (name, Crawler, launcher, steps, { byProxy = false } = {}) => ({
  name,
  steps: {
    async open(c) {
      const passedBefore = c.proxy.passed();
      const leaving = new Promise((resolve) => (c.leave = resolve));
      await new Promise((resolve, reject) => {
        const crawler = new Crawler(
          {
            launchContext: { launcher: launcher(c), useIncognitoPages: byProxy },
            ...(byProxy && { proxyConfiguration: new ProxyConfiguration({ proxyUrls: [c.proxy.url] }) }),
            browserPoolOptions: { useFingerprints: false, prePageCreateHooks: byProxy ? [loopbackToo] : [] },
            maxRequestRetries: 0,
            requestHandlerTimeoutSecs: 1800,
            async requestHandler({ page }) {
              Object.assign(c, { page, browser: page.browser?.() ?? page.context() });
              resolve();
              await leaving;
            },
            failedRequestHandler: (_context, error) => reject(error),
          },
          new Configuration({ persistStorage: false, logLevel: 'ERROR' }),
        );
        c.crawl = crawler.run([c.url]);
        c.crawl.catch(reject);
      });
      if (byProxy && c.proxy.passed() === passedBefore) throw new Error('The page did not come by the proxy.');
    },
    ...steps,
    async close(c) {
      await c.second.close();
      c.leave();
      await c.crawl;
      await c.connection?.close();
    },
  },
  end(c) {
    c.leave?.();
    return c.connection?.close();
  },
});

/** In the place of a launch: the session's browser, and the context that it has. */
async function connected(c) {
  c.connection = await chromium.connectOverCDP(c.session.cdp_ws_url);
  return c.connection.contexts()[0];
}

/** Playwright takes no second page in the context that it made for one. */
async function byPopup(c) {
  const opened = c.page.waitForEvent('popup');
  await c.page.evaluate((url) => void window.open(url), c.secondUrl);
  c.second = await opened;
}

export default [
  driver(
    'crawlee, Playwright',
    PlaywrightCrawler,
    (c) => ({
      name: () => 'chromium',
      launchPersistentContext: () => connected(c),
      launch: () => chromium.connectOverCDP(c.session.cdp_ws_url), // for the version only
    }),
    playwrightSteps,
  ),
  driver(
    'crawlee, Puppeteer',
    PuppeteerCrawler,
    (c) => ({
      product: 'chrome',
      launch: () => puppeteer.connect({ browserWSEndpoint: c.session.cdp_ws_url }),
    }),
    pageSteps,
  ),
  // With a proxy each page has a context of its own, whose proxy crawlee names.
  driver(
    'crawlee, Playwright, ProxyConfiguration',
    PlaywrightCrawler,
    (c) => ({
      name: () => 'chromium',
      launch: async () => (c.connection = await chromium.connectOverCDP(c.session.cdp_ws_url)),
    }),
    { ...playwrightSteps, tab: byPopup },
    { byProxy: true },
  ),
  driver(
    'crawlee, Puppeteer, ProxyConfiguration',
    PuppeteerCrawler,
    (c) => ({
      product: 'chrome',
      launch: () => puppeteer.connect({ browserWSEndpoint: c.session.cdp_ws_url }),
    }),
    pageSteps,
    { byProxy: true },
  ),
];
