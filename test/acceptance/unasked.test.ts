import { toFile, type Kernel } from '@onkernel/sdk';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { extensionFiles, zipOf } from '../support/extension-zip.ts';
import { startRecordingProxy } from '../support/recording-proxy.ts';
import { startService, type Service } from '../support/service.ts';

/** What Chromium asks for by itself comes within seconds of a start or of what a page does. `IDLE_SECONDS=600` also waits for what comes late. */
const idleSeconds = Number(process.env['IDLE_SECONDS'] ?? 8);

const pages: Record<string, string> = {
  '/login': `<form method=post action=/in><input name=user autocomplete=username>
    <input name=password type=password autocomplete=current-password><button>Sign in</button></form>`,
  '/address': `<form><input name=street autocomplete=street-address><input name=zip autocomplete=postal-code>
    <input name=email autocomplete=email><input name=card autocomplete=cc-number></form><textarea></textarea>`,
  '/fr': `<html lang=fr>${'Ceci est une page dans une autre langue que celle du navigateur. '.repeat(20)}`,
  '/home': '<a href=/setup.exe>Get it</a>',
};

function shop(request: IncomingMessage, response: ServerResponse) {
  const { pathname } = new URL(request.url ?? '/', 'http://shop.test');
  if (pathname === '/in') return void response.writeHead(303, { location: '/home' }).end();
  if (pathname === '/setup.exe')
    return void response.writeHead(200, { 'content-disposition': 'attachment' }).end('MZ'.repeat(2000));
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(pages[pathname] ?? '');
}

let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  service = await startService({ CORRAL_MAX_SESSIONS: '4', CORRAL_ALLOW_PRIVATE_HOSTS: '127.0.0.0/8' });
  sdk = service.sdk();
  await sdk.profiles.create({ name: 'kept' });
  await sdk.extensions.upload({ file: await toFile(await zipOf(extensionFiles('mark')), 'mark.zip'), name: 'mark' });
});
afterAll(() => service?.close());

/** Actions of a person or a script in a session. The last page cannot be loaded. */
async function visit(page: Page) {
  for (let time = 0; time < 2; time++) {
    await page.goto('http://shop.test/login');
    await page.click('[name=user]');
    await page.keyboard.type('ann@shop.test');
    await page.click('[name=password]');
    await page.keyboard.type('open-sesame-1');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/home');
  }
  const download = page.waitForEvent('download');
  await page.click('a');
  await (await download).path();
  await page.goto('http://shop.test/fr');
  await page.goto('http://shop.test/address');
  await page.click('[name=street]');
  await page.keyboard.type('1 Main Street');
  await page.click('textarea');
  await page.keyboard.type('teh quick brwon fox ');
  await page.goto('https://closed.test/').catch(() => {});
}

const extensions = [{ name: 'mark' }];
const kinds: [string, Kernel.BrowserCreateParams][] = [
  ['headless', { headless: true }],
  ['full headless', { headless: true, stealth: true, extensions, profile: { name: 'kept', save_changes: true } }],
  ['headful', { headless: false, extensions }],
];

// The proxy sees what the gateway lets through to it, which is everything.
test.concurrent.each(kinds)(
  'a %s session asks for nothing that no page and no client asked for',
  async (name, wishes) => {
    const proxy = await startRecordingProxy({ 'shop.test': shop });
    try {
      const config = { host: '127.0.0.1', port: proxy.port };
      const { id } = await sdk.proxies.create({ name, type: 'custom', protocol: 'http', config });
      const session = await sdk.browsers.create({ ...wishes, proxy_id: id!, timeout_seconds: 3600 });
      const browser = await chromium.connectOverCDP(session.cdp_ws_url);
      await visit(browser.contexts()[0]!.pages()[0]!);
      if (wishes.headless === false) {
        await sdk.browsers.computer.pressKey(session.session_id, { keys: ['Ctrl+l'] });
        await sdk.browsers.computer.typeText(session.session_id, { text: 'weather in par' });
      }
      const others = () => proxy.asked.filter((address) => !address.startsWith('http://shop.test/'));
      expect([...new Set(others())]).toEqual(['closed.test:443']);
      await sleep(idleSeconds * 1000);
      expect([...new Set(others())]).toEqual(['closed.test:443']); // a second try of it may come late
      await browser.close();
      await sdk.browsers.deleteByID(session.session_id);
    } finally {
      await proxy.close();
    }
  },
);
