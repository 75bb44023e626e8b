// One session, driven by Playwright over CDP.
import { chromium } from 'playwright-core';
import { corral, url } from './client.mjs';

const session = await corral.browsers.create({ headless: true });
try {
  console.log(`Watch it: ${session.browser_live_view_url}`);
  const browser = await chromium.connectOverCDP(session.cdp_ws_url);
  const page = browser.contexts()[0].pages()[0];
  await page.goto(url);
  console.log(await page.title());
  await browser.close(); // ends the connection, not the session
} finally {
  await corral.browsers.deleteByID(session.session_id);
}
