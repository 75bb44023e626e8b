/** Commands and code to copy. They never contain the key. */
const service = location.origin;

export const create = (body = '{"headless": true}') =>
  `curl -X POST ${service}/browsers \\
  -H "Authorization: Bearer $CORRAL_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '${body}'`;

export const snippets = (session: { session_id: string; cdp_ws_url: string }) => ({
  Playwright: `import { chromium } from 'playwright';

const browser = await chromium.connectOverCDP('${session.cdp_ws_url}');
const page = browser.contexts()[0].pages()[0] ?? (await browser.contexts()[0].newPage());
await page.goto('https://example.com');`,
  Puppeteer: `import puppeteer from 'puppeteer-core';

const browser = await puppeteer.connect({ browserWSEndpoint: '${session.cdp_ws_url}', defaultViewport: null });
const [page] = await browser.pages();
await page.goto('https://example.com');`,
  curl: `curl -X POST ${service}/browsers/${session.session_id}/playwright/execute \\
  -H "Authorization: Bearer $CORRAL_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"code": "await page.goto(\\"https://example.com\\"); return await page.title()"}'`,
});
