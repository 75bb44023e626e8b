import type Kernel from '@onkernel/sdk';
import { build } from 'esbuild';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { listenOnLoopback } from '../support/listen.ts';
import { startService, type Service } from '../support/service.ts';

/** Facts that pages, frames and workers must report alike. */
const factsOf = `async () => {
  const { brands = [], mobile, platform: hinted } = navigator.userAgentData;
  const hints = ['architecture', 'bitness', 'formFactors', 'fullVersionList', 'model', 'platformVersion', 'uaFullVersion', 'wow64'];
  return {
    userAgent: navigator.userAgent, platform: navigator.platform, brands, mobile, hinted,
    hints: await navigator.userAgentData.getHighEntropyValues(hints),
    language: navigator.language, languages: navigator.languages, locale: Intl.NumberFormat().resolvedOptions().locale,
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone, offset: new Date(2026, 0, 1).getTimezoneOffset(),
    noon: new Date(2026, 0, 1, 12).toLocaleString('en-US', { timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone }),
    cores: navigator.hardwareConcurrency, memory: navigator.deviceMemory,
  };
}`;
const worker = `(${factsOf})().then((facts) => postMessage(facts))`;
const asPage = `<script>
  const facts = ${factsOf};
  const ofWorker = (address) => new Promise((resolve) => (new Worker(address).onmessage = ({ data }) => resolve(data)));
  const ofFrame = (address) => new Promise((resolve) => {
    onmessage = ({ data }) => resolve(data);
    document.body.append(Object.assign(document.createElement('iframe'), { src: address }));
  });
</script><body>`;
const asFrame = `<script>(${factsOf})().then((facts) => parent.postMessage(facts, '*'))</script>`;

interface Facts {
  userAgent: string;
  platform: string;
  brands: { brand: string; version: string }[];
  mobile: boolean;
  hinted: string;
  hints: { fullVersionList: { brand: string; version: string }[]; uaFullVersion: string };
  language: string;
  languages: string[];
  locale: string;
  noon: string;
}

const geometry = `(() => {
  const is = (query) => matchMedia(query).matches;
  return {
    screen: [screen.width, screen.height], available: [screen.availWidth, screen.availHeight], outer: [outerWidth, outerHeight],
    at: [screenX, screenY], inner: [innerWidth, innerHeight], device: is('(device-width: ' + screen.width + 'px)') && is('(device-height: ' + screen.height + 'px)'),
    wide: is('(orientation: landscape)') === screen.orientation.type.startsWith('landscape'), depth: [screen.colorDepth, screen.pixelDepth],
    touch: [navigator.maxTouchPoints > 0, 'ontouchstart' in window, is('(any-pointer: coarse)'), is('(any-hover: none)')],
    mouse: [is('(pointer: fine)'), is('(any-pointer: fine)'), is('(hover: hover)'), is('(any-hover: hover)')],
  };
})()`;

interface Geometry extends Record<'screen' | 'available' | 'outer' | 'at' | 'inner' | 'depth', [number, number]> {
  device: boolean;
  wide: boolean;
  touch: boolean[];
  mouse: boolean[];
}

