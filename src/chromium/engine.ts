import type { Server } from 'node:net';
import { join } from 'node:path';
import { memory, type Group } from '../lib/byte-budget.ts';
import { Overdue, within } from '../lib/deadline.ts';
import type { Log } from '../lib/log.ts';
import { anyText, integer, list, number, object } from '../lib/shape.ts';
import { started } from '../lib/started.ts';
import { activePage } from './pages/active-page.ts';
import { thumbnailOf } from './pages/small-picture.ts';
import { castsOf, type Casts } from './pages/cast.ts';
import { isAttached, isTargetList, isTargetNews, type TargetInfo } from './cdp/shapes.ts';
import { browserClipboard } from './pages/clipboard.ts';
import { computer, type Computer } from './computer/computer.ts';
import { displayHands } from './computer/display-hands.ts';
import { pageHands } from './computer/page-hands.ts';
import type { Destinations } from './egress/destinations.ts';
import { fitDisplay } from './display/display.ts';
import { startGateway, type Gateway, type OwnEndpoint } from './egress/gateway.ts';
import { guestOf, type Guest, type Stream } from './guest/guest.ts';
import { serveCdp } from './guest/cdp.ts';
import { devtoolsPort } from './guest/devtools.ts';
import type { Toolbox } from './guest/toolbox.ts';
import { hiddenPages, type HiddenPages } from './pages/hidden-pages.ts';
import { launch, removeLocks, type Browser, type LaunchOptions, type Viewport } from './browser/launch.ts';
import { endWithPipe } from './browser/pipe-end.ts';
import type { LocalClient } from './cdp/local-client.ts';
import { multiplex, type Mux } from './cdp/mux.ts';
import { openPipe } from './cdp/pipe.ts';
import type { Proxy } from './egress/proxy.ts';

export type { Viewport } from './browser/launch.ts';

/** A running browser with its gateway, its clients, and the service's own client. */
export interface Engine {
  readonly browser: Browser;
  readonly mux: Mux;
  readonly gateway: Gateway;
  /** Counts the memory that its buffered messages take. */
  readonly memory: Group;
  /** Processes, files and code inside the session, beside the browser. */
  readonly guest: Guest;
  /** The service's own pages, created on demand. */
  readonly hidden: HiddenPages;
  /** The pictures of tabs that viewers share. */
  readonly casts: Casts;
  /** Mouse, keyboard, screen and clipboard. */
  readonly computer: Computer;
  /** The service's own client, created on first use. */
  control(): LocalClient;
  /** Sets the page area of headless browsers, the window of headful ones, and the refresh rate. Applies to pages opened later too. */
  setViewport(viewport: Viewport): Promise<void>;
  /** Opens an address in the first page. Resolves when the navigation is sent to Chromium, not when the page has loaded. */
  open(url: string): Promise<void>;
  /** Loads the extension of this name in its directory's `extensions`; returns Chromium's id for it. */
  loadExtension(name: string): Promise<string>;
  unloadExtension(id: string): Promise<void>;
  /** The active page; undefined when there is none. Its texts are cut. */
  frontPage(): Promise<{ url: string; title: string } | undefined>;
  /** A small JPEG of that page; undefined when there is none, or it shows nothing for `ms`. */
  thumbnail(ms: number): Promise<Buffer | undefined>;
  /** What a later engine in the same directory resumes from: all cookies, and the addresses of the pages. */
  state(): Promise<BrowserState>;
  resume(state: BrowserState): Promise<void>;
  /** Ends the browser and its parts. Resolves when only the directory is left. */
  close(options?: { graceMs?: number }): Promise<void>;
}

export interface BrowserState {
  readonly cookies: readonly { readonly name: string; readonly value: string }[];
  readonly urls: readonly string[];
}

interface EngineOptions {
  launch: Omit<LaunchOptions, 'tools'>;
  /** Without it there is no guest. */
  toolbox?: Toolbox | undefined;
  /** Whether the guest may run where there is no sandbox. */
  allowUnsandboxed?: boolean;
  allow: Destinations;
  ownEndpoint?: OwnEndpoint | undefined;
  proxy?: Proxy | undefined;
  log: Log;
  /** The close code and reason that clients get when the browser has exited. */
  whenGone: () => { code: number; reason: string };
  /** How long the browser may take to answer the service. */
  answerMs?: number;
}

/** Deadline for setting a viewport on all pages. */
const VIEWPORT_MS = 40_000;
/** Most pages that are handled. A browser that reports more is overloaded or hostile. */
const MOST_PAGES = 200;
const MOST_SIZES = 10;
const DISPLAY_MS = 5000;
/** The limits of a page's address and title, which the page chooses. */
const MOST_URL = 2048;
const MOST_TITLE = 256;

