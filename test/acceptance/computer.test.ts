import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import type Kernel from '@onkernel/sdk';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findParts } from '../../scripts/parts.mjs';
import { listenOnLoopback } from '../support/listen.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { makeCertificate } from '../support/proxies.ts';
import { startService, type Service } from '../support/service.ts';

const desk = `<!doctype html><title>desk</title><meta charset=utf-8>
<style>body { margin: 0; height: 6000px; width: 6000px; background: rgb(10, 200, 30) }
  #box { position: fixed; left: 100px; top: 50px; width: 100px; height: 60px; background: rgb(200, 0, 0) }
  #text { position: fixed; left: 100px; top: 150px; width: 300px; height: 60px }
  #pick { position: fixed; left: 100px; top: 250px; width: 200px }</style>
<div id=box></div><textarea id=text></textarea>
<select id=pick><option>one<option>two<option>three</select>
<script>
  log = [];
  const names = ['mousedown', 'mouseup', 'click', 'dblclick', 'contextmenu', 'keydown', 'auxclick'];
  for (const name of names) addEventListener(name, (e) => log.push([name, e.button ?? e.key, e.ctrlKey, e.shiftKey]));
  addEventListener('contextmenu', (e) => e.preventDefault());
  // Includes coalesced events: on a busy machine, the browser draws and reports moves rarely.
  moves = []; addEventListener('pointermove', (e) => {
    for (const each of e.getCoalescedEvents()) moves.push([each.clientX, each.clientY, each.buttons]);
  });
  wheels = []; addEventListener('wheel', (e) => wheels.push([Math.sign(e.deltaX), Math.sign(e.deltaY)]));
</script>`;

/** `npm test` installs them where it can; a machine that cannot goes without. CI has to have them: there the tests fail without. */
const parts = findParts();
const required = Boolean(process.env['CI']);
const hasFonts = required || parts.every(({ name, path }) => !name.startsWith('fonts-') || path);
const hasFrames = required || parts.some(({ name, path }) => name === 'openbox' && path);

let pages: Pages;
let service: Service;
let sdk: Kernel;
/** The same pages as another site. */
const elsewhere = () => new URL(pages.url.replace('127.0.0.1', 'localhost'));
let dir: string;
let secure: Awaited<ReturnType<typeof listenOnLoopback>>;
/** Where nothing listens. */
const closed = () => `127.0.0.9:${secure.port}`;

beforeAll(async () => {
  pages = await startPages({ '/desk': desk, '/next': '<title>next</title>' });
  dir = mkdtempSync(join(tmpdir(), 'corral-computer-'));
  const cert = makeCertificate(dir, '127.0.0.1');
  const key = readFileSync(join(dir, 'key.pem'));
  secure = await listenOnLoopback(createServer({ cert, key }, (_request, response) => void response.end('safe')));
  const hosts = [pages.host, elsewhere().host, `127.0.0.1:${secure.port}`, closed()];
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: hosts.join() });
  sdk = service.sdk();
});
afterAll(async () => {
  await service.close();
  await pages.close();
  await secure.close();
  rmSync(dir, { recursive: true });
});