let service: Service;
let sdk: Kernel;
let botd: string;
let port: number;
let closeSite: () => Promise<unknown>;
const heard: IncomingHttpHeaders[] = [];
const clients: Browser[] = [];
beforeAll(async () => {
  const site = createServer((request, response) => {
    if (request.url === '/') heard.push(request.headers);
    const script = { '/worker.js': worker, '/botd.js': botd }[request.url ?? ''];
    response.setHeader('content-type', script === undefined ? 'text/html' : 'text/javascript');
    response.end(script ?? (request.url === '/frame' ? asFrame : asPage));
  });
  ({ port, close: closeSite } = await listenOnLoopback(site));
  // Without monitoring it asks no server.
  const contents = `import { load } from '@fingerprintjs/botd'; window.detect = async () => (await load({ monitoring: false })).detect();`;
  const made = await build({ stdin: { contents, resolveDir: import.meta.dirname }, bundle: true, write: false });
  botd = made.outputFiles[0]!.text;
  service = await startService({
    CORRAL_MAX_SESSIONS: '4',
    CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${port},localhost:${port}`,
  });
  sdk = service.sdk();
});
afterEach(() => Promise.all(clients.splice(0).map((client) => client.close())));
afterAll(async () => {
  await service?.close();
  await closeSite?.();
});

async function open(wishes: Kernel.BrowserCreateParams): Promise<{ id: string; page: Page; browser: Browser }> {
  const session = await sdk.browsers.create({ timeout_seconds: 600, ...wishes });
  const browser = await chromium.connectOverCDP(session.cdp_ws_url);
  clients.push(browser);
  const page = browser.contexts()[0]!.pages()[0]!;
  heard.length = 0;
  await page.goto(`http://localhost:${port}/`);
  return { id: session.session_id, page, browser };
}

/** The window is within its screen, and all values about screen, touch and mouse agree. */
function expectOneDesktop(desktop: Geometry) {
  const { screen, available, outer, inner, at } = desktop;
  for (const side of [0, 1] as const) {
    expect(available[side], JSON.stringify(desktop)).toBeLessThanOrEqual(screen[side]);
    expect(at[side] + outer[side], JSON.stringify(desktop)).toBeLessThanOrEqual(available[side]);
    expect(inner[side], JSON.stringify(desktop)).toBeLessThanOrEqual(outer[side]);
  }
  expect(desktop).toMatchObject({ device: true, wide: true, depth: [24, 24] });
  expect(desktop.touch).toEqual([false, false, false, false]);
  expect(desktop.mouse).toEqual([true, true, true, true]);
}

describe.each([true, false])('a stealthy session (headless: %s)', (headless) => {
  test('is no bot to BotD', async () => {
    const { id, page } = await open({ headless, stealth: true });
    await page.addScriptTag({ url: '/botd.js' });
    expect(await page.evaluate('detect()')).toEqual({ bot: false });
    await sdk.browsers.deleteByID(id);
  });

  test('has one desktop, one language, one time zone and one name in all APIs', async () => {
    const { id, page } = await open({ headless, stealth: true });
    const desktop = await page.evaluate<Geometry>(geometry);
    expect(desktop).toMatchObject({ screen: [1920, 1080], outer: [1920, 1080] });
    expectOneDesktop(desktop);

    const facts = await page.evaluate<Facts>('facts()');
    expect(await page.evaluate(`ofWorker('/worker.js')`)).toEqual(facts);
    expect(await page.evaluate(`ofFrame('http://127.0.0.1:${port}/frame')`)).toEqual(facts); // of another site

    const [, major] = /^Mozilla\/5\.0 \(X11; Linux x86_64\) .* Chrome\/(\d+)\.0\.0\.0 Safari\/537\.36$/.exec(
      facts.userAgent,
    )!;
    expect(facts).toMatchObject({ platform: expect.stringMatching(/^Linux /), hinted: 'Linux', mobile: false });
    expect(facts.brands).toContainEqual({ brand: 'Chromium', version: major });
    expect(JSON.stringify(facts)).not.toMatch(/headless/i);
    // Chromium has none beside a user agent of one's own, without which a headless one calls itself so.
    expect(facts.hints.fullVersionList).toHaveLength(headless ? 0 : facts.brands.length);
    for (const { brand, version } of facts.hints.fullVersionList)
      expect(facts.brands).toContainEqual({ brand, version: version.split('.')[0] });

    expect(facts).toMatchObject({
      language: 'en-US',
      languages: ['en-US', 'en'],
      locale: 'en-US',
      noon: '1/1/2026, 12:00:00 PM',
    });
    const [asked] = heard;
    expect(asked!['accept-language']).toBe('en-US,en;q=0.9');
    expect(asked!['user-agent']).toBe(facts.userAgent);
    expect(asked!['sec-ch-ua']).toBe(facts.brands.map(({ brand, version }) => `"${brand}";v="${version}"`).join(', '));
    expect(asked).toMatchObject({ 'sec-ch-ua-mobile': '?0', 'sec-ch-ua-platform': '"Linux"' });
    expect(await page.evaluate('[navigator.webdriver, typeof chrome, navigator.plugins.length]')).toEqual([
      false,
      'object',
      5,
    ]);
    await sdk.browsers.deleteByID(id);
  });
});

test.each<[string, Kernel.BrowserCreateParams]>([
  ['headless', { headless: true }],
  ['stealthy headless', { headless: true, stealth: true }],
  ['headful', { headless: false }],
])('the screen of a %s session follows its viewport, and what a client emulates wins', async (_, wishes) => {
  const { id, page, browser } = await open({ ...wishes, viewport: { width: 1000, height: 700 } });
  const look = () => page.evaluate<Geometry>(geometry);
  expect((await look()).screen).toEqual([1000, 700]);
  expectOneDesktop(await look());
  for (const [width, height] of [
    [1440, 900],
    [800, 600],
  ] as const) {
    await sdk.browsers.update(id, { viewport: { width, height } });
    await expect.poll(async () => (await look()).screen[0]).toBe(width);
    await expect.poll(async () => (await look()).outer[0]).toBe(width);
    expectOneDesktop(await look());
  }
  const context = await browser.newContext({
    viewport: { width: 600, height: 500 },
    screen: { width: 1111, height: 888 },
  });
  const emulated = await context.newPage();
  await emulated.goto(`http://localhost:${port}/`);
  expect(await emulated.evaluate(geometry)).toMatchObject({ screen: [1111, 888], inner: [600, 500] });
  await sdk.browsers.deleteByID(id);
});
