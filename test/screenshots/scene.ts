import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chromium, devices, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import type { Service } from '../support/service.ts';

/** What the pictures are taken of, and how they are saved. */

export const folder = join(import.meta.dirname, '../../docs/pictures');

export const window = { viewport: { width: 1200, height: 760 } } satisfies BrowserContextOptions;
/** Of this size are two that are shown side by side. */
export const half = { viewport: { width: 640, height: 480 } } satisfies BrowserContextOptions;
export const phone: BrowserContextOptions = { ...devices['iPhone 13'], deviceScaleFactor: 2 };

export interface Scene {
  readonly service: Service;
  /** The shop. */
  readonly site: string;
  /** The browser of the person who looks. */
  readonly looking: Browser;
}

export type Picture = (scene: Scene, name: string) => Promise<void>;

export interface How {
  /** The window of the person who looks. */
  readonly options?: BrowserContextOptions;
  readonly viewport?: { width: number; height: number };
  /** Makes another link of the live view's. */
  readonly through?: (link: string) => string;
}

/** A session with the shop open, and a person who looks at it. */
export async function watching({ service, site, looking }: Scene, headless: boolean, how: How = {}) {
  const { options = window, through = (link: string) => link } = how;
  // In half a window the page has its own size, and the bars above it are of different heights.
  const own = options === half ? { width: 640, height: headless ? 404 : 440 } : undefined;
  const session = await service.sdk().browsers.create({
    name: 'order-agent',
    headless,
    timeout_seconds: 600,
    viewport: how.viewport ?? own ?? { width: 1024, height: headless ? 576 : 640 },
  });
  const driver = await chromium.connectOverCDP(session.cdp_ws_url);
  const page = driver.contexts()[0]!.pages()[0]!;
  await page.goto(site);
  if (!headless) await page.click('h2'); // the address bar has the focus at first
  const context = await looking.newContext(options);
  const view = await context.newPage();
  await view.goto(through(session.browser_live_view_url!));
  await view.waitForSelector('html[data-state="connected"]', { timeout: 60_000 });
  const picture = view.locator(headless ? '#screen' : '#display canvas');
  /** Where in the view a place of the session's display is, or of its page: headless views have no window around it. */
  const place = async (x: number, y: number) => {
    const shown = (await picture.boundingBox())!;
    const scale = shown.width / Number(await page.evaluate(headless ? 'innerWidth' : 'screen.width'));
    return { x: shown.x + x * scale, y: shown.y + y * scale };
  };
  return {
    headless,
    id: session.session_id,
    driver,
    page,
    view,
    place,
    /** Where in the view an element of the session's page is. */
    async at(selector: string, edge: 'left' | 'right' = 'left') {
      const element = (await page.locator(selector).boundingBox())!;
      const above = headless ? 0 : Number(await page.evaluate('screenY + outerHeight - innerHeight'));
      const x = edge === 'left' ? element.x + 20 : element.x + element.width - 18;
      return place(x, above + element.y + element.height / 2);
    },
    async end() {
      await context.close();
      await driver.close();
      await service
        .sdk()
        .browsers.deleteByID(session.session_id)
        .catch(() => {}); // some pictures are of its end
    },
  };
}

export type Seen = Awaited<ReturnType<typeof watching>>;
type Deeds = (seen: Seen) => Promise<void>;

/** The view after a person's deeds. */
export async function shotOfView(scene: Scene, headless: boolean, deeds: Deeds, how?: How): Promise<Buffer> {
  const seen = await watching(scene, headless, how);
  try {
    await deeds(seen);
    return await shot(seen.view);
  } finally {
    await seen.end();
  }
}

export async function ofView(scene: Scene, name: string, headless: boolean, deeds: Deeds, how?: How): Promise<void> {
  await save(name, await shotOfView(scene, headless, deeds, how));
}

/** A headless session's view and a headful one's, side by side. */
export async function ofBothViews(scene: Scene, name: string, deeds: Deeds, how: How = {}): Promise<void> {
  const both: [string, Buffer][] = [];
  for (const headless of [true, false])
    both.push([headless ? 'Headless' : 'Headful', await shotOfView(scene, headless, deeds, { options: half, ...how })]);
  await beside(scene, name, both);
}

/** Pictures with their captions, side by side in `columns`. */
export async function beside(
  { looking }: Scene,
  name: string,
  pictures: [caption: string, png: Buffer][],
  columns = pictures.length,
): Promise<void> {
  const context = await looking.newContext({ viewport: { width: 1400, height: 1400 } });
  try {
    const page = await context.newPage();
    const figures = pictures.map(
      ([caption, png]) =>
        `<figure><img src="data:image/png;base64,${png.toString('base64')}"><figcaption>${caption}</figcaption></figure>`,
    );
    await page.setContent(`<style>
      body { margin: 0 } main { display: inline-grid; grid-template-columns: repeat(${columns}, auto); background: #24292f }
      main { gap: 8px 12px; padding: 12px 12px 0 } figure { margin: 0 } img { display: block }
      figcaption { padding: 6px; font: 600 17px system-ui; color: #d0d7de; text-align: center }
    </style><main>${figures.join('')}</main>`);
    await page.waitForFunction(`[...document.images].every((image) => image.complete)`);
    const main = page.locator('main');
    await save(name, await main.screenshot({ scale: 'css' }));
  } finally {
    await context.close();
  }
}

/** A page as it is opened by someone without a key. */
export async function shotOfPage(
  { looking }: Scene,
  url: string,
  ready: string,
  options: BrowserContextOptions = window,
): Promise<Buffer> {
  const context = await looking.newContext(options);
  try {
    const page = await context.newPage();
    await page.goto(url);
    await page.locator(ready).first().waitFor();
    return await shot(page);
  } finally {
    await context.close();
  }
}

/** What moves (a caret, a picture that arrives) is still by then. */
export async function shot(page: Page): Promise<Buffer> {
  await page.waitForTimeout(1_500);
  return page.screenshot({ scale: 'css' });
}

export async function save(name: string, png: Buffer): Promise<void> {
  await writeFile(join(folder, `${name}.png`), png);
  console.log(`docs/pictures/${name}.png`);
}
