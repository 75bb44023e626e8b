import { Stagehand } from '@browserbasehq/stagehand';

export default [
  {
    name: 'Stagehand',
    steps: {
      // Its pages and locators need no model; act, extract and observe use the same connection.
      async open(c) {
        c.stagehand = new Stagehand({
          env: 'LOCAL',
          localBrowserLaunchOptions: { cdpUrl: c.session.cdp_ws_url },
          verbose: 0,
          disablePino: true,
        });
        await c.stagehand.init();
        [c.page] = c.stagehand.context.pages();
        await c.page.goto(c.url);
      },
      click: ({ page }) => page.locator('#count').click(),
      type: ({ page, words }) => page.locator('#name').type(words.name),
      select: ({ page, words }) => page.locator('#colour').selectOption(words.colour),
      upload: {
        why: 'it looks for the file on its own disk, and writes buffers there: the session has the same file at the same path',
        way: ({ page, note }) => page.locator('#file').setInputFiles(note.local),
      },
      download: ({ page }) => page.locator('#report').click(),
      screenshot: ({ page }) => page.screenshot(),
      pdf: async ({ page }) => Buffer.from((await page.sendCDP('Page.printToPDF')).data, 'base64'),
      async tab(c) {
        c.second = await c.stagehand.context.newPage(c.secondUrl);
      },
      async dialog(c) {
        c.stagehand.context.setActivePage(c.page);
        const clicked = c.page.locator('#ask').click();
        await c.until(() =>
          c.page.sendCDP('Page.handleJavaScriptDialog', { accept: true }).then(
            () => true,
            () => undefined,
          ),
        );
        await clicked;
      },
      async close(c) {
        await c.second.close();
        await c.stagehand.close();
      },
    },
    end: ({ stagehand }) => stagehand?.close(),
  },
];
