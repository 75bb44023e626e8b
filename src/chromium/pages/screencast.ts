import { Overdue } from '../../lib/deadline.ts';
import type { Log } from '../../lib/log.ts';
import type { WebSocketReceiver, WebSocketSink } from '../../lib/ws-sink.ts';
import { anyText, integer, list, object, optional, record, type Check } from '../../lib/shape.ts';
import {
  isAttached,
  isCreated,
  isScreencastFrame,
  isTargetGone,
  isTargetList,
  isTargetNews,
  type ScreencastFrame,
  type TargetInfo,
} from '../cdp/shapes.ts';
import type { Mux } from '../cdp/mux.ts';
import { copyFrom, pasteInto } from './page-clipboard.ts';
import { addressOf, onlyWatches, readViewerMessage, type InputMessage, type ViewerMessage } from './viewer-messages.ts';

/**
 * The live view of a headless session: one viewer, one client of the multiplexer. Pictures go out as binary messages, each
 * a JPEG; everything else is JSON, described by `ViewMessage` here and `ViewerMessage` on the way in.
 *
 * A picture is acknowledged to Chromium when the viewer has drawn it, so a slow viewer gets fewer pictures and never older
 * ones, and at most two of them are in memory.
 */
export type ViewMessage =
  | { type: 'hello'; readOnly: boolean }
  /** `shown` is the tab the pictures are of, or null when there is none. */
  | { type: 'tabs'; tabs: readonly TabInfo[]; shown: string | null }
  /** The page's size in CSS pixels, which is what mouse coordinates are in. Comes before the first picture of that size. */
  | { type: 'viewport'; width: number; height: number }
  | { type: 'page'; loading: boolean; canGoBack: boolean; canGoForward: boolean }
  | { type: 'dialog'; kind: string; message: string; defaultText: string }
  | { type: 'dialogClosed' }
  | { type: 'crashed' }
  | { type: 'clipboard'; text: string }
  /** Something to tell the person, in a sentence. */
  | { type: 'notice'; text: string };

export interface TabInfo {
  readonly id: string;
  readonly title: string;
  readonly url: string;
}

interface Tab extends TabInfo {
  readonly contextId: string | undefined;
}

/** The tab a viewer looks at. Whoever waited for something compares it with the present one afterwards. */
interface Shown {
  readonly id: string;
  sessionId: string | undefined;
  /** Frames that the viewer has not drawn yet, by Chromium's number. */
  undrawn: number[];
  /** Since there were as many of them as there may be: Chromium has thrown frames away, perhaps the last one. */
  missed: boolean;
  /** Input that the page has not answered. */
  unanswered: number;
  /** What has to be over before the page gets the next key: see `waits`. */
  presses: number;
  clipboardWork: number;
  /** Input that waits for its turn. */
  readonly backlog: InputMessage[];
  viewport: string;
  page: { loading: boolean; canGoBack: boolean; canGoForward: boolean };
}

const isOfFrame = object({ frameId: anyText });
const isDialog = object({ type: anyText, message: anyText, defaultPrompt: optional(anyText) });
const isHistory = object({ currentIndex: integer(0, 1e6), entries: list(object({ id: integer(0, 2 ** 31) })) });

const JPEG_QUALITY = 80;
const MAX_UNDRAWN = 2;
/** A restart forgets those before it, so some more may come. */
const MOST_UNDRAWN = 20;
/** A viewer that acknowledges what it does not read. */
const MAX_UNREAD = 16 * 1024 * 1024;
const MAX_MESSAGE = 1024 * 1024 + 1024;
/** Several times what a fast mouse and a fast typist produce together. */
const MAX_MESSAGES_A_SECOND = 1000;
/** A page that does not answer gets no more movements, and then no more of anything, until it does. */
const MAX_UNANSWERED_MOVES = 10;
const MAX_UNANSWERED = 300;
const MAX_TABS = 100;
/** News of tabs go out together. */
const TABS_EVERY_MS = 50;
/** Chromium tells of tabs that come, go and navigate, but not of a title that changes. */
const TITLES_EVERY_MS = 1000;
/** After which a picture that does not come by itself is asked for. */
const QUIET_MS = 150;
/** For the page to answer about its clipboard. */
const CLIPBOARD_MS = 3_000;

