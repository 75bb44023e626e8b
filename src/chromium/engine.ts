import { join } from 'node:path';
import { memory, type Group } from '../lib/byte-budget.ts';
import { Overdue, within } from '../lib/deadline.ts';
import type { Log } from '../lib/log.ts';
import { anyText, integer, list, number, object } from '../lib/shape.ts';
import { activePage } from './pages/active-page.ts';
import { isAttached, isTargetList, isTargetNews } from './cdp/shapes.ts';
import { browserClipboard } from './pages/clipboard.ts';
import { computer, type Computer } from './computer/computer.ts';
import { displayHands } from './computer/display-hands.ts';
import { pageHands } from './computer/page-hands.ts';
import type { Destinations } from './egress/destinations.ts';
import { fitDisplay } from './display/display.ts';
import { toDownloads } from './cdp/downloads.ts';
import { startGateway, type Gateway } from './egress/gateway.ts';
import { guestOf, type Guest, type Stream } from './guest/guest.ts';
import { serveCdp } from './guest/cdp.ts';
import type { Toolbox } from './guest/toolbox.ts';
import { hiddenPages, type HiddenPages } from './pages/hidden-pages.ts';
import { launch, type Browser, type LaunchOptions, type Viewport } from './browser/launch.ts';
import type { LocalClient } from './cdp/local-client.ts';
import { multiplex, type Mux } from './cdp/mux.ts';
import { removeFiles } from './sandbox/outside.ts';
import { openPipe } from './cdp/pipe.ts';
import type { Proxy } from './egress/proxy.ts';

export type { Viewport } from './browser/launch.ts';

/** A running browser with everything that belongs to it: its gateway, its clients, and the service's own client. */
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

export interface EngineOptions {
  launch: Omit<LaunchOptions, 'tools'>;
  /** Without it there is no guest. */
  toolbox?: Toolbox | undefined;
  /** Whether the guest may run where there is no sandbox. */
  allowUnsandboxed?: boolean;
  allow: Destinations;
  proxy?: Proxy | undefined;
  log: Log;
  /** The close code and reason that clients get when the browser is gone. */
  whenGone: () => { code: number; reason: string };
  /** How long the browser may take to answer the service. */
  answerMs?: number;
}

/** Deadline for setting a viewport on all pages. */
const VIEWPORT_MS = 40_000;
/** Most pages that are handled. A browser that reports more is overloaded or hostile. */
const MOST_PAGES = 200;
const DISPLAY_MS = 5000;

const isWindow = object({
  windowId: integer(0, 2 ** 31),
  bounds: object({ width: number(0, 1e6), height: number(0, 1e6) }),
});
const isExtension = object({ id: anyText });
const isCookieList = object({ cookies: list(object({ name: anyText, value: anyText })) });

export async function startEngine(options: EngineOptions, signal: AbortSignal): Promise<Engine> {
  const { launch: how, toolbox } = options;
  // A killed browser leaves a lock with its pid, which another process may have by now: the next browser would not start.
  await removeFiles(how.dir, ['home', 'user-data'], ['SingletonLock', 'SingletonSocket', 'SingletonCookie']);
  return engineOf(await launch({ ...how, tools: toolbox?.dir }, signal), options);
}

/** Builds the engine of a running browser. */
export function engineOf(
  browser: Browser,
  { toolbox, allowUnsandboxed = false, allow, proxy, log, whenGone, answerMs }: Omit<EngineOptions, 'launch'>,
): Engine {
  const gateway = startGateway(browser.egress, { allow, proxy, log });
  const share = memory.group();
  const pipe = openPipe(browser.toBrowser, browser.fromBrowser, share);
  const mux = multiplex(pipe, { whenGone, onDownloadsLeft: keepDownloads, ...(answerMs && { answerMs }) });
  const onCdp = (stream: Stream) => serveCdp(stream, mux, share);
  const guest = guestOf({ browser, toolbox, allowUnsandboxed, onCdp, log });
  void browser.exited.then(() => guest.close());
  const headful = browser.kind === 'headful';
  let own: LocalClient | undefined;
  let wanted: Viewport | undefined;

  const hidden = hiddenPages(mux);
  let seated: Computer | undefined;
  /** Created on first use: a session that is only driven over CDP does not need it. */
  function seat(): Computer {
    const clipboard = browserClipboard(hidden);
    const { connectDisplay } = browser;
    const hands = connectDisplay ? displayHands(connectDisplay, clipboard) : pageHands(activePage(mux));
    return computer(hands, clipboard);
  }

  const control = () => (own ??= mux.attachLocal());
  // Not awaited: clients' commands reach Chromium after this one.
  function keepDownloads() {
    if (browser.confined)
      control()
        .send('Browser.setDownloadBehavior', toDownloads)
        .catch(() => {});
  }
  keepDownloads();
  const pages = async () => {
    const { targetInfos } = await control().ask(isTargetList, 'Target.getTargets');
    return targetInfos.filter(({ type }) => type === 'page').slice(0, MOST_PAGES);
  };

  /**
   * Uses the page's own session: Chromium 156's headless shell crashes on getWindowForTarget at the browser's level for a
   * closing page.
   */
  async function fit(targetId: string, { width, height }: Viewport): Promise<void> {
    const { sessionId } = await control().ask(isAttached, 'Target.attachToTarget', { targetId, flatten: true });
    const { windowId, bounds } = await control().ask(isWindow, 'Browser.getWindowForTarget', {}, sessionId);
    // Chromium makes a window that is set to the display's size one pixel smaller: never set the same size twice.
    const fits = headful && bounds.width === width && bounds.height === height;
    if (!headful) await control().send('Browser.setContentsSize', { windowId, width, height }, sessionId);
    else if (!fits) await control().send('Browser.setWindowBounds', { windowId, bounds: { width, height } }, sessionId);
    await control().send('Target.detachFromTarget', { sessionId });
  }

  let fitting = 0;
  let hears = false;
  /** Needed because new windows have the size the browser was started with. */
  async function fitNewPages() {
    if (!hears) {
      hears = true;
      control().on('Target.targetCreated', isTargetNews, ({ targetInfo: { type, targetId } }) => {
        if (type !== 'page' || !wanted || fitting >= MOST_PAGES) return;
        fitting += 1;
        fit(targetId, wanted)
          .catch(() => {}) // the page was closed meanwhile
          .finally(() => (fitting -= 1));
      });
    }
    await control().send('Target.setDiscoverTargets', { discover: true, filter: [{ type: 'page' }] });
  }

  async function setViewport(viewport: Viewport): Promise<void> {
    wanted = viewport;
    for (const { targetId } of await pages()) {
      await fit(targetId, viewport).catch((error: Error) => {
        if (error instanceof Overdue) throw error; // other errors: the page was closed meanwhile
      });
    }
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
      const left = guest.close(); // ends the guest's processes; awaited below, after the browser's end
      await browser.stop(options);
      await left;
      mux.close(1001, 'The browser was stopped.');
      await gateway.close();
    },
  };
}
