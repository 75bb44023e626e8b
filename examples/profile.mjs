// What one session leaves in a profile, the next one finds: log in once, stay logged in.
import { chromium } from 'playwright-core';
import { corral, url } from './client.mjs';

const profile = await corral.profiles.create({ name: `example-${Date.now()}` });
try {
  await visit({ save_changes: true }, (page) => page.evaluate(() => (document.cookie = 'seen=yes; max-age=3600')));
  await visit({}, async (page) => console.log(`The next session has: ${await page.evaluate(() => document.cookie)}`));
} finally {
  await corral.profiles.delete(profile.id);
}

async function visit(more, use) {
  const session = await corral.browsers.create({ headless: true, profile: { id: profile.id, ...more } });
  try {
    const browser = await chromium.connectOverCDP(session.cdp_ws_url);
    const page = browser.contexts()[0].pages()[0];
    await page.goto(url);
    await use(page);
    await browser.close();
  } finally {
    await corral.browsers.deleteByID(session.session_id); // answered when the profile is saved
  }
}
