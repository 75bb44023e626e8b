import { startFlow } from 'lighthouse';
import puppeteer from 'puppeteer-core';
import { pageSteps } from './puppeteer.mjs';

export default [
  {
    name: 'Lighthouse',
    steps: {
      async open(c) {
        c.browser = await puppeteer.connect({ browserWSEndpoint: c.session.cdp_ws_url, defaultViewport: null });
        c.page = await c.browser.newPage();
        c.flow = await startFlow(c.page, { flags: { logLevel: 'error' } });
        await c.flow.navigate(c.url);
        const { lhr } = (await c.flow.createFlowResult()).steps[0];
        if (lhr.runtimeError) throw new Error(lhr.runtimeError.message);
        if (lhr.categories.accessibility.score === null) throw new Error('The report has no scores.');
        c.picture = lhr.fullPageScreenshot.screenshot.data;
      },
      ...pageSteps, // the steps of a user flow are Puppeteer's
      screenshot: ({ picture }) => Buffer.from(picture.split(',')[1], 'base64'),
      async close(c) {
        await c.second.close();
        await c.page.close();
        await c.browser.disconnect();
      },
    },
  },
];
