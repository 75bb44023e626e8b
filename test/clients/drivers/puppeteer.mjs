import puppeteer from 'puppeteer-core';

/** The tour with a page of Puppeteer, which other clients hand out too. */
export const pageSteps = {
  click: ({ page }) => page.click('#count'),
  type: ({ page, words }) => page.type('#name', words.name),
  select: ({ page, words }) => page.select('#colour', words.colour),
  upload: async ({ page, note }) => (await page.$('#file')).uploadFile(note.inSession),
  download: ({ page }) => page.click('#report'),
  screenshot: async ({ page }) => Buffer.from(await page.screenshot()),
  pdf: async ({ page }) => Buffer.from(await page.pdf()),
  async tab(c) {
    c.second = await c.browser.newPage();
    await c.second.goto(c.secondUrl);
  },
  async dialog({ page }) {
    await page.bringToFront();
    page.once('dialog', (dialog) => dialog.accept());
    await page.click('#ask');
  },
};

const driver = (name, connect) => ({
  name,
  steps: {
    async open(c) {
      c.browser = await puppeteer.connect(connect(c.session));
      c.page = await c.browser.newPage();
      await c.page.goto(c.url);
    },
    ...pageSteps,
    async close(c) {
      await c.second.close();
      await c.page.close();
      await c.browser.disconnect();
    },
  },
});

export default [
  driver('Puppeteer, CDP', ({ cdp_ws_url }) => ({ browserWSEndpoint: cdp_ws_url })),
  driver('Puppeteer, BiDi', ({ webdriver_ws_url }) => ({
    browserWSEndpoint: webdriver_ws_url,
    protocol: 'webDriverBiDi',
  })),
];
