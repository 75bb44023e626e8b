import { chromium } from 'playwright';

/** The tour with a page of Playwright. */
export const pageSteps = {
  click: ({ page }) => page.click('#count'),
  type: ({ page, words }) => page.fill('#name', words.name),
  select: ({ page, words }) => page.selectOption('#colour', words.colour),
  upload: ({ page, words }) =>
    page.setInputFiles('#file', { name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from(words.note) }),
  async download({ page }) {
    const downloading = page.waitForEvent('download');
    await page.click('#report');
    const failure = await (await downloading).failure();
    if (failure !== null) throw new Error(failure);
  },
  screenshot: ({ page }) => page.screenshot(),
  pdf: ({ page }) => page.pdf(),
  async tab(c) {
    c.second = await c.page.context().newPage();
    await c.second.goto(c.secondUrl);
  },
  async dialog({ page }) {
    page.once('dialog', (dialog) => dialog.accept());
    await page.click('#ask');
  },
};

export default [
  {
    name: 'Playwright, base_url',
    steps: {
      async open(c) {
        c.browser = await chromium.connectOverCDP(c.session.base_url);
        c.page = await c.browser.contexts()[0].newPage();
        await c.page.goto(c.url);
      },
      ...pageSteps,
      async close(c) {
        await c.second.close();
        await c.page.close();
        await c.browser.close();
      },
    },
  },
];
