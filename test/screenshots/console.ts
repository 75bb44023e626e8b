import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { save, shot, shotOfPage, window, type Picture, type Scene } from './scene.ts';

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
    await save(name, await shot(page));
  } finally {
    await context.close();
    for (const driver of drivers) await driver.close();
    for (const session of Object.keys(places)) await sdk.browsers.deleteByID(session).catch(() => {});
  }
}

export const consolePictures: Record<string, Picture> = {
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
  docs: async (scene, name) => save(name, await shotOfPage(scene, `${scene.service.url}/docs`, 'text=List sessions')),
};
