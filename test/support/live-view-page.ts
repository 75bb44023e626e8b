import { once } from 'node:events';
import type { BrowserContext, BrowserContextOptions, CDPSession, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { viewers, type PageUnderTest, type Watched } from './live-view.ts';

/** The page that viewers look at in the tests of the live view. */
export const html = `<title>Under test</title>
<body style="margin:0;height:3000px;background:#ffffff;font:16px sans-serif">
<input id="field" style="position:absolute;left:100px;top:100px;width:300px;height:30px">
<button id="button" style="position:absolute;left:100px;top:200px;width:120px;height:40px">Colour</button>`;
export const script = `
  scrollTo(0, 0);
  window.seen = [];
  button.onclick = () => (document.body.style.background = '#ff0000');
  for (const name of ['keydown', 'paste', 'copy', 'mousedown', 'click', 'wheel'])
    addEventListener(name, (event) => seen.push(name + (event.key ? ' ' + event.key : '')), true);`;

export const FIELD = { x: 150, y: 115 };
export const BUTTON = { x: 150, y: 220 };
/** Where the page shows nothing but its background. */
export const GROUND = { x: 600, y: 400 };
export const READ_ONLY = '&readOnly=true';

/** Polls for a minute: no test measures time. */
export function until<T>(what: () => T) {
  return expect.poll(what, { timeout: 60_000 });
}

const HELD = {
  Alt: { bit: 1, key: 'Alt', code: 'AltLeft', windowsVirtualKeyCode: 18 },
  Control: { bit: 2, key: 'Control', code: 'ControlLeft', windowsVirtualKeyCode: 17 },
};
/** Keys that are no letters. */
const KEY_CODES: Record<string, number> = { F5: 116, ArrowLeft: 37 };

/** Of the session's window and of its page: see `watched`. */
const WIDTH = 1000;

export interface View {
  page: Page;
  cdp: CDPSession;
  /** Where in the view a place of the session's page is. */
  at(place: { x: number; y: number }): Promise<{ x: number; y: number }>;
  click(place: { x: number; y: number }, button?: 'left' | 'right'): Promise<void>;
  /** Presses a letter or another key while one more is held. Not by the viewer's own browser, which may take it for itself. */
  press(key: string, held?: keyof typeof HELD): Promise<void>;
  /** Red, green and blue of the picture, at a place of the session's page. */
  colour(place: { x: number; y: number }): Promise<number[]>;
  /** The same, at a place of the picture. */
  pixel(place: { x: number; y: number }): Promise<number[]>;
  state(): Promise<string | null>;
  /** The name of the tab that it shows. */
  shown(): Promise<string>;
}

export type Open = ReturnType<typeof viewing>['open'];

/** A browser for the views of a test file. Each view has a context of its own, which is closed after its test. */
export function viewing() {
  let looking: Awaited<ReturnType<typeof viewers>>;
  const contexts: BrowserContext[] = [];
  async function newContext(options: BrowserContextOptions = {}) {
    const context = await looking.browser.newContext(options);
    contexts.push(context);
    return context;
  }
  async function close() {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
  }
  beforeAll(async () => {
    looking = await viewers();
  });
  afterAll(() => looking?.stop());
  afterEach(close);
  return {
    newContext,
    async open(session: Watched, under: PageUnderTest, query = '', device: BrowserContextOptions = {}): Promise<View> {
      const context = await newContext({ viewport: { width: 1200, height: 850 }, ...device });
      return viewIn(context, session, under, query);
    },
    close,
  };
}

async function viewIn(context: BrowserContext, session: Watched, under: PageUnderTest, query: string): Promise<View> {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const page = await context.newPage();
  await page.goto(session.url + query);
  const state = () => page.locator('html').getAttribute('data-state');
  await until(state).toBe('connected');
  const canvas = page.locator('#stage canvas:visible');

  /** In pixels of the picture: the whole window, where there is one. */
  async function inPicture({ x, y }: { x: number; y: number }) {
    if (session.browser.kind !== 'headful') return { x, y };
    const [left, top] = (await under.evaluate('[outerWidth - innerWidth, outerHeight - innerHeight]')) as number[];
    return { x: x + left!, y: y + top! };
  }
  const at: View['at'] = async (place) => {
    const { x, y } = await inPicture(place);
    const box = (await canvas.boundingBox())!;
    const scale = box.width / WIDTH; // a small picture has fewer pixels than the page
    return { x: box.x + x * scale, y: box.y + y * scale };
  };
  const pixel: View['pixel'] = async ({ x, y }) => {
    const shown = (await page.locator('#screen').isVisible()) ? '#screen' : '#display canvas';
    // On a busy machine pictures come late, and may therefore have fewer pixels than the page.
    const read = `(() => {
      const canvas = document.querySelector('${shown}');
      const scale = canvas.width / ${WIDTH};
      return [...canvas.getContext('2d').getImageData(${x} * scale, ${y} * scale, 1, 1).data];
    })()`;
    return ((await page.evaluate(read)) as number[]).slice(0, 3);
  };
  const cdp = await context.newCDPSession(page);
  return {
    page,
    cdp,
    at,
    state,
    shown: () => page.locator('.tab[data-shown] .name').innerText(),
    async click(place, button = 'left') {
      const { x, y } = await at(place);
      await page.mouse.click(x, y, { button });
    },
    async press(key, held) {
      const { bit: modifiers = 0, ...holding } = held ? HELD[held] : {};
      const send = (type: 'rawKeyDown' | 'keyUp', event: object) =>
        cdp.send('Input.dispatchKeyEvent', { type, modifiers, ...event });
      const code = key.length === 1 ? `Key${key.toUpperCase()}` : key;
      const pressed = { key, code, windowsVirtualKeyCode: KEY_CODES[key] ?? key.toUpperCase().charCodeAt(0) };
      if (held) await send('rawKeyDown', holding);
      await send('rawKeyDown', pressed);
      await send('keyUp', pressed);
      if (held) await send('keyUp', { ...holding, modifiers: 0 });
    },
    colour: async (place) => pixel(await inPicture(place)),
    pixel,
  };
}

export function isRed(colour: number[]): boolean {
  return colour[0]! > 200 && colour[1]! < 60 && colour[2]! < 60;
}

/**
 * A viewer with nothing between the test and the wire. The service speaks first, and what it says may come with its answer to the
 * handshake: a test that waits for that or for the end of the connection registers in `listen`, before there is one.
 */
export async function raw(
  session: Watched,
  query = '',
  listen: (socket: WebSocket) => void = () => {},
): Promise<WebSocket> {
  const socket = new WebSocket(session.socketUrl + query, { perMessageDeflate: false });
  listen(socket);
  await once(socket, 'open');
  return socket;
}

/** The code with which a connection is closed. A reset connection counts as closed. */
export function closeCode(socket: WebSocket): Promise<number> {
  return new Promise((resolve) => socket.on('error', () => {}).on('close', resolve));
}

/** Asks for a session's files as the page of its live view does, at the websocket behind the address. Returns what kinds of answers came. */
export async function askForFiles(address: string, name: string): Promise<() => string[]> {
  const { host, search } = new URL(address);
  const socket = new WebSocket(`ws://${host}/browser/live/socket${search}`);
  onTestFinished(() => socket.close());
  const kinds: string[] = [];
  socket.on('message', (data: Buffer, binary) => {
    if (!binary) kinds.push((JSON.parse(String(data)) as { type: string }).type);
  });
  await once(socket, 'open');
  for (const question of [
    { type: 'offerFiles', chooser: 1000, x: 0, y: 0, files: [{ name: 'x', size: 1 }] },
    { type: 'downloads' },
    { type: 'save', name },
  ])
    socket.send(JSON.stringify(question));
  return () => kinds;
}