describe.each([{ headless: true }, { headless: false }])('hands on a session, headless: $headless', ({ headless }) => {
  let id: string;
  let playwright: Browser;
  let page: Page;
  /** Where the page begins on the screen. */
  let top = 0;
  const computer = () => sdk.browsers.computer;
  const at = (x: number, y: number) => ({ x, y: y + top });
  /** What the page has heard since `forget`: all of it each time, since the events of one click may come one by one. */
  const log = () => page.evaluate('log') as Promise<[string, unknown, boolean, boolean][]>;
  const forget = () => page.evaluate('log.length = 0');
  const value = () => page.locator('#text').inputValue();
  const raw = (path: string, body: unknown = {}) => service.call('POST', `/browsers/${id}/computer/${path}`, body);

  beforeAll(async () => {
    const browser = await sdk.browsers.create({
      headless,
      timeout_seconds: 300,
      viewport: { width: 1000, height: 700 },
    });
    id = browser.session_id;
    playwright = await chromium.connectOverCDP(browser.cdp_ws_url);
    page = playwright.contexts()[0]!.pages()[0]!;
    await page.goto(`${pages.url}desk`);
    if (!headless) top = await page.evaluate<number>('outerHeight - innerHeight');
  });
  afterAll(async () => {
    await playwright?.close();
    await sdk.browsers.deleteByID(id);
  });

  test('has a mouse, no bar over the page, and goes back and forward as drivers expect', async () => {
    expect(
      await page.evaluate('["(hover: hover)", "(pointer: fine)"].map((query) => matchMedia(query).matches)'),
    ).toEqual([true, true]);
    expect(top).toBeLessThan(100); // tabs and address bar; a bar below them takes forty more
    await page.goto(`${pages.url}next`);
    expect((await page.goBack())?.url()).toBe(`${pages.url}desk`);
    await page.goForward();
    expect(await page.title()).toBe('next');
    await page.goto(`${pages.url}desk`);
  });

  test('reports the real server and the real failure to its driver, by https too, and in a HAR', async () => {
    const path = join(dir, `${id}.har`);
    const context = await playwright.newContext({ ignoreHTTPSErrors: true, recordHar: { path } });
    const visitor = await context.newPage();
    const answer = await visitor.goto(`https://127.0.0.1:${secure.port}/`);
    expect(await answer?.serverAddr()).toEqual({ ipAddress: '127.0.0.1', port: secure.port });
    for (const scheme of ['http', 'https'])
      await expect(visitor.goto(`${scheme}://${closed()}/`), scheme).rejects.toThrow('net::ERR_CONNECTION_REFUSED');
    await context.close(); // writes the HAR
    const { log } = JSON.parse(readFileSync(path, 'utf8')) as { log: { entries: object[] } };
    expect(log.entries[0]).toMatchObject({
      serverIPAddress: '127.0.0.1',
      _serverPort: secure.port,
      _securityDetails: { protocol: expect.stringContaining('TLS'), subjectName: 'corral-test' },
    });
  });

  test('has one storage for a site, also in a frame on another site’s page', async () => {
    await page.goto(`${elsewhere().href}next`);
    await page.evaluate('localStorage.setItem("kept", "yes")');
    await page.goto(`${pages.url}next`);
    await page.evaluate(`document.body.innerHTML = '<iframe src="${elsewhere().href}next"></iframe>'`);
    const kept = () =>
      page
        .frames()[1]
        ?.evaluate('localStorage.getItem("kept")')
        .catch((error: Error) => error.message);
    await expect.poll(kept).toBe('yes');
    await page.goto(`${pages.url}desk`);
  });

  test.runIf(hasFonts)('shows every script, emoji and symbols, and none as an empty box', async () => {
    const boxes = await page.evaluate(`(() => {
      const draw = (letter) => {
        const canvas = Object.assign(document.createElement('canvas'), { width: 48, height: 48 });
        const context = canvas.getContext('2d');
        context.font = '32px sans-serif';
        context.fillText(letter, 4, 36);
        return canvas.toDataURL();
      };
      const [unassigned, nothing] = [draw('\\u0378'), draw('')];
      return [...'汉體あ한عאकก😀♞∑☂✓'].filter((letter) => [unassigned, nothing].includes(draw(letter)));
    })()`);
    expect(boxes).toEqual([]);
  });

  test('clicks with every button, repeatedly, with keys held', async () => {
    await forget();
    await computer().clickMouse(id, at(150, 80));
    await expect.poll(log).toEqual([
      ['mousedown', 0, false, false],
      ['mouseup', 0, false, false],
      ['click', 0, false, false],
    ]);
    await computer().clickMouse(id, { ...at(150, 80), num_clicks: 2 });
    await expect.poll(async () => (await log()).map(([name]) => name)).toContain('dblclick');
    await computer().clickMouse(id, { ...at(150, 80), button: 'right' });
    await expect.poll(async () => (await log()).map(([name]) => name)).toContain('contextmenu');
    await computer().clickMouse(id, { ...at(150, 80), button: 'middle' });
    await expect
      .poll(async () => (await log()).map(([name, button]) => `${name} ${String(button)}`))
      .toContain('auxclick 1');
    await forget();
    await computer().clickMouse(id, { ...at(150, 80), hold_keys: ['Ctrl', 'Shift'] });
    await expect
      .poll(async () => (await log()).filter(([name]) => name === 'click'))
      .toEqual([['click', 0, true, true]]);
    await forget();
    await computer().clickMouse(id, { ...at(150, 80), click_type: 'down' });
    await computer().clickMouse(id, { ...at(160, 90), click_type: 'up' });
    await expect.poll(async () => (await log()).map(([name]) => name)).toEqual(['mousedown', 'mouseup', 'click']);
  });

  test('moves like a hand, or at once, and knows where it is', async () => {
    await computer().moveMouse(id, { ...at(10, 10), smooth: false });
    expect(await computer().getMousePosition(id)).toEqual(at(10, 10));
    await page.evaluate('moves.length = 0');
    // Of moves that wait on the display, a browser takes the last: it has the time to look at least six times.
    await computer().moveMouse(id, { ...at(600, 400), duration_ms: 1500 });
    await expect.poll(async () => (await page.evaluate<number[]>('moves.at(-1)')).slice(0, 2)).toEqual([600, 400]);
    const moves = await page.evaluate<[number, number][]>('moves');
    expect(moves.length).toBeGreaterThan(5);
    const off = moves.map(([x, y]) => Math.abs(x * 390 - y * 590 + (590 * 10 - 390 * 10)) / Math.hypot(390, 590));
    expect(Math.max(...off)).toBeGreaterThan(1); // not along a ruler
    expect(await computer().getMousePosition(id)).toEqual(at(600, 400));
  });

  test('drags along a path', async () => {
    await page.evaluate('moves.length = 0');
    await forget();
    await computer().dragMouse(id, {
      path: [at(300, 400), at(400, 450), at(500, 400)].map(({ x, y }) => [x, y]),
      smooth: false,
      steps_per_segment: 4,
      step_delay_ms: 5,
    });
    await expect.poll(async () => (await log()).map(([name]) => name)).toContain('mouseup');
    const dragged = (await page.evaluate<number[][]>('moves')).filter(([, , buttons]) => buttons === 1);
    expect(dragged.at(-1)!.slice(0, 2)).toEqual([500, 400]);
  });

  test('drags like a hand by default', async () => {
    await page.evaluate('moves.length = 0');
    await forget();
    await computer().dragMouse(id, {
      path: [at(300, 400), at(600, 500)].map(({ x, y }) => [x, y]),
      duration_ms: 1500, // see above
      delay: 10,
    });
    await expect.poll(async () => (await log()).map(([name]) => name)).toContain('mouseup');
    const dragged = (await page.evaluate<[number, number, number][]>('moves')).filter(([, , buttons]) => buttons === 1);
    expect(dragged.length).toBeGreaterThan(5);
    expect(dragged.at(-1)!.slice(0, 2)).toEqual([600, 500]);
    const off = dragged.map(([x, y]) => Math.abs((x - 300) * 100 - (y - 400) * 300) / Math.hypot(100, 300));
    expect(Math.max(...off)).toBeGreaterThan(1); // not along a ruler
  });

  test('scrolls, down before to the right', async () => {
    await page.evaluate('wheels.length = 0');
    await computer().scroll(id, { ...at(600, 400), delta_y: 2, delta_x: 1 });
    await expect.poll(() => page.evaluate('scrollX')).toBeGreaterThan(50);
    expect(String(await page.evaluate('wheels[0]'))).toBe('0,1');
    await expect.poll(() => page.evaluate('scrollY')).toBeGreaterThan(100);
    await computer().scroll(id, { ...at(600, 400), delta_y: -20, delta_x: -20 });
    await expect.poll(() => page.evaluate('scrollX + scrollY')).toBe(0);
  });

  test('writes any text, and presses keys and chords', async () => {
    await computer().clickMouse(id, at(200, 180));
    const text = 'Hello, "World"!\tÄñ Ω я € 世界 🎉~{}|';
    await computer().typeText(id, { text: text.replace('\t', ' ') });
    await expect.poll(value).toBe(text.replace('\t', ' '));
    await computer().pressKey(id, { keys: ['Ctrl+a', 'BackSpace'] });
    await expect.poll(value).toBe('');
    await computer().typeText(id, { text: 'a\nb', delay: 5 });
    await expect.poll(value).toBe('a\nb');
    await computer().pressKey(id, { keys: ['Home', 'X', 'exclam', 'Return'], hold_keys: [] });
    await expect.poll(value).toBe('a\nX!\nb');
    await forget();
    await computer().pressKey(id, { keys: ['Right'], hold_keys: ['Shift'], duration: 20 });
    await expect
      .poll(async () => (await log()).filter(([, key]) => key === 'ArrowRight')[0])
      .toEqual(['keydown', 'ArrowRight', false, true]);
    await computer().pressKey(id, { keys: ['Ctrl+a', 'Delete'] });
  });

  test('reads and writes the clipboard of the pages', async () => {
    await computer().writeClipboard(id, { text: 'from outside: ž 世 🎉' });
    await computer().clickMouse(id, at(200, 180));
    await computer().pressKey(id, { keys: ['Ctrl+v'] });
    await expect.poll(value).toBe('from outside: ž 世 🎉');
    await computer().pressKey(id, { keys: ['Ctrl+a', 'Delete'] });
    await computer().typeText(id, { text: 'copied' });
    await computer().pressKey(id, { keys: ['Ctrl+a', 'Ctrl+c'] });
    await expect.poll(async () => (await computer().readClipboard(id)).text).toBe('copied');
    await computer().pressKey(id, { keys: ['Ctrl+a', 'Delete'] });
  });

  test('takes screenshots of the whole screen or of a part', async () => {
    const whole = await picture(await computer().captureScreenshot(id));
    expect([whole.width, whole.height]).toEqual([1000, 700]);
    expect(whole.at(150, 80 + top)).toEqual([200, 0, 0]);
    expect(whole.at(600, 400 + top)).toEqual([10, 200, 30]);
    const region = { ...at(90, 40), width: 40, height: 30 };
    const part = await picture(await computer().captureScreenshot(id, { region }));
    expect([part.width, part.height]).toEqual([40, 30]);
    expect(part.at(5, 5)).toEqual([10, 200, 30]);
    expect(part.at(15, 15)).toEqual([200, 0, 0]);
    await page.evaluate('scrollTo(0, 500)');
    const scrolled = await picture(await computer().captureScreenshot(id, { region }));
    expect(scrolled.at(15, 15)).toEqual([200, 0, 0]);
    await page.evaluate('scrollTo(0, 0)');
  });

  test('does a batch in a row, and stops where it fails', async () => {
    await computer().batch(id, {
      actions: [
        { type: 'click_mouse', click_mouse: at(200, 180) },
        { type: 'type_text', type_text: { text: 'in ' } },
        { type: 'sleep', sleep: { duration_ms: 20 } },
        { type: 'type_text', type_text: { text: 'a row' } },
      ],
    });
    await expect.poll(value).toBe('in a row');
    const failed = await raw('batch', {
      actions: [
        { type: 'type_text', type_text: { text: '!' } },
        { type: 'move_mouse', move_mouse: { x: 5000, y: 1 } },
        { type: 'type_text', type_text: { text: 'never' } },
      ],
    });
    expect(failed).toMatchObject({ status: 400, body: { message: expect.stringContaining('actions.1') } });
    await expect.poll(value).toBe('in a row!');
    // Two at once do not get into each other's way.
    await computer().pressKey(id, { keys: ['Ctrl+a', 'Delete'] });
    await Promise.all(['aaaa', 'bbbb'].map((text) => computer().typeText(id, { text, delay: 5 })));
    await expect.poll(value).toMatch(/^(aaaabbbb|bbbbaaaa)$/);
    await computer().pressKey(id, { keys: ['Ctrl+a', 'Delete'] });
  });

  test('goes back and forward with the buttons for it', async () => {
    await page.goto(`${pages.url}next`);
    await computer().clickMouse(id, { ...at(500, 300), button: 'back' });
    await expect.poll(() => page.title()).toBe('desk');
    await computer().clickMouse(id, { ...at(500, 300), button: 'forward' });
    await expect.poll(() => page.title()).toBe('next');
    await page.goto(`${pages.url}desk`);
  });

  test('refuses invalid input', async () => {
    for (const [path, body] of [
      ['click_mouse', { x: 1000, y: 5 }],
      ['click_mouse', { x: -1, y: 5 }],
      ['click_mouse', { x: 1 }],
      ['click_mouse', { x: 1, y: 1, buton: 'left' }],
      ['click_mouse', { x: 1, y: 1, num_clicks: 1000 }],
      ['move_mouse', { x: 1, y: 700 }],
      ['move_mouse', { x: 1, y: 1, duration_ms: 10 }],
      ['drag_mouse', { path: [[1, 1]] }],
      [
        'drag_mouse',
        {
          path: [
            [1, 1],
            [1, 9999],
          ],
        },
      ],
      ['press_key', { keys: ['NoSuchKey'] }],
      ['press_key', { keys: ['Ctrl+Nothing'] }],
      ['press_key', { keys: [] }],
      ['press_key', { keys: ['a'], hold_keys: ['Hyperspace'] }],
      ['screenshot', { region: { x: 990, y: 0, width: 20, height: 5 } }],
      ['screenshot', { region: { x: 0, y: 0, width: 0, height: 5 } }],
      ['batch', { actions: [] }],
      ['batch', { actions: [{ type: 'sleep', sleep: { duration_ms: 40_000 } }] }],
      ['batch', { actions: [{ type: 'sleep', type_text: { text: 'x' } }] }],
      ['batch', { actions: Array.from({ length: 101 }, () => ({ type: 'sleep', sleep: { duration_ms: 0 } })) }],
      ['cursor', {}],
      ['type', { text: 'x', smoth: true }],
    ] as const) {
      const answer = await raw(path, body);
      expect([path, body, answer.status]).toEqual([path, body, 400]);
      expect(answer.body.message).toMatch(/\.$/);
    }
    expect(await service.call('POST', '/browsers/nobody/computer/screenshot', {})).toMatchObject({ status: 404 });
  });

  test.runIf(headless)('headless: names the actions that need a window', async () => {
    expect(await raw('press_key', { keys: ['Ctrl+t'] })).toMatchObject({ status: 400 });
    expect(await raw('cursor', { hidden: false })).toMatchObject({ status: 400 });
    expect(await computer().setCursorVisibility(id, { hidden: true })).toEqual({ ok: true });
  });

  test.runIf(!headless)('headful: uses the browser window around the page', async () => {
    const look = async (region: { x: number; y: number; width: number; height: number }) =>
      Buffer.from(await (await computer().captureScreenshot(id, { region })).arrayBuffer()).toString('base64');
    // The address bar. The page hears of the keys first: those that follow before it has let them pass are typed into the page.
    const bar = { x: 0, y: 0, width: 1000, height: top };
    const unused = await look(bar);
    await computer().pressKey(id, { keys: ['Ctrl+l'] });
    await expect.poll(() => look(bar)).not.toBe(unused);
    await computer().typeText(id, { text: `${pages.url}next\n` });
    await expect.poll(() => page.title(), { timeout: 60_000 }).toBe('next');
    await page.goto(`${pages.url}desk`);
    // A native popup of a select.
    const below = { ...at(150, 280), width: 60, height: 40 };
    const closed = await look(below);
    await computer().clickMouse(id, at(200, 260));
    await expect.poll(() => look(below), { timeout: 60_000 }).not.toBe(closed); // it is open
    await computer().pressKey(id, { keys: ['Down', 'Down', 'Return'] });
    await expect.poll(() => page.locator('#pick').inputValue(), { timeout: 60_000 }).toBe('three');
    // A new tab.
    const context = playwright.contexts()[0]!;
    const opened = context.waitForEvent('page');
    await computer().pressKey(id, { keys: ['Ctrl+t'] });
    await (await opened).close();
    await page.bringToFront();
    // The cursor.
    await computer().moveMouse(id, { ...at(600, 400), smooth: false });
    const around = { region: { ...at(595, 395), width: 30, height: 30 } };
    const green = async () => {
      const seen = await picture(await computer().captureScreenshot(id, around));
      return Array.from({ length: 900 }, (_, i) => seen.at(i % 30, Math.floor(i / 30)).join()).filter(
        (c) => c === '10,200,30',
      ).length;
    };
    await expect.poll(green).toBeLessThan(900);
    expect(await computer().setCursorVisibility(id, { hidden: true })).toEqual({ ok: true });
    await expect.poll(green).toBe(900);
  });

  // The last two: the window below may get the focus back a moment after another one is closed.
  test.runIf(!headless && hasFrames)('headful: the title bar of a popup has the title of its page', async () => {
    const opened = page.waitForEvent('popup');
    await page.evaluate(`void open('/next', '', 'popup,width=300,height=200')`);
    const popup = await opened;
    const titles = `xprop -root _NET_CLIENT_LIST | grep -o '0x[0-9a-f]*' | xargs -n 1 -I @ xprop -id @ _NET_WM_VISIBLE_NAME`;
    const visible = async () => {
      const { stdout_b64 } = await sdk.browsers.process.exec(id, { command: 'sh', args: ['-c', titles] });
      return Buffer.from(stdout_b64!, 'base64').toString();
    };
    await expect.poll(visible, { timeout: 60_000 }).toContain('= "next - Chromium"\n');
    await popup.close();
  });

  test('shows drivers all tabs of a window at once, those behind another one too', async () => {
    const context = await playwright.newContext();
    const tabs = [await context.newPage(), await context.newPage()];
    const sizes = [500, 50];
    await Promise.all(
      tabs.flatMap((tab, i) => [
        tab.setViewportSize({ width: sizes[i]!, height: sizes[i]! }),
        tab.goto(`${pages.url}desk`),
      ]),
    );
    await Promise.all(tabs.map((tab) => tab.focus('#text')));
    const taken = await Promise.all(tabs.map((tab) => tab.screenshot()));
    expect(taken.map((file) => file.readUInt32BE(16))).toEqual(sizes);
    await context.close();
  });
});

