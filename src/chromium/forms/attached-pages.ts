import { Overdue, within } from '../../lib/deadline.ts';
import { record, type Check } from '../../lib/shape.ts';
import { beginningOf, storable } from '../../lib/text.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { passedOn, type Answered, type Method, type Params, type ReadOf } from '../cdp/protocol.ts';
import { isAttachedTo } from '../cdp/shapes.ts';
import type { Patience } from './bounds.ts';
import { isDetachedFrom, isDialog, isTargetChanged } from './shapes.ts';
import { pageTraffic, type Traffic } from './traffic.ts';
import { FormsError } from './types.ts';

/** A page, with the frames of it that run in processes of their own. */
export interface AttachedPage {
  readonly pageId: string;
  readonly sessionId: string;
  readonly openerId: string | undefined;
  url: string;
  title: string;
  /** The sessions of the page itself and of frames in other processes, with the frame that each one's root is. */
  readonly sessions: Map<string, string>;
  readonly traffic: Traffic;
  /** What JavaScript dialogs said since the last act. */
  dialogs: string[];
  gone: boolean;
}

export interface AttachedPages {
  /** Resolves when the browser's pages are attached. */
  ready(): Promise<void>;
  all(): AttachedPage[];
  /** Throws if there is no such page. */
  get(pageId: string): AttachedPage;
  ofSession(sessionId: string | undefined): AttachedPage | undefined;
  /** Calls back for each page when it is attached, before it runs. */
  onPage(listener: (page: AttachedPage) => unknown): void;
  /** Calls back for each session of a page, before it runs. */
  onSession(listener: (page: AttachedPage, sessionId: string) => unknown): void;
}

/** More pages than a login opens. Others are left alone. */
const MOST_PAGES = 50;
/** Frames with a process of their own. */
const MOST_SESSIONS = 40;
const MOST_DIALOGS = 5;
const MOST_DIALOG_TEXT = 300;
/** A new page that does not answer this soon is not waited for. */
const EQUIP_MS = 3000;

/** Copies: an address of 2 MB would be kept for each page. */
const shownOf = ({ url, title }: { url: string; title: string }) => ({
  url: beginningOf(url, 2000),
  title: beginningOf(title, 300),
});

const autoAttach = (type: 'page' | 'iframe') => ({
  autoAttach: true,
  waitForDebuggerOnStart: true,
  flatten: true,
  filter: [{ type }],
});

/**
 * Attaches to every page and to their frames as a watcher: other clients do not see it. New pages and frames wait until they are
 * equipped, so that no request and no challenge of theirs is missed.
 */
