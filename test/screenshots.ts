import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { chromium, devices, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { listenOnLoopback } from './support/listen.ts';
import { viewers } from './support/live-view.ts';
import { startService, type Service } from './support/service.ts';

/**
 * `npm run screenshots [-- NAME …]`: the pictures of the docs, taken of the real service with a second Chromium. Each has
 * a name, and what a person did before it was taken.
 */

const folder = join(import.meta.dirname, '../docs/pictures');
const window = { viewport: { width: 1200, height: 760 } } satisfies BrowserContextOptions;
const phone: BrowserContextOptions = { ...devices['iPhone 13'], deviceScaleFactor: 2 };

const shop = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Order · Field & Fence</title>
<style>
  body { margin: 0; font: 17px/1.5 system-ui, sans-serif; background: #f5f2ea; color: #26231d }
  header { background: #3c5a3a; color: #fff; padding: 18px 40px; font-size: 24px }
  main { display: grid; grid-template-columns: 1fr 1fr; gap: 12px 40px; max-width: 860px; padding: 28px 40px }
  label { display: block; font-weight: 600 } input, select, button { font: inherit; width: 100%; padding: 8px; box-sizing: border-box }
  button { background: #3c5a3a; color: #fff; border: 0; width: auto; padding: 10px 28px }
</style>
<header>Field &amp; Fence</header>
<main>
  <h2 style="grid-column: 1 / -1; margin: 0">Your order</h2>
  <label>Post and rail <select id="wood"><option>Larch<option>Oak<option>Robinia<option>Chestnut</select></label>
  <label>Delivery <input type="date" id="day" value="2026-12-01"></label>
  <label>Length in metres <input type="number" value="120"></label>
  <label>Plan of the meadow <input type="file" id="plan"></label>
  <p style="grid-column: 1 / -1"><a href="/price-list.csv" download>Price list</a> · delivery within ten days</p>
  <p><button>Place the order</button></p>
</main></html>`;

const terms = `<!doctype html><html lang="en"><title>Terms · Field & Fence</title>
<body style="margin: 24px; font: 17px/1.5 system-ui, sans-serif; background: #f5f2ea; color: #26231d">
<h1 style="margin: 0 0 8px">Terms</h1><p>Paid on delivery, or within ten days.<p>Posts are guaranteed for eight winters.</html>`;

interface Scene {
  readonly service: Service;
  /** The shop. */
  readonly site: string;
  /** The browser of the person who looks. */
  readonly looking: Browser;
}

/** A session with the shop open, and a person who looks at it. */
async function watching(
  scene: Scene,
  headless: boolean,
  options: BrowserContextOptions = window,
  through: (link: string) => string = (link) => link,
) {
  const { service, site, looking } = scene;
  const session = await service.sdk().browsers.create({
    name: 'order-agent',
    headless,
    timeout_seconds: 600,
    viewport: { width: 1024, height: headless ? 576 : 640 },
  });
  const driver = await chromium.connectOverCDP(session.cdp_ws_url);
  const page = driver.contexts()[0]!.pages()[0]!;
  await page.goto(site);
  const context = await looking.newContext(options);
  const view = await context.newPage();
  await view.goto(through(session.browser_live_view_url!));
  await view.waitForSelector('html[data-state="connected"]', { timeout: 60_000 });
  const picture = view.locator(headless ? '#screen' : '#display canvas');
  return {
    driver,
    page,
    view,
    /** Where in the view an element of the session's page is. Headless views have no window around the page. */
    async at(selector: string, edge: 'left' | 'right' = 'left') {
      const [shown, element] = [(await picture.boundingBox())!, (await page.locator(selector).boundingBox())!];
      const scale = shown.width / Number(await page.evaluate('innerWidth'));
      const x = edge === 'left' ? element.x + 20 : element.x + element.width - 18;
      return { x: shown.x + x * scale, y: shown.y + (element.y + element.height / 2) * scale };
    },
    async end() {
      await context.close();
      await driver.close();
      await service.sdk().browsers.deleteByID(session.session_id);
    },
  };
}

async function ofView(
  scene: Scene,
  name: string,
  headless: boolean,
  deeds: (seen: Awaited<ReturnType<typeof watching>>) => Promise<void>,
  options?: BrowserContextOptions,
  through?: (link: string) => string,
): Promise<void> {
  const seen = await watching(scene, headless, options, through);
  try {
    await deeds(seen);
    await save(seen.view, name);
  } finally {
    await seen.end();
  }
}

/** A network between a viewer and the service that dies without a word. */
async function network(to: number) {
  const open = new Set<net.Socket>();
  const server = net.createServer((near) => {
    const far = net.connect(to, '127.0.0.1');
    for (const socket of [near, far]) open.add(socket.on('error', () => {}));
    near.pipe(far).pipe(near);
  });
  const { port, close } = await listenOnLoopback(server);
  return {
    port,
    die() {
      for (const socket of open) socket.unpipe().pause();
    },
    async close() {
      for (const socket of open) socket.destroy();
      await close();
    },
  };
}

/** A page of the user's own with the live view in a frame. */
async function ofFrame(scene: Scene, name: string): Promise<void> {
  const seen = await watching(scene, true);
  try {
    const { view } = seen;
    const link = view.url().replaceAll('&', '&amp;');
    await view.goto(`${scene.site}terms`);
    await view.setContent(`<body style="font: 17px system-ui; margin: 32px; background: #eef1f5"><h2>Our own page</h2>
      <p>The agent fills in the order. You can take over at any time.</p>
      <iframe src="${link}&amp;header=false&amp;resize=true" style="width: 760px; height: 520px; border: 1px solid #9aa5b1; border-radius: 8px"></iframe>`);
    await view.frameLocator('iframe').locator('html[data-state="connected"]').waitFor({ state: 'attached' });
    await seen.page.waitForFunction('innerWidth < 800', undefined, { timeout: 60_000 });
    await save(view, name);
  } finally {
    await seen.end();
  }
}

async function ofPage({ looking }: Scene, name: string, url: string, ready: string): Promise<void> {
  const context = await looking.newContext(window);
  try {
    const page = await context.newPage();
    await page.goto(url);
    await page.locator(ready).first().waitFor();
    await save(page, name);
  } finally {
    await context.close();
  }
}

/** The console as a person sees it who has signed in, with three sessions that their programs use. */
async function ofConsole(
  { service, site, looking }: Scene,
  name: string,
  deeds: (page: Page) => Promise<void>,
  options: BrowserContextOptions = window,
): Promise<void> {
  const context = await looking.newContext({ ...options, reducedMotion: 'reduce' });
  context.setDefaultTimeout(60_000);
  const [sdk, drivers] = [service.sdk(), [] as Browser[]];
  const places = { 'order-agent': '', 'terms-watch': 'terms', 'price-check': '' };
  try {
    for (const [session, path] of Object.entries(places)) {
      const { cdp_ws_url } = await sdk.browsers.create({ name: session, headless: true, tags: { team: 'fences' } });
      const driver = await chromium.connectOverCDP(cdp_ws_url);
      drivers.push(driver);
      await driver
        .contexts()[0]!
        .pages()[0]!
        .goto(site + path);
    }
    const page = await context.newPage();
    await page.goto(`${service.url}/console/sessions`);
    await page.getByRole('textbox', { name: 'API key' }).fill(service.key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'order-agent' }).waitFor();
    await deeds(page);
    await save(page, name);
  } finally {
    await context.close();
    for (const driver of drivers) await driver.close();
    for (const session of Object.keys(places)) await sdk.browsers.deleteByID(session).catch(() => {});
  }
}

/** What moves (a caret, a picture that arrives) is still by then. */
async function save(page: Page, name: string): Promise<void> {
  await page.waitForTimeout(1_500);
  await page.screenshot({ path: join(folder, `${name}.png`), scale: 'css' });
  console.log(`docs/pictures/${name}.png`);
}

const pictures: Record<string, (scene: Scene, name: string) => Promise<void>> = {
  'live-view-list': (scene, name) =>
    ofView(scene, name, true, async ({ view, at }) => {
      const { x, y } = await at('#wood');
      await view.mouse.click(x, y);
      await view.getByRole('option', { name: 'Robinia' }).hover();
    }),
  'live-view-date': (scene, name) =>
    ofView(scene, name, true, async ({ view, at }) => {
      const { x, y } = await at('#day', 'right');
      await view.mouse.click(x, y);
    }),
  'live-view-menu': (scene, name) =>
    ofView(scene, name, true, async ({ view, at }) => {
      const { x, y } = await at('a');
      await view.mouse.click(x, y, { button: 'right' });
      await view.getByRole('menuitem', { name: 'Open link in new tab' }).hover();
    }),
  'live-view-files': (scene, name) =>
    ofView(scene, name, true, async ({ view, page }) => {
      const arrived = page.waitForEvent('download');
      await page.getByText('Price list').click();
      await (await arrived).failure(); // when it is there
      await view.locator('#files-button').click();
      await view.getByText('price-list.csv').first().waitFor({ timeout: 120_000 }); // what works inside starts for the first time
    }),
  'live-view-tabs': (scene, name) =>
    ofView(scene, name, true, async ({ driver, view }) => {
      const second = await driver.contexts()[0]!.newPage();
      await second.goto(`${scene.site}terms`);
      await view.getByRole('tab', { name: 'Terms' }).waitFor();
    }),
  'live-view-headful': (scene, name) =>
    ofView(scene, name, false, async ({ page }) => {
      const opened = page.waitForEvent('popup');
      await page.evaluate(`void open('/terms', '', 'popup,left=560,top=260,width=380,height=220')`);
      await (await opened).waitForLoadState();
    }),
  'live-view-full-screen': (scene, name) =>
    ofView(scene, name, false, async ({ driver, page, view, at }) => {
      await page.evaluate(`onclick = () => document.documentElement.requestFullscreen()`);
      const { x, y } = await at('button', 'right');
      await driver.close(); // Chromium keeps the page inside its window while Playwright is connected
      await view.mouse.click(x, y);
      await view.waitForTimeout(5_000); // the note on how to leave is gone
    }),
  'live-view-frame': ofFrame,
  async 'live-view-lost'(scene, name) {
    const way = await network(Number(new URL(scene.service.url).port));
    const through = (link: string) => Object.assign(new URL(link), { port: String(way.port) }).href;
    const lost = async ({ view }: Awaited<ReturnType<typeof watching>>) => {
      way.die();
      await view.waitForSelector('html:not([data-state="connected"])', { timeout: 60_000 });
    };
    await ofView(scene, name, true, lost, window, through).finally(way.close);
  },
  'live-view-failed': (scene, name) =>
    ofView(scene, name, true, async ({ view }) => {
      await view.locator('#address').fill(`${scene.site}broken`);
      await view.keyboard.press('Enter');
      await view.locator('#notice').waitFor({ timeout: 60_000 });
    }),
  'live-view-phone': (scene, name) => ofView(scene, name, true, async () => {}, phone),
  'live-view-phone-large': (scene, name) =>
    ofView(
      scene,
      name,
      true,
      async ({ view, at }) => {
        const cdp = await view.context().newCDPSession(view);
        const { x, y } = await at('#wood');
        for (const apart of [20, 26, 32, 38, 44]) {
          const touchPoints = [-apart, apart].map((right, id) => ({ x: x + right, y, id }));
          await cdp.send('Input.dispatchTouchEvent', { type: apart === 20 ? 'touchStart' : 'touchMove', touchPoints });
        }
        await cdp.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
      },
      phone,
    ),
  'live-view-quality': (scene, name) =>
    ofView(scene, name, false, async ({ page, view }) => {
      await page.click('h2'); // not into the address bar, which has the focus at first
      await view.locator('#picture-button').click();
      await view.locator('#picture-quality').waitFor();
    }),
  'console-wall': (scene, name) =>
    ofConsole(scene, name, async (page) => {
      await page.getByText('Wall', { exact: true }).click();
      for (const session of ['order-agent', 'terms-watch', 'price-check'])
        await page.getByRole('img', { name: `What ${session} shows` }).waitFor();
    }),
  'console-session': (scene, name) =>
    ofConsole(
      scene,
      name,
      async (page) => {
        await page.getByRole('link', { name: 'order-agent' }).click();
        const view = page.frameLocator('iframe.live-view');
        await view.locator('html[data-state="connected"]').waitFor({ state: 'attached' });
      },
      { ...window, colorScheme: 'dark' },
    ),
  'live-view-link': (scene, name) => ofPage(scene, name, `${scene.service.url}/browser/live?jwt=cut-short`, 'h2'),
  docs: (scene, name) => ofPage(scene, name, `${scene.service.url}/docs`, 'text=List sessions'),
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !Object.hasOwn(pictures, name));
if (unknown.length > 0)
  throw new Error(`There is no picture '${unknown[0]}'; there are ${Object.keys(pictures).join(', ')}.`);

await mkdir(folder, { recursive: true });
const site = createServer((request, response) => {
  if (request.url === '/price-list.csv')
    return void response.setHeader('Content-Type', 'text/csv').end('wood,metre\nlarch,9.50\noak,14.00\n');
  if (request.url === '/broken') return void request.socket.destroy();
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.end(request.url === '/terms' ? terms : shop);
});
const { port, close } = await listenOnLoopback(site);
const service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${port}`, CORRAL_LOG_LEVEL: 'warn' });
const looking = await viewers();
try {
  const scene: Scene = { service, site: `http://127.0.0.1:${port}/`, looking: looking.browser };
  for (const [name, take] of Object.entries(pictures))
    if (wanted.length === 0 || wanted.includes(name)) await take(scene, name);
} finally {
  await looking.stop();
  await service.close();
  await close();
}
