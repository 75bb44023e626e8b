// One session, driven by Puppeteer over WebDriver BiDi. With `browserWSEndpoint: session.cdp_ws_url` alone it speaks CDP.
import puppeteer from 'puppeteer-core';
import { corral, url } from './client.mjs';

const session = await corral.browsers.create({ headless: true });
try {
  const browser = await puppeteer.connect({ browserWSEndpoint: session.webdriver_ws_url, protocol: 'webDriverBiDi' });
  const page = await browser.newPage();
  await page.goto(url);
  console.log(await page.title());
  await browser.disconnect();
} finally {
  await corral.browsers.deleteByID(session.session_id);
}