const isWindow = object({
  windowId: integer(0, 2 ** 31),
  bounds: object({ width: number(0, 1e6), height: number(0, 1e6) }),
});
const isScreenList = object({ screenInfos: list(object({ id: anyText })) });
const isExtension = object({ id: anyText });
const isCookieList = object({ cookies: list(object({ name: anyText, value: anyText })) });

export async function startEngine(options: EngineOptions, signal: AbortSignal): Promise<Engine> {
  const { launch: how, toolbox } = options;
  await removeLocks(how.dir);
  const browser = await launch({ ...how, tools: toolbox?.dir }, signal);
  endWithPipe(browser);
  return engineOf(browser, options);
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}

/** Only in a sandbox the gateway listens at the addresses of lanes. */
function laneOpener(gateway: Gateway, port: number) {
  return (proxyServer: string, bypassList: string | undefined) => {
    const lane = gateway.openLane(proxyServer, bypassList);
    return lane && { proxyServer: `http://${lane.address}:${port}`, close: lane.close };
  };
}

type Opened = Pick<TargetInfo, 'targetId' | 'openerId'>;

/** The sizes of windows with tabs. `first` is undefined without a window manager. */
function windowSizes(first: Viewport | undefined) {
  const sizes = first ? [first] : [];
  return {
    given(size: Viewport) {
      sizes.push(size);
      if (sizes.length > MOST_SIZES) sizes.splice(1, 1);
    },
    /** Under a window manager, a window that a page opened keeps its size, unless it is one with tabs. */
    isPopup(openerId: string | undefined, { width, height }: { width: number; height: number }): boolean {
      const withTabs = sizes.some((size) => size.width === width && size.height === height);
      return first !== undefined && openerId !== undefined && !withTabs;
    },
  };
}

/**
 * Gives a page of a headless browser its size, and the screen that of the largest window, bars included: pages see both. `updateScreen` sets the
 * browser's own screen, so a client's emulation of another one still applies.
 */
function headlessSizes() {
  let of: Viewport | undefined;
  let screen = { width: 0, height: 0 };
  return async (client: LocalClient, viewport: Viewport, windowId: number, sessionId: string): Promise<void> => {
    if (of !== viewport) screen = { width: 0, height: 0 };
    of = viewport;
    const { width, height } = viewport;
    await client.send('Browser.setContentsSize', { windowId, width, height }, sessionId);
    const { bounds } = await client.ask(isWindow, 'Browser.getWindowForTarget', {}, sessionId);
    const { screenInfos } = await client.ask(isScreenList, 'Emulation.getScreenInfos', {}, sessionId);
    screen = { width: Math.max(screen.width, bounds.width), height: Math.max(screen.height, bounds.height) };
    const screenId = screenInfos[0]?.id;
    if (screenId !== undefined) await client.send('Emulation.updateScreen', { screenId, ...screen }, sessionId);
  };
}