export function attachedPages(client: LocalClient): AttachedPages {
  const pages = new Map<string, AttachedPage>();
  const bySession = new Map<string, AttachedPage>();
  const pageListeners: ((page: AttachedPage) => unknown)[] = [];
  const sessionListeners: ((page: AttachedPage, sessionId: string) => unknown)[] = [];
  let starting: Promise<void> | undefined;
  let equipping: Promise<unknown>[] = [];

  const order = <M extends Method>(sessionId: string, method: M, params?: Params<M>) =>
    client.send(method, ...passedOn(params, sessionId)).catch(() => undefined);

  /** Not awaited one by one: Chromium keeps their order. */
  function equip(page: AttachedPage, sessionId: string, waits: boolean): void {
    const orders: Promise<unknown>[] = [
      order(sessionId, 'Page.enable'),
      order(sessionId, 'Network.enable', { maxTotalBufferSize: 0, maxResourceBufferSize: 0, maxPostDataSize: 0 }),
    ];
    // A page in the background still lays itself out, and takes keys.
    if (sessionId === page.sessionId)
      orders.push(order(sessionId, 'Emulation.setFocusEmulationEnabled', { enabled: true }));
    for (const listener of sessionListeners) orders.push(Promise.resolve(listener(page, sessionId)));
    orders.push(order(sessionId, 'Target.setAutoAttach', autoAttach('iframe')));
    if (waits) orders.push(order(sessionId, 'Runtime.runIfWaitingForDebugger'));
    equipping.push(Promise.all(orders));
  }

  client.on('Target.attachedToTarget', isAttachedTo, ({ sessionId, targetInfo, waitingForDebugger }, from) => {
    const { targetId, type, url, title, openerId } = targetInfo;
    const parent = from === undefined ? undefined : bySession.get(from);
    const fits = type === 'page' ? !pages.has(targetId) && pages.size < MOST_PAGES : parent !== undefined;
    if (!fits || (parent && parent.sessions.size >= MOST_SESSIONS)) {
      if (waitingForDebugger) void order(sessionId, 'Runtime.runIfWaitingForDebugger');
      return void client.send('Target.detachFromTarget', { sessionId }, from).catch(() => {});
    }
    const page: AttachedPage = parent ?? {
      pageId: targetId,
      sessionId,
      openerId,
      ...shownOf({ url, title }),
      sessions: new Map(),
      traffic: pageTraffic(targetId),
      dialogs: [],
      gone: false,
    };
    page.sessions.set(sessionId, targetId);
    bySession.set(sessionId, page);
    if (!parent) pages.set(targetId, page);
    equip(page, sessionId, waitingForDebugger);
    if (!parent) for (const listener of pageListeners) listener(page);
  });

  client.on('Target.detachedFromTarget', isDetachedFrom, ({ sessionId }) => {
    const page = bySession.get(sessionId);
    if (!page) return;
    bySession.delete(sessionId);
    page.sessions.delete(sessionId);
    page.traffic.sessionGone(sessionId);
    if (page.sessionId !== sessionId) return;
    page.gone = true;
    pages.delete(page.pageId);
    for (const other of page.sessions.keys()) bySession.delete(other);
  });

  client.on('Target.targetInfoChanged', isTargetChanged, ({ targetInfo: { targetId, url, title } }) => {
    const page = pages.get(targetId);
    if (page) Object.assign(page, shownOf({ url, title }));
  });

  // With Page enabled a dialog waits for an answer, and a page that waits can be neither read nor closed.
  client.on('Page.javascriptDialogOpening', isDialog, ({ type, message }, sessionId) => {
    const page = bySession.get(sessionId ?? '');
    if (!page) return;
    if (type !== 'beforeunload')
      page.dialogs = [...page.dialogs, storable(beginningOf(message, MOST_DIALOG_TEXT))].slice(-MOST_DIALOGS);
    void order(sessionId!, 'Page.handleJavaScriptDialog', { accept: type !== 'prompt' });
  });

  async function start(): Promise<void> {
    await client.send('Target.setDiscoverTargets', { discover: true, filter: [{ type: 'page' }] });
    await client.send('Target.setAutoAttach', autoAttach('page'));
  }

  return {
    async ready() {
      starting ??= start();
      starting.catch(() => (starting = undefined)); // the next call tries again
      await starting;
      const now = equipping;
      equipping = [];
      await within(EQUIP_MS, 'The page', Promise.all(now)).catch(() => {}); // a page that hangs does not hold up the others
    },
    all: () => [...pages.values()],
    get(pageId) {
      const page = pages.get(pageId);
      if (!page) throw new FormsError('page_gone', 'The page is closed.');
      return page;
    },
    ofSession: (sessionId) => bySession.get(sessionId ?? ''),
    onPage: (listener) => void pageListeners.push(listener),
    onSession: (listener) => void sessionListeners.push(listener),
  };
}

/** Sends commands to pages, each with a deadline, and turns what goes wrong into a `FormsError`. */
export function pageCommands(client: LocalClient, patience: Patience) {
  async function ask<M extends Method, T>(
    ms: number,
    sessionId: string,
    is: Check<T> & ReadOf<T, Answered<M>>,
    method: M,
    params: Params<M>,
  ): Promise<T> {
    try {
      return await within(ms, 'The page', client.ask(is, method, ...passedOn(params, sessionId)));
    } catch (error) {
      throw inOurWords(error);
    }
  }

  return {
    patience,
    ask,
    send: <M extends Method>(ms: number, sessionId: string, method: M, params: Params<M>) =>
      ask(ms, sessionId, record as never, method, params) as Promise<Record<string, unknown>>,
  };
}

export type PageCommands = ReturnType<typeof pageCommands>;

function inOurWords(error: unknown): unknown {
  if (error instanceof FormsError || !(error instanceof Error)) return error;
  if (error instanceof Overdue) return new FormsError('frozen', 'The page does not answer: it hangs.');
  const { message } = error;
  if (/context|navigated|No frame|not find object|No node|does not belong|Frame with the given/i.test(message))
    return new FormsError('stale', 'The page has changed since it was read.');
  if (/Session with given id|was closed|detached|went away|stopped|Target closed|closed/i.test(message))
    return new FormsError('page_gone', 'The page is closed.');
  return new FormsError('stale', `The browser refused: ${message.slice(0, 200)}`);
}
