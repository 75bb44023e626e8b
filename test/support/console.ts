import axe from 'axe-core';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { expect } from 'vitest';

/** A loaded machine takes its time; what never comes fails all the same. */
export const PATIENCE = 60_000;

/** The browser of a person. The headless shell takes less processor time than Chromium in headless mode. */
export const openBrowser = () =>
  chromium.launch({ executablePath: '/usr/lib/chromium/chromium-headless-shell', args: ['--no-sandbox'] });

/** A tab of its own, with what its console complained about: a breach of the page's policy is an error there. */
export async function openTab(person: Browser, address: string, options: BrowserContextOptions = {}) {
  // A dialog that still fades in has less contrast than it will have.
  const context = await person.newContext({ reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (line) => void (line.type() === 'error' && complaints.push(line.text())));
  page.on('pageerror', (error) => void complaints.push(String(error)));
  await page.goto(address);
  return { page, complaints, context };
}

export async function signIn(page: Page, key: string) {
  await page.getByRole('textbox', { name: 'API key' }).fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

const phone = { width: 390, height: 844 };
const desktop = { width: 1280, height: 800 };
/** Each colour scheme and each size once: what axe finds in one scheme does not depend on the size. A person looks at all four. */
const looks = [
  { name: 'phone-dark', size: phone, colorScheme: 'dark' },
  { name: 'desktop-light', size: desktop, colorScheme: 'light' },
] as const;
const picturesBesides = [
  { name: 'phone-light', size: phone, colorScheme: 'light' },
  { name: 'desktop-dark', size: desktop, colorScheme: 'dark' },
] as const;

interface Violation {
  id: string;
  impact?: string | null;
  nodes: { html: string; failureSummary?: string }[];
}

/**
 * Looks at the screen as it is now, on a phone in the dark and at a desk in the light: axe finds nothing serious, and nothing has to be
 * scrolled sideways for. With CORRAL_PICTURES=<folder> it leaves pictures to look at, of both sizes in both schemes.
 */
export async function expectGoodLook(page: Page, screen: string): Promise<void> {
  const folder = process.env['CORRAL_PICTURES'];
  for (const look of folder ? picturesBesides : []) await picture(page, folder!, screen, look);
  for (const look of looks) {
    const { name } = look;
    await dress(page, look);
    if (folder) await picture(page, folder, screen, look);
    if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(axe.source); // half a megabyte, once for each document
    const found = (await page.evaluate(
      `axe.run(document, { resultTypes: ['violations'], iframes: false }).then(({ violations }) => violations)`,
    )) as Violation[];
    const serious = found.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    const problems = serious.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => [id, html, failureSummary]),
    );
    expect.soft(problems, `${screen}, ${name}`).toEqual([]);
    expect
      .soft(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), `${screen}, ${name}`)
      .toBeLessThanOrEqual(0);
  }
}

type Look = (typeof looks | typeof picturesBesides)[number];

async function dress(page: Page, { size, colorScheme }: Look): Promise<void> {
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme });
  await page.locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor({ state: 'attached' });
  await page.evaluate(colorsSettled);
}

/** While colours change from one scheme to the other, text has less contrast than it will have. A spinner never ends. */
const colorsSettled = `Promise.allSettled(
  document.getAnimations()
    .filter(({ effect }) => effect.getTiming().iterations !== Infinity)
    .map(({ finished }) => finished),
).then(() => {})`;

async function picture(page: Page, folder: string, screen: string, look: Look): Promise<void> {
  await dress(page, look);
  await mkdir(folder, { recursive: true });
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(folder, `${screen}-${look.name}.png`) });
}