export function attachScreencast(
  mux: Mux,
  sink: WebSocketSink,
  { readOnly, log }: { readOnly: boolean; log: Log },
): WebSocketReceiver {
  const client = mux.attachLocal();
  const tabs = new Map<string, Tab>();
  const timers = new Set<NodeJS.Timeout>();
  let shown: Shown | undefined;
  /** Whether somebody picked the tab, rather than we. */
  let picked = false;
  let size = { width: 1920, height: 1080 };
  let tabsChanged = false;
  let over = false;
  const rate = { second: 0, count: 0 };

  client.on('Target.targetCreated', isTargetNews, ({ targetInfo }) => tabNews(targetInfo, true));
  client.on('Target.targetInfoChanged', isTargetNews, ({ targetInfo }) => tabNews(targetInfo, false));
  client.on('Target.targetDestroyed', isTargetGone, ({ targetId }) => tabGone(targetId));
  client.on(
    'Target.targetCrashed',
    isTargetGone,
    ({ targetId }) => targetId === shown?.id && tell({ type: 'crashed' }),
  );
  onShown('Page.screencastFrame', isScreencastFrame, frame);
  onShown('Page.frameStartedLoading', isOfFrame, (tab, { frameId }) => {
    return frameId === tab.id && pageNews(tab, { loading: true });
  });
  onShown('Page.frameStoppedLoading', isOfFrame, (tab, { frameId }) => {
    return frameId === tab.id && pageNews(tab, { loading: false });
  });
  onShown('Page.navigatedWithinDocument', record, (tab) => pageNews(tab, {}));
  onShown('Page.javascriptDialogOpening', isDialog, (_tab, { type, message, defaultPrompt }) =>
    tell({
      type: 'dialog',
      kind: cut(type, 100),
      message: cut(message, 5000),
      defaultText: cut(defaultPrompt ?? '', 5000),
    }),
  );
  onShown('Page.javascriptDialogClosed', record, () => tell({ type: 'dialogClosed' }));
  void client.closed.then((reason) => end(client.closeCode ?? 1011, reason));

  tell({ type: 'hello', readOnly });
  void discover();

  return {
    flush() {},
    receive(data) {
      if (over) return;
      if (data.length > MAX_MESSAGE) return end(1009, 'That message is too large.');
      if (tooMany()) return end(1008, 'Too many messages in a second.');
      const message = readViewerMessage(data);
      if (!message) return log.debug({ bytes: data.length }, 'screencast.message_ignored');
      if (readOnly && !onlyWatches(message)) return;
      handle(message);
    },

    closed() {
      over = true;
      for (const timer of timers) clearTimeout(timer);
      client.close();
    },
  };

  // ---- tabs

  async function discover(): Promise<void> {
    try {
      await client.send('Target.setDiscoverTargets', { discover: true, filter: [{ type: 'page' }] });
    } catch (error) {
      return fail(error);
    }
    if (!shown) showBest(); // Chromium has told of the tabs there are before it answered
    tabsSoon();
    titles();
  }

  function tabNews({ targetId, type, subtype, openerId, browserContextId, ...info }: TargetInfo, isNew: boolean): void {
    if (type !== 'page' || subtype !== undefined || (!tabs.has(targetId) && tabs.size >= MAX_TABS)) return;
    const tab = { id: targetId, title: cut(info.title, 200), url: cut(info.url, 2000), contextId: browserContextId };
    tabs.set(targetId, tab);
    tabsSoon();
    // A page that the shown one opened comes to the front, as it would in a window. So does the first page worth seeing.
    const opened = isNew && openerId !== undefined && openerId === shown?.id;
    const worthMore = !picked && isBlank(shown && tabs.get(shown.id)) && !isBlank(tab);
    if (shown && shown.id !== targetId && (opened || worthMore)) show(targetId);
  }

  function tabGone(id: string): void {
    if (!tabs.delete(id)) return;
    tabsSoon();
    if (shown?.id !== id) return;
    shown = undefined;
    picked = false;
    showBest();
  }

  /** The last tab with something in it: of several, that is most likely where work goes on. */
  function showBest(): void {
    const all = [...tabs.values()];
    const best = all.findLast((tab) => !isBlank(tab)) ?? all.at(-1);
    if (best) show(best.id);
  }

  function tabsSoon(): void {
    if (tabsChanged) return;
    tabsChanged = true;
    later(TABS_EVERY_MS, function tellTabs() {
      if (sink.bufferedAmount > MAX_MESSAGE) return later(TABS_EVERY_MS, tellTabs); // the viewer is behind: one list will do
      tabsChanged = false;
      const list = [...tabs.values()].map(({ id, title, url }) => ({ id, title, url }));
      tell({ type: 'tabs', tabs: list, shown: shown?.id ?? null });
    });
  }

  function titles(): void {
    later(TITLES_EVERY_MS, async () => {
      const asked = client.ask(isTargetList, 'Target.getTargets', { filter: [{ type: 'page' }] });
      const answer = await asked.catch(() => undefined);
      for (const info of answer?.targetInfos ?? []) {
        const known = tabs.get(info.targetId);
        if (known && known.title !== cut(info.title, 200)) tabNews(info, false);
      }
      if (!over) titles();
    });
  }

  function show(id: string): void {
    const previous = shown;
    const page = { loading: false, canGoBack: false, canGoForward: false };
    const pictures = { undrawn: [], missed: false, viewport: '' };
    const input = { unanswered: 0, presses: 0, clipboardWork: 0, backlog: [] };
    const tab: Shown = { id, sessionId: undefined, page, ...pictures, ...input };
    shown = tab;
    tabsSoon();
    if (previous?.sessionId !== undefined) detach(previous.sessionId);
    client
      .ask(isAttached, 'Target.attachToTarget', { targetId: id, flatten: true })
      .then(({ sessionId }) => {
        if (shown !== tab) return detach(sessionId);
        tab.sessionId = sessionId;
        // A dialog needs somebody who answers, and whoever enables Page says they will. Watching does not take it.
        if (!readOnly) void on(tab, 'Page.enable').then(() => pageNews(tab, {}));
        return startPictures(tab);
      })
      .catch((error: unknown) => log.debug({ error, tab: id }, 'screencast.tab_not_shown')); // it went away; so we hear
  }

  function detach(sessionId: string): void {
    client.send('Target.detachFromTarget', { sessionId }).catch(() => {}); // or it is gone already
  }

  // ---- pictures

  async function startPictures(tab: Shown): Promise<void> {
    const bounds = { maxWidth: size.width, maxHeight: size.height };
    const picture = { format: 'jpeg', quality: JPEG_QUALITY, everyNthFrame: 1, maxFramesInFlight: MAX_UNDRAWN };
    await on(tab, 'Page.startScreencast', { ...picture, ...bounds }); // its first frame comes whether the page changes or not
  }

  async function restartPictures(tab: Shown): Promise<void> {
    tab.undrawn = [];
    tab.missed = false;
    await on(tab, 'Page.stopScreencast');
    if (shown === tab) await startPictures(tab);
  }

  function frame(tab: Shown, { data, metadata, sessionId: number }: ScreencastFrame): void {
    if (sink.bufferedAmount > MAX_UNREAD) return end(1008, 'Dropped: this viewer does not read what it is sent.');
    const { deviceWidth: width, deviceHeight: height } = metadata;
    if (tab.viewport !== `${width}x${height}`) {
      tab.viewport = `${width}x${height}`;
      tell({ type: 'viewport', width, height });
    }
    if (tab.undrawn.length >= MOST_UNDRAWN) return end(1011, 'The browser sends more pictures than it was asked for.');
    tab.undrawn.push(number);
    if (tab.undrawn.length >= MAX_UNDRAWN) tab.missed = true;
    sink.sendBinary([Buffer.from(data, 'base64')]);
  }

  /** The viewer drew a frame. Had it more of them than it could draw, the newest picture may be one it never got. */
  function drawn(): void {
    const tab = shown;
    const number = tab?.undrawn.shift();
    if (!tab || number === undefined) return;
    void on(tab, 'Page.screencastFrameAck', { sessionId: number });
    if (!tab.missed || tab.undrawn.length > 0) return;
    tab.missed = false;
    later(QUIET_MS, () => {
      if (shown === tab && tab.undrawn.length === 0 && !tab.missed) void restartPictures(tab);
    });
  }

  // ---- what the viewer asks for

  function handle(message: ViewerMessage): void {
    switch (message.type) {
      case 'ack':
        return drawn();
      case 'size':
        return resize(message);
      case 'selectTab':
        return select(message.id);
      case 'newTab': {
        const context = tabs.get(shown?.id ?? '')?.contextId;
        return void newTab(context);
      }
      case 'closeTab':
        if (tabs.has(message.id)) client.send('Target.closeTarget', { targetId: message.id }).catch(() => {});
        return;
      case 'navigate':
      case 'history':
      case 'answer':
        if (shown?.sessionId !== undefined) steer(shown, message);
        return;
      case 'mouse':
      case 'wheel':
      case 'key':
      case 'text':
      case 'compose':
      case 'paste':
      case 'copy':
        if (shown?.sessionId !== undefined) inOrder(shown, message);
    }
  }

  function steer(tab: Shown, message: ViewerMessage & { type: 'navigate' | 'history' | 'answer' }): void {
    switch (message.type) {
      case 'navigate': {
        const url = addressOf(message.address);
        if (url === undefined) return tell({ type: 'notice', text: 'That is not an address of the web.' });
        return void on(tab, 'Page.navigate', { url });
      }
      case 'history':
        return void travel(tab, message.to);
      case 'answer':
        return void on(tab, 'Page.handleJavaScriptDialog', { accept: message.accept, promptText: message.text });
    }
  }

  function inOrder(tab: Shown, message: InputMessage): void {
    if (tab.backlog.length === 0 && !waits(tab, message)) input(tab, message);
    else if (tab.backlog.length < MAX_UNANSWERED) tab.backlog.push(message);
  }

  /**
   * Chromium looks up asynchronously whom a mouse button is for, so a key that follows at once would reach whoever had the
   * focus before. And a paste must not be overtaken by what is typed after it.
   */
  function waits(tab: Shown, { type }: InputMessage): boolean {
    return tab.clipboardWork > 0 || (tab.presses > 0 && type !== 'mouse' && type !== 'wheel');
  }

  function workOff(tab: Shown): void {
    if (shown !== tab || over) return;
    for (let next = tab.backlog[0]; next && !waits(tab, next); next = tab.backlog[0]) {
      tab.backlog.shift();
      input(tab, next);
    }
  }

  function input(tab: Shown, message: InputMessage): void {
    switch (message.type) {
      case 'mouse': {
        const type = { move: 'mouseMoved', down: 'mousePressed', up: 'mouseReleased' }[message.event];
        const { x, y, button, buttons, clickCount, modifiers } = message;
        const event = { type, x, y, button, buttons, clickCount, modifiers };
        if (message.event === 'move')
          return void dispatch(tab, 'Input.dispatchMouseEvent', event, MAX_UNANSWERED_MOVES);
        return void press(tab, event);
      }
      case 'wheel': {
        const { x, y, deltaX, deltaY, modifiers } = message;
        const wheel = { type: 'mouseWheel', x, y, deltaX, deltaY, modifiers };
        return void dispatch(tab, 'Input.dispatchMouseEvent', wheel, MAX_UNANSWERED_MOVES);
      }
      case 'key':
        return void dispatch(tab, 'Input.dispatchKeyEvent', keyEvent(message));
      case 'text':
        return void dispatch(tab, 'Input.insertText', { text: message.text });
      case 'compose': {
        const end = message.text.length;
        const composition = { text: message.text, selectionStart: end, selectionEnd: end };
        return void dispatch(tab, 'Input.imeSetComposition', composition);
      }
      case 'paste':
        return void withClipboard(tab, (sessionId) => pasteInto(client, sessionId, tab.id, message.text));
      case 'copy':
        return void withClipboard(tab, async (sessionId) => {
          const text = await copyFrom(client, sessionId, tab.id, message.cut);
          if (text !== '') tell({ type: 'clipboard', text });
        });
    }
  }

  async function press(tab: Shown, event: object): Promise<void> {
    tab.presses += 1;
    await dispatch(tab, 'Input.dispatchMouseEvent', event);
    tab.presses -= 1;
    workOff(tab);
  }

  async function dispatch(tab: Shown, method: string, params: object, most = MAX_UNANSWERED): Promise<void> {
    if (tab.unanswered >= most) return;
    tab.unanswered += 1;
    await on(tab, method, params);
    tab.unanswered -= 1;
  }

  async function withClipboard(tab: Shown, work: (sessionId: string) => Promise<void>): Promise<void> {
    if (tab.sessionId === undefined) return;
    tab.clipboardWork += 1;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = later(CLIPBOARD_MS, resolve)));
    const working = work(tab.sessionId).catch((error: unknown) => log.debug({ error }, 'screencast.clipboard_failed'));
    await Promise.race([working, late]);
    if (timer) forget(timer);
    tab.clipboardWork -= 1;
    workOff(tab);
  }

  function resize({ width, height }: { width: number; height: number }): void {
    const next = { width: clamp(width, 200, 3840), height: clamp(height, 150, 2160) };
    if (next.width === size.width && next.height === size.height) return;
    size = next;
    if (shown?.sessionId !== undefined) void restartPictures(shown);
  }

  function select(id: string): void {
    if (!tabs.has(id)) return;
    picked = true;
    // In a full browser only the tab in front is painted. Who only watches does not change which that is.
    if (!readOnly) client.send('Target.activateTarget', { targetId: id }).catch(() => {});
    if (shown?.id !== id) show(id);
  }

  async function newTab(browserContextId: string | undefined): Promise<void> {
    const where = { url: 'about:blank', ...(browserContextId !== undefined && { browserContextId }) };
    // The default context has an id too, but one that a tab cannot always be opened with.
    const opening = client.ask(isCreated, 'Target.createTarget', where);
    const made = await opening.catch(() =>
      client.ask(isCreated, 'Target.createTarget', { url: 'about:blank' }).catch(() => undefined),
    );
    if (made && !over) select(made.targetId);
  }

  async function travel(tab: Shown, to: 'back' | 'forward' | 'reload' | 'stop'): Promise<void> {
    if (to === 'reload') return void (await on(tab, 'Page.reload'));
    if (to === 'stop') return void (await on(tab, 'Page.stopLoading'));
    const history = await navigationHistory(tab);
    const entry = history?.entries[history.currentIndex + (to === 'back' ? -1 : 1)];
    if (entry) await on(tab, 'Page.navigateToHistoryEntry', { entryId: entry.id });
  }

  async function pageNews(tab: Shown, news: { loading?: boolean }): Promise<void> {
    Object.assign(tab.page, news);
    const history = await navigationHistory(tab);
    if (!history || shown !== tab || over) return;
    tab.page.canGoBack = history.currentIndex > 0;
    tab.page.canGoForward = history.currentIndex < history.entries.length - 1;
    if (sink.bufferedAmount < MAX_MESSAGE) tell({ type: 'page', ...tab.page });
  }

  function navigationHistory(tab: Shown) {
    return asked(tab, isHistory, 'Page.getNavigationHistory');
  }

  // ---- tools

  /** Listens to an event of the tab that is shown; those of others come too late to matter. */
  function onShown<P>(event: string, is: Check<P>, listener: (tab: Shown, params: P) => unknown): void {
    client.on(event, is, (params, sessionId) =>
      !over && shown && shown.sessionId === sessionId ? listener(shown, params) : undefined,
    );
  }

  /** A command to a tab, which may be gone, or be going, or say no: then there is no answer. */
  function on(tab: Shown, method: string, params: object = {}) {
    return asked(tab, record, method, params);
  }

  async function asked<R>(tab: Shown, is: Check<R>, method: string, params: object = {}): Promise<R | undefined> {
    try {
      return await client.ask(is, method, params, tab.sessionId);
    } catch (error) {
      if (!over) log.debug({ error, method }, 'screencast.command_failed');
      return undefined;
    }
  }

  function tell(message: ViewMessage): void {
    if (over) return;
    sink.send([Buffer.from(JSON.stringify(message))]);
    sink.flush();
  }

  function later(ms: number, work: () => unknown): NodeJS.Timeout {
    const timer = setTimeout(() => {
      timers.delete(timer);
      if (!over) Promise.resolve(work()).catch((error: unknown) => log.debug({ error }, 'screencast.work_failed'));
    }, ms);
    timers.add(timer);
    return timer;
  }

  function forget(timer: NodeJS.Timeout): void {
    clearTimeout(timer);
    timers.delete(timer);
  }

  function tooMany(): boolean {
    const second = Math.floor(Date.now() / 1000);
    if (rate.second !== second) Object.assign(rate, { second, count: 0 });
    rate.count += 1;
    return rate.count > MAX_MESSAGES_A_SECOND;
  }

  function fail(error: unknown): void {
    if (over) return;
    log.warn({ error }, 'screencast.failed');
    end(1011, error instanceof Overdue ? error.message : 'The browser does not show its tabs.');
  }

  function end(code: number, reason: string): void {
    if (over) return;
    over = true;
    for (const timer of timers) clearTimeout(timer);
    client.close();
    sink.close(code, reason);
  }
}

function keyEvent({ event, text, keyCode, location, repeat, ...key }: ViewerMessage & { type: 'key' }): object {
  const common = { key: key.key, code: key.code, modifiers: key.modifiers, windowsVirtualKeyCode: keyCode, location };
  const more = { ...common, isKeypad: location === 3 };
  if (event === 'up') return { ...more, type: 'keyUp' };
  if (text === '') return { ...more, type: 'rawKeyDown', autoRepeat: repeat };
  return { ...more, type: 'keyDown', autoRepeat: repeat, text, unmodifiedText: text };
}

function isBlank(tab: TabInfo | undefined): boolean {
  return tab === undefined || tab.url === '' || tab.url === 'about:blank';
}

function cut(text: unknown, length: number): string {
  return typeof text === 'string' ? text.slice(0, length) : '';
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value));
}
