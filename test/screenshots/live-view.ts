import net from 'node:net';
import { listenOnLoopback } from '../support/listen.ts';
import {
  beside,
  half,
  ofBothViews,
  ofView,
  phone,
  save,
  shot,
  shotOfPage,
  shotOfView,
  watching,
  type How,
  type Picture,
  type Scene,
  type Seen,
} from './scene.ts';

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

/** The view while its connection is dead. */
async function lost(scene: Scene, headless: boolean): Promise<Buffer> {
  const way = await network(Number(new URL(scene.service.url).port));
  const through = (link: string) => Object.assign(new URL(link), { port: String(way.port) }).href;
  const die = async ({ view }: Seen) => {
    way.die();
    await view.waitForSelector('html:not([data-state="connected"])', { timeout: 60_000 });
  };
  return shotOfView(scene, headless, die, { options: half, through }).finally(way.close);
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
    await save(name, await shot(view));
  } finally {
    await seen.end();
  }
}

async function click({ view, at }: Seen, selector: string, edge?: 'left' | 'right', button?: 'right'): Promise<void> {
  const { x, y } = await at(selector, edge);
  await view.mouse.click(x, y, button ? { button } : {});
}

/** Two fingers that part. */
async function enlarge({ view, at }: Seen): Promise<void> {
  const cdp = await view.context().newCDPSession(view);
  const { x, y } = await at('#wood');
  for (const apart of [20, 26, 32, 38, 44]) {
    const touchPoints = [-apart, apart].map((right, id) => ({ x: x + right, y, id }));
    await cdp.send('Input.dispatchTouchEvent', { type: apart === 20 ? 'touchStart' : 'touchMove', touchPoints });
  }
  await cdp.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
}

/** A popup of the page, which a person may then move by its title bar. */
async function popUp({ page, view, place }: Seen, by?: { x: number; y: number }): Promise<void> {
  const opening = page.waitForEvent('popup');
  await page.evaluate(`void open('/terms', '', 'popup,left=240,top=150,width=370,height=220')`);
  const popup = await opening;
  await popup.waitForLoadState();
  if (!by) return;
  const [left, top] = (await popup.evaluate('[screenX, screenY]')) as [number, number];
  const [from, to] = [await place(left + 60, top - 8), await place(left + 60 + by.x, top - 8 + by.y)];
  await view.mouse.move(from.x, from.y);
  await view.mouse.down();
  await view.mouse.move(to.x, to.y, { steps: 10 });
  await view.mouse.up();
  await popup.waitForFunction(`Math.abs(screenX - ${left + by.x}) < 20`, undefined, { timeout: 60_000 });
}

/** A file of the viewer's computer falls on the page's field. */
async function drop({ view, page, at }: Seen): Promise<void> {
  const { x, y } = await at('#plan');
  await view.evaluate(`{
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(['a meadow'], 'meadow.pdf'));
    const place = { clientX: ${x}, clientY: ${y} };
    document.getElementById('stage').dispatchEvent(new DragEvent('drop', { dataTransfer, ...place, cancelable: true }));
  }`);
  await page.waitForFunction(`plan.files.length === 1`, undefined, { timeout: 120_000 });
  await view.getByText('Sent.').waitFor();
}

/** A headless session with a page whose fields have popups, which the view draws. */
function shotOfGate(scene: Scene, deeds: (seen: Seen) => Promise<void>, how: How): Promise<Buffer> {
  const open = async (seen: Seen) => {
    await seen.page.goto(`${scene.site}gate`);
    await deeds(seen);
  };
  return shotOfView(scene, true, open, how);
}

/** The page that someone gets who opens a link after its time. */
async function expiredLink(scene: Scene): Promise<Buffer> {
  const { service } = scene;
  const { session_id } = await service.sdk().browsers.create({ headless: true });
  try {
    const { body } = await service.call('POST', `/browsers/${session_id}/live_view_links`, { expires_in_seconds: 1 });
    while (Date.now() <= Date.parse(body.expires_at) + 1000) await new Promise((resolve) => setTimeout(resolve, 100));
    return await shotOfPage(scene, body.url, 'h2', half);
  } finally {
    await service.sdk().browsers.deleteByID(session_id);
  }
}