/** Reads a PNG with eight bits of red, green, blue (and alpha), as far as these have filters. */
async function picture(response: Response) {
  const file = Buffer.from(await response.arrayBuffer());
  expect(response.headers.get('content-type')).toBe('image/png');
  const [width, height, channels] = [file.readUInt32BE(16), file.readUInt32BE(20), file[25] === 6 ? 4 : 3];
  const parts: Buffer[] = [];
  for (let at = 8; at < file.length;) {
    const length = file.readUInt32BE(at);
    if (file.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(file.subarray(at + 8, at + 8 + length));
    at += 12 + length;
  }
  const data = inflateSync(Buffer.concat(parts));
  const stride = width * channels;
  const rows = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = data[y * (stride + 1)];
    for (let i = 0; i < stride; i++) {
      const left = i >= channels ? rows[y * stride + i - channels]! : 0;
      const above = y > 0 ? rows[(y - 1) * stride + i]! : 0;
      const corner = y > 0 && i >= channels ? rows[(y - 1) * stride + i - channels]! : 0;
      const p = left + above - corner;
      const [a, b, c] = [Math.abs(p - left), Math.abs(p - above), Math.abs(p - corner)];
      const paeth = a <= b && a <= c ? left : b <= c ? above : corner;
      const add = [0, left, above, (left + above) >> 1, paeth][filter!]!;
      rows[y * stride + i] = data[y * (stride + 1) + 1 + i]! + add;
    }
  }
  return {
    width,
    height,
    at: (x: number, y: number) => [...rows.subarray(y * stride + x * channels, y * stride + x * channels + 3)],
  };
}