/** Builds the engine of a running browser. */
export function engineOf(
  browser: Browser,
  { toolbox, allowUnsandboxed = false, log, whenGone, answerMs, ...ways }: Omit<EngineOptions, 'launch'>,
): Engine {
  const gateway = startGateway(browser.egress, { ...ways, log });
  const share = memory.group();
  const pipe = openPipe(browser.toBrowser, browser.fromBrowser, share);
  const { failure, server } = gateway.findings;
  const network = { proxy: { address: '127.0.0.1', port: portOf(browser.egress) }, failure, server };
  const openLane = laneOpener(gateway, network.proxy.port);
  // Without a sandbox the browser sees the machine's own directories.
  const { keepDownload, missingFile } = browser;
  const inside = browser.confined && { keepDownload, missingFile, openLane };
  const mux = multiplex(pipe, { whenGone, network, ...inside, ...(answerMs && { answerMs }) });
  const onCdp = (stream: Stream) => serveCdp(stream, mux, share);
  let own: LocalClient | undefined;
  const control = () => (own ??= mux.attachLocal());
  const onDevtools = devtoolsPort({ browser, mux, control, group: share });
  const guest = guestOf({ browser, toolbox, allowUnsandboxed, onCdp, onDevtools, log, group: share });
  void browser.exited.then(() => guest.close());
  const headful = browser.kind === 'headful';
  let wanted: Viewport | undefined;
  const [sizes, fitHeadless] = [windowSizes(browser.windowSize), headlessSizes()];
  const hidden = hiddenPages(mux);
  let seated: Computer | undefined;
  /** Created on first use: a session that is only driven over CDP does not need it. */
  function seat(): Computer {
    const clipboard = browserClipboard(hidden);
    const { connectDisplay } = browser;
    const hands = connectDisplay ? displayHands(connectDisplay, clipboard, share) : pageHands(activePage(mux));
    return computer(hands, clipboard);
  }

  const pages = async () => {
    const { targetInfos } = await control().ask(isTargetList, 'Target.getTargets');
    return targetInfos.filter(({ type }) => type === 'page').slice(0, MOST_PAGES);
  };

  /**
   * Uses the page's own session: Chromium 156's headless shell crashes on getWindowForTarget at the browser's level for a
   * closing page.
   */
  async function fit({ targetId, openerId }: Opened, viewport: Viewport): Promise<void> {
    const { width, height } = viewport;
    const { sessionId } = await control().ask(isAttached, 'Target.attachToTarget', { targetId, flatten: true });
    const { windowId, bounds } = await control().ask(isWindow, 'Browser.getWindowForTarget', {}, sessionId);
    // Chromium makes a window that is set to the display's size one pixel smaller: never set the same size twice.
    const fits = headful && ((bounds.width === width && bounds.height === height) || sizes.isPopup(openerId, bounds));
    if (!headful) await fitHeadless(control(), viewport, windowId, sessionId);
    else if (!fits) await control().send('Browser.setWindowBounds', { windowId, bounds: { width, height } }, sessionId);
    await control().send('Target.detachFromTarget', { sessionId });
  }

  let [fitting, hears] = [0, false];
  /** Needed because new windows have the size the browser was started with. */
  async function fitNewPages() {
    if (!hears) {
      hears = true;
      control().on('Target.targetCreated', isTargetNews, ({ targetInfo }) => {
        if (targetInfo.type !== 'page' || !wanted || fitting >= MOST_PAGES) return;
        fitting += 1;
        fit(targetInfo, wanted)
          .catch(() => {}) // the page was closed
          .finally(() => (fitting -= 1));
      });
    }
    await control().send('Target.setDiscoverTargets', { discover: true, filter: [{ type: 'page' }] });
  }

  async function setViewport(viewport: Viewport): Promise<void> {
    wanted = viewport;
    for (const page of await pages()) {
      await fit(page, viewport).catch((error: Error) => {
        if (error instanceof Overdue) throw error; // other errors: the page was closed
      });
    }
    sizes.given(viewport);
    if (browser.connectDisplay) {
      const late = AbortSignal.timeout(DISPLAY_MS);
      await within(DISPLAY_MS, 'The display', fitDisplay(browser.connectDisplay, viewport, late));
    }
    await browser.setRefreshRate(viewport.refreshRate);
    await fitNewPages();
  }

  async function open(url: string) {
    const [page] = await pages();
    if (!page) return;
    const { targetId } = page;
    const { sessionId } = await control().ask(isAttached, 'Target.attachToTarget', { targetId, flatten: true });
    // The answer comes when the navigation commits or fails, possibly much later. The service's client stays attached until then.
    const navigating = control().send('Page.navigate', { url }, sessionId, { patient: true });
    const detach = () => control().send('Target.detachFromTarget', { sessionId });
    navigating.then(detach, detach).catch(() => {});
  }

  return {
    browser,
    mux,
    gateway,
    memory: share,
    guest,
    hidden,
    casts: castsOf(mux, { refreshRate: browser.refreshRate, log }),
    get computer() {
      return (seated ??= seat());
    },
    control,

    setViewport: (viewport) => within(VIEWPORT_MS, 'The browser', setViewport(viewport)),

    open,

    async loadExtension(name) {
      const path = join(browser.extensions, name);
      return (await control().ask(isExtension, 'Extensions.loadUnpacked', { path })).id;
    },

    async unloadExtension(id) {
      await control().send('Extensions.uninstall', { id });
    },

    async frontPage() {
      const shown = (await pages()).filter(({ subtype }) => subtype === undefined);
      const page = shown.length > 1 ? await inFront(mux, pages) : shown[0];
      return page && { url: page.url.slice(0, MOST_URL), title: page.title.slice(0, MOST_TITLE) };
    },

    thumbnail: (ms) => thumbnailOf(mux, ms),

    async state() {
      const { cookies } = await control().ask(isCookieList, 'Storage.getCookies');
      return { cookies, urls: (await pages()).map(({ url }) => url) };
    },

    async resume({ cookies, urls: [first, ...others] }) {
      await control().send('Storage.setCookies', { cookies: [...cookies] });
      for (const url of others) await control().send('Target.createTarget', { url, background: true });
      if (first !== undefined && first !== 'about:blank') await open(first);
    },

    async close(options = {}) {
      const left = started(guest.close()); // ends the guest's processes; awaited below, after the browser's end
      await browser.stop(options);
      await left;
      mux.close(1001, 'The browser was stopped.');
      await gateway.close();
    },
  };
}

/** Of several pages, the one in front. */
async function inFront(mux: Mux, pages: () => Promise<TargetInfo[]>): Promise<TargetInfo | undefined> {
  const active = activePage(mux);
  try {
    const found = await active.find();
    return (await pages()).find(({ targetId }) => targetId === found?.targetId);
  } finally {
    active.close();
  }
}