export const liveViewPictures: Record<string, Picture> = {
  'live-view-list': (scene, name) =>
    ofView(scene, name, true, async (seen) => {
      await click(seen, '#wood');
      await seen.view.getByRole('option', { name: 'Robinia' }).hover();
    }),
  'live-view-pickers': async (scene, name) => {
    const high = { options: { viewport: { width: 640, height: 560 } }, viewport: { width: 640, height: 484 } };
    await beside(scene, name, [
      ['A date', await shotOfGate(scene, (seen) => click(seen, '#day', 'right'), high)],
      ['A colour', await shotOfGate(scene, (seen) => click(seen, '#colour'), high)],
    ]);
  },
  'live-view-menus': async (scene, name) => {
    const suggest = async (seen: Seen) => {
      await click(seen, '#village');
      await seen.view.keyboard.type('ash');
      await seen.view.getByRole('option', { name: 'Ashcombe' }).hover();
    };
    const menu = async (seen: Seen) => {
      await click(seen, 'a', 'left', 'right');
      await seen.view.getByRole('menuitem', { name: 'Open link in new tab' }).hover();
    };
    await beside(scene, name, [
      ['Suggestions', await shotOfGate(scene, suggest, { options: half })],
      ['The menu of a link', await shotOfGate(scene, menu, { options: half })],
    ]);
  },
  'live-view-prompt': (scene, name) =>
    ofBothViews(scene, name, async ({ headless, page, view }) => {
      page.on('dialog', () => {}); // it waits for the person
      void page.evaluate(`prompt('Whom shall we call before we deliver?', 'The farm')`).catch(() => {});
      if (headless) await view.locator('#dialog').waitFor();
    }),
  'live-view-upload': async (scene, name) => {
    const asked = async (seen: Seen) => {
      seen.view.on('filechooser', () => {}); // the dialog of the viewer's own computer stays open
      await click(seen, '#plan');
      await seen.view.locator('#chooser').waitFor();
    };
    await beside(scene, name, [
      ['The page asks for a file', await shotOfView(scene, true, asked, { options: half })],
      ['A file was dropped on the page', await shotOfView(scene, false, drop, { options: half })],
    ]);
  },
  'live-view-files': (scene, name) =>
    ofBothViews(scene, name, async ({ headless, driver, view, at }) => {
      const [link, heading] = [await at('a'), await at('h2')];
      await driver.close(); // under Playwright, Chromium's own note has a name without a meaning
      await view.mouse.click(link.x, link.y);
      await view.mouse.move(heading.x, heading.y);
      await view.locator('#files-button').click();
      await view.getByText('price-list.csv').first().waitFor({ timeout: 120_000 }); // what works inside starts for the first time
      if (!headless) await view.waitForTimeout(8_000); // until that note is hidden
    }),
  'live-view-tabs': (scene, name) =>
    ofBothViews(scene, name, async ({ driver, headless, view }) => {
      const second = await driver.contexts()[0]!.newPage();
      await second.goto(`${scene.site}terms`);
      if (headless) await view.getByRole('tab', { name: 'Terms' }).waitFor();
      else await view.locator('#page-title', { hasText: 'Terms' }).waitFor();
    }),
  'live-view-headful': async (scene, name) =>
    beside(scene, name, [
      ['A popup as its page opened it', await shotOfView(scene, false, (seen) => popUp(seen), { options: half })],
      [
        'Moved by its title bar',
        await shotOfView(scene, false, (seen) => popUp(seen, { x: -200, y: -70 }), { options: half }),
      ],
    ]),
  'live-view-full-screen': (scene, name) =>
    ofView(scene, name, false, async ({ driver, page, view, at }) => {
      await page.evaluate(`onclick = () => document.documentElement.requestFullscreen()`);
      const { x, y } = await at('button', 'right');
      await driver.close(); // Chromium keeps the page inside its window while Playwright is connected
      await view.mouse.click(x, y);
      await view.waitForTimeout(5_000); // until the note on how to leave is hidden
    }),
  'live-view-frame': ofFrame,
  'live-view-lost': async (scene, name) =>
    beside(scene, name, [
      ['Headless', await lost(scene, true)],
      ['Headful', await lost(scene, false)],
    ]),
  'live-view-search': (scene, name) =>
    ofBothViews(scene, name, async ({ headless, page, view, place }) => {
      const bar = await place(300, 64);
      if (headless) await view.locator('#address').click();
      else await view.mouse.click(bar.x, bar.y);
      await view.keyboard.type('oak gates near Ashby');
      await view.keyboard.press('Enter');
      await page.getByText('Results for').waitFor();
    }),
  'live-view-failed': (scene, name) =>
    ofBothViews(scene, name, async ({ headless, page, view }) => {
      const broken = `${scene.site}broken`;
      if (!headless) return void (await page.goto(broken).catch(() => {}));
      await view.locator('#address').fill(broken);
      await view.keyboard.press('Enter');
      await view.locator('#notice').waitFor({ timeout: 60_000 });
    }),
  'live-view-phone': async (scene, name) =>
    beside(scene, name, [
      ['Headless', await shotOfView(scene, true, async () => {}, { options: phone })],
      ['Enlarged with two fingers', await shotOfView(scene, true, enlarge, { options: phone })],
      ['Headful', await shotOfView(scene, false, async () => {}, { options: phone })],
    ]),
  'live-view-quality': (scene, name) =>
    ofView(scene, name, false, async ({ view }) => {
      await view.locator('#picture-button').click();
      await view.locator('#picture-quality').waitFor();
    }),
  'live-view-ended': async (scene, name) => {
    const end = async ({ id, view }: Seen) => {
      await scene.service.sdk().browsers.deleteByID(id);
      await view.waitForSelector('html[data-state="ended"]');
    };
    await beside(scene, name, [
      ['A session that ended while it was watched', await shotOfView(scene, true, end, { options: half })],
      ['A link that has expired', await expiredLink(scene)],
    ]);
  },
};
