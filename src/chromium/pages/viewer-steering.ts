import { anyText, integer, list, object, optional, record } from '../../lib/shape.ts';
import { transportError } from './net-errors.ts';
import { destinationOf, type ViewerMessage } from './viewer-messages.ts';
import { MAX_MESSAGE, type Shown, type Viewer } from './viewer.ts';

const isNavigated = object({ errorText: optional(anyText) });
const isUnreachable = object({ frame: object({ id: anyText, unreachableUrl: anyText }) });
const isOfFrame = object({ frameId: anyText });
const isDialog = object({ type: anyText, message: anyText, defaultPrompt: optional(anyText) });
const isHistory = object({ currentIndex: integer(0, 1e6), entries: list(object({ id: integer(0, 2 ** 31) })) });

export type SteeringMessage = ViewerMessage & { type: 'navigate' | 'history' | 'answer' };

/** The browser controls around a page: its address, its history, its dialogs. Words are searched for at `searchUrl`. */
export function viewerSteering(viewer: Viewer, searchUrl = '') {
  viewer.onShown('Page.frameStartedLoading', isOfFrame, (tab, { frameId }) => {
    return frameId === tab.id && pageNews(tab, { loading: true });
  });
  viewer.onShown('Page.frameStoppedLoading', isOfFrame, (tab, { frameId }) => {
    return frameId === tab.id && pageNews(tab, { loading: false });
  });
  // A load that a link or a client began. The reason of one that the viewer began comes with the answer to its command.
  viewer.onShown('Page.frameNavigated', isUnreachable, (tab, { frame }) => {
    if (frame.id !== tab.id || frame.unreachableUrl === '' || frame.unreachableUrl === tab.navigating) return;
    viewer.tell({ type: 'notice', text: `${frame.unreachableUrl.slice(0, 200)} did not load.` });
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

  async function navigate(tab: Shown, url: string): Promise<void> {
    tab.navigating = url;
    const answer = await viewer.ask(tab, isNavigated, 'Page.navigate', { url });
    const problem = answer?.errorText;
    // A load that another one replaces, or that becomes a download, is aborted too.
    if (!problem || /ERR_ABORTED/.test(problem) || viewer.shown !== tab) return;
    viewer.tell({ type: 'notice', text: `The page did not load. ${transportError(problem.slice(0, 200)).message}` });
  }

  async function pageNews(tab: Shown, news: { loading?: boolean }): Promise<void> {
    Object.assign(tab.page, news);
    const history = await viewer.ask(tab, isHistory, 'Page.getNavigationHistory');
    if (!history || viewer.shown !== tab || viewer.over) return;
    tab.page.canGoBack = history.currentIndex > 0;
    tab.page.canGoForward = history.currentIndex < history.entries.length - 1;
    if (viewer.sink.bufferedAmount < MAX_MESSAGE) viewer.tell({ type: 'page', ...tab.page });
  }

  return {
    /** A client that enables Page has to answer the page's dialogs. A read-only viewer cannot, so it does not enable Page. */
    start(tab: Shown): void {
      if (!viewer.readOnly) void viewer.send(tab, 'Page.enable').then(() => pageNews(tab, {}));
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
