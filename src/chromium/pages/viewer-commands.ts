import { anyText, integer, list, object, optional, record, text } from '../../lib/shape.ts';
import type { Mux } from '../cdp/mux.ts';
import { transportError } from './net-errors.ts';
import { destinationOf, MAX_MESSAGE } from './viewer-messages.ts';
import type { ViewerMessageOf } from './viewer-protocol.ts';
import type { Shown, Viewer } from './viewer.ts';

/** They are kept: the id of a load, and why it failed. */
const loadId = text(128);
const reason = text(200);
const isNavigated = object({ errorText: optional(reason), loaderId: optional(loadId) });
const isNavigating = object({ frameId: anyText, loaderId: loadId, navigationType: anyText });
const isFailed = object({ requestId: loadId, errorText: reason });
const isNewPage = object({ frame: object({ id: anyText, loaderId: loadId, unreachableUrl: optional(anyText) }) });
const isOfFrame = object({ frameId: anyText });
const isDialog = object({ type: anyText, message: anyText, defaultPrompt: optional(anyText) });
const isHistory = object({ currentIndex: integer(0, 1e6), entries: list(object({ id: integer(0, 2 ** 31) })) });

/** The interval of requests to a page that changes its history constantly. */
const NEWS_EVERY_MS = 50;

type SteeringMessage = ViewerMessageOf<'navigate' | 'history' | 'answer'>;

/** The browser controls around a page: its address, its history, its dialogs. Words are searched for at `searchUrl`. */
export function viewerSteering(viewer: Viewer, network: Pick<Mux, 'failureOf'>, searchUrl = '') {
  viewer.onShown('Page.frameStartedLoading', isOfFrame, (tab, { frameId }) => {
    return frameId === tab.id && pageNews(tab, { loading: true });
  });
  viewer.onShown('Page.frameStoppedLoading', isOfFrame, (tab, { frameId }) => {
    if (frameId !== tab.id) return;
    hearFailures(tab);
    return pageNews(tab, { loading: false });
  });
  viewer.onShown('Page.frameStartedNavigating', isNavigating, (tab, { frameId, loaderId, navigationType }) => {
    if (frameId !== tab.id || /sameDocument/i.test(navigationType)) return;
    tab.load = { id: loaderId };
    return hearFailures(tab);
  });
  viewer.onShown('Network.loadingFailed', isFailed, (tab, { requestId, errorText }) => {
    if (tab.load?.id === requestId) tab.load.errorText = errorText;
  });
  viewer.onShown('Page.frameNavigated', isNewPage, async (tab, { frame: { id, loaderId, unreachableUrl = '' } }) => {
    if (id !== tab.id) return;
    const errorText = tab.load?.id === loaderId ? tab.load.errorText : undefined;
    await viewer.send(tab, 'Network.disable');
    // The answer to a Page.navigate of the viewer has been read by now, which has the reason too.
    if (unreachableUrl === '') return;
    tellFailure(tab, unreachableUrl.slice(0, 200), loaderId, network.failureOf(errorText, unreachableUrl));
  });
  viewer.onShown('Page.navigatedWithinDocument', record, (tab) => pageNews(tab, {}));
  viewer.onShown('Page.javascriptDialogOpening', isDialog, (_tab, { type, message, defaultPrompt = '' }) =>
    viewer.tell({
      type: 'dialog',
      kind: type.slice(0, 100),
      message: message.slice(0, 5000),
      defaultText: defaultPrompt.slice(0, 5000),
    }),
  );
  viewer.onShown('Page.javascriptDialogClosed', record, () => viewer.tell({ type: 'dialogClosed' }));

  async function travel(tab: Shown, to: 'back' | 'forward' | 'reload' | 'stop'): Promise<void> {
    if (to === 'reload') return void (await viewer.send(tab, 'Page.reload'));
    if (to === 'stop') return void (await viewer.send(tab, 'Page.stopLoading'));
    const history = await viewer.ask(tab, isHistory, 'Page.getNavigationHistory');
    const entry = history?.entries[history.currentIndex + (to === 'back' ? -1 : 1)];
    if (entry) await viewer.send(tab, 'Page.navigateToHistoryEntry', { entryId: entry.id });
  }

  /**
   * Only Network reports why a load of a link or a client failed. It costs the browser a third of a millisecond for each request, so
   * it is disabled while a page loads, from its document to its end. A load that begins then may fail before Network is on again: the
   * gateway knows the reasons that are likely so early.
   */
  function hearFailures(tab: Shown): void {
    void viewer.send(tab, 'Network.enable', { maxTotalBufferSize: 0, maxResourceBufferSize: 0 });
  }

  async function navigate(tab: Shown, url: string): Promise<void> {
    const { errorText, loaderId } = (await viewer.ask(tab, isNavigated, 'Page.navigate', { url })) ?? {};
    if (errorText) tellFailure(tab, 'The page', loaderId, errorText);
  }

  /** Reports a load once, though there may be two messages about it. */
  function tellFailure(tab: Shown, page: string, loaderId: string | undefined, errorText: string | undefined): void {
    // A load that another one replaces, or that becomes a download, is aborted too.
    if (errorText?.includes('ERR_ABORTED') || viewer.shown !== tab) return;
    if (loaderId !== undefined && tab.toldOf === loaderId) return;
    tab.toldOf = loaderId;
    const why = errorText ? ` ${transportError(errorText).message}` : '';
    viewer.tell({ type: 'notice', text: `${page} did not load.${why}` });
  }

  /** One question at a time: the history may have megabytes, and a page can change it as often as it likes. */
  async function pageNews(tab: Shown, news: { loading?: boolean }): Promise<void> {
    Object.assign(tab.page, news);
    const isAsked = tab.news !== undefined;
    tab.news = isAsked ? 'again' : 'asked';
    if (isAsked) return;
    const history = await viewer.ask(tab, isHistory, 'Page.getNavigationHistory');
    const again = tab.news === 'again';
    tab.news = undefined;
    if (viewer.shown !== tab || viewer.over) return;
    if (history) {
      tab.page.canGoBack = history.currentIndex > 0;
      tab.page.canGoForward = history.currentIndex < history.entries.length - 1;
    }
    if (viewer.sink.bufferedAmount < MAX_MESSAGE) viewer.tell({ type: 'page', ...tab.page });
    if (again) viewer.later(NEWS_EVERY_MS, () => pageNews(tab, {}));
  }

  return {
    /** A client that enables Page has to answer the page's dialogs. A read-only viewer cannot, so it does not enable Page. */
    start(tab: Shown): void {
      if (viewer.readOnly) return;
      void viewer.send(tab, 'Page.enable').then(() => pageNews(tab, {}));
      hearFailures(tab);
    },

    steer(tab: Shown, message: SteeringMessage): void {
      switch (message.type) {
        case 'navigate': {
          const url = destinationOf(message.address, searchUrl);
          if (url === undefined) return viewer.tell({ type: 'notice', text: noAddress(searchUrl) });
          return void navigate(tab, url);
        }
        case 'history':
          return void travel(tab, message.to);
        case 'answer': {
          const answer = { accept: message.accept, promptText: message.text };
          return void viewer.send(tab, 'Page.handleJavaScriptDialog', answer);
        }
      }
    },
  };
}

function noAddress(searchUrl: string): string {
  if (searchUrl !== '') return 'That is not an address of the web.';
  return 'That is not an address of the web, and this service has no search engine (CORRAL_SEARCH_URL).';
}
