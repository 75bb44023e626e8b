// Five workers share a pool of two warm browsers. Each waits for its turn, and gets a browser that no other has used.
import { chromium } from 'playwright-core';
import { corral, url } from './client.mjs';

const pool = await corral.browserPools.create({ size: 2, headless: true });
try {
  await Promise.all([1, 2, 3, 4, 5].map(work));
} finally {
  await corral.browserPools.delete(pool.id, { force: true });
}

async function work(worker) {
  let session;
  do session = await corral.browserPools.acquire(pool.id, { acquire_timeout_seconds: 50 });
  while (!session); // 204: none came free in this poll
  try {
    const browser = await chromium.connectOverCDP(session.cdp_ws_url);
    const page = browser.contexts()[0].pages()[0];
    await page.goto(url);
    console.log(`Worker ${worker}: ${await page.title()}`);
    await browser.close();
  } finally {
    await corral.browserPools.release(pool.id, { session_id: session.session_id });
  }
}
