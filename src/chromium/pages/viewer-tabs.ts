import { Overdue } from '../../lib/deadline.ts';
import type { Mux } from '../cdp/mux.ts';
import { isAttached, isCreated, isTargetGone, isTargetList, isTargetNews, type TargetInfo } from '../cdp/shapes.ts';
import { viewerFollowing } from './followed-tab.ts';
import { MAX_MESSAGE } from './viewer-messages.ts';
import type { TabInfo } from './viewer-protocol.ts';
import type { Shown, Viewer } from './viewer.ts';

interface Tab extends TabInfo {
  readonly contextId: string | undefined;
}

const MAX_TABS = 100;
/** Changes of tabs are sent together at this interval. */
const TABS_EVERY_MS = 50;
/** Chromium reports created, closed and navigated tabs, but not changed titles. */
const TITLES_EVERY_MS = 1000;

/**
 * The list of tabs, and the shown tab: the tab that a client of the session created or brought to the front last, unless the
 * viewer has chosen one. `left` is called when a tab is not shown any more, `attached` when the next one can be used.
 */
export function viewerTabs(
  viewer: Viewer,
  fronts: Pick<Mux, 'front' | 'onFront'>,
  { left, attached }: { left: () => void; attached: (tab: Shown) => void },
) {
  const { client, sink, log } = viewer;
  const tabs = new Map<string, Tab>();
  /** Whether the viewer or a client of the session chose the tab, rather than this code. */
  let picked = false;
  let changed = false;
  /** The existing tabs are known: tabs that are created from now on are new. */
  let discovered = false;
  const following = viewerFollowing(viewer, fronts, (id) => {
    if (!tabs.has(id)) return;
    picked = true;
    if (viewer.shown?.id !== id) show(id);
  });

  client.on('Target.targetCreated', isTargetNews, ({ targetInfo }) => news(targetInfo, true));
  client.on('Target.targetInfoChanged', isTargetNews, ({ targetInfo }) => news(targetInfo, false));
  client.on('Target.targetDestroyed', isTargetGone, ({ targetId }) => closed(targetId));

  async function discover(): Promise<void> {
    try {
      await client.send('Target.setDiscoverTargets', { discover: true, filter: [{ type: 'page' }] });
    } catch (error) {
      if (viewer.over) return;
      log.warn({ error }, 'screencast.failed');
      return viewer.end(1011, error instanceof Overdue ? error.message : 'The browser does not show its tabs.');
    }
    discovered = true; // Chromium has reported the existing tabs before its answer
    if (!viewer.shown) showBest();
    tellSoon();
    titles();
  }

  function news({ targetId, type, subtype, openerId, browserContextId, ...info }: TargetInfo, isNew: boolean): void {
    if (type !== 'page' || subtype !== undefined || (!tabs.has(targetId) && tabs.size >= MAX_TABS)) return;
    const tab = { id: targetId, title: cut(info.title, 200), url: cut(info.url, 2000), contextId: browserContextId };
    tabs.set(targetId, tab);
    tellSoon();
    // A page opened by the shown one is brought to the front, as in a window. So is the first page with content.
    const { shown } = viewer;
    if (!shown || shown.id === targetId) return;
    const opened = isNew && openerId !== undefined && openerId === shown.id;
    const worthMore = following.on && !picked && isBlank(tabs.get(shown.id)) && !isBlank(tab);
    if (worthMore) show(targetId);
    else if (opened) following.lead(targetId);
    else if (isNew && discovered) void following.created(targetId);
  }

  function closed(id: string): void {
    if (!tabs.delete(id)) return;
    tellSoon();
    if (viewer.shown?.id !== id) return;
    viewer.shown = undefined;
    left();
    picked = false;
    showBest();
  }

  /** Without a tab that a client brought to the front, the last tab with content is most likely the one in use. */
  function showBest(): void {
    const all = [...tabs.values()];
    const best = tabs.get(following.leader ?? '') ?? all.findLast((tab) => !isBlank(tab)) ?? all.at(-1);
    if (best) show(best.id);
  }

  function tellSoon(): void {
    if (changed) return;
    changed = true;
    viewer.later(TABS_EVERY_MS, function tellTabs() {
      if (sink.bufferedAmount > MAX_MESSAGE) return viewer.later(TABS_EVERY_MS, tellTabs); // the viewer is behind: one later list is enough
      changed = false;
      const list = [...tabs.values()].map(({ id, title, url }) => ({ id, title, url }));
      viewer.tell({ type: 'tabs', tabs: list, shown: viewer.shown?.id ?? null });
    });
  }

  function titles(): void {
    viewer.later(TITLES_EVERY_MS, async () => {
      const asked = client.ask(isTargetList, 'Target.getTargets', { filter: [{ type: 'page' }] });
      const answer = await asked.catch(() => undefined);
      for (const info of answer?.targetInfos ?? []) {
        const known = tabs.get(info.targetId);
        if (known && known.title !== cut(info.title, 200)) news(info, false);
      }
      if (!viewer.over) titles();
    });
  }

  function show(id: string): void {
    const previous = viewer.shown;
    const page = { loading: false, canGoBack: false, canGoForward: false };
    const input = { unanswered: 0, presses: 0, pageWork: 0, backlog: [] };
    const tab: Shown = { id, sessionId: undefined, page, viewport: '', ...input };
    viewer.shown = tab;
    left();
    tellSoon();
    if (previous?.sessionId !== undefined) detach(previous.sessionId);
    client
      .ask(isAttached, 'Target.attachToTarget', { targetId: id, flatten: true })
      .then(({ sessionId }) => {
        if (viewer.shown !== tab) return detach(sessionId);
        tab.sessionId = sessionId;
        return attached(tab);
      })
      .catch((error: unknown) => log.debug({ error, tab: id }, 'screencast.tab_not_shown')); // the tab is closed; an event reports that
  }

  function detach(sessionId: string): void {
    client.send('Target.detachFromTarget', { sessionId }).catch(() => {}); // it may be closed
  }

  function select(id: string): void {
    if (!tabs.has(id)) return;
    picked = true;
    // In a full browser only the tab in front is painted. A read-only viewer does not change which tab that is.
    if (!viewer.readOnly) client.send('Target.activateTarget', { targetId: id }).catch(() => {});
    if (viewer.shown?.id !== id) show(id);
  }

  return {
    discover,
    select,
    follow: following.set,

    async open(url = 'about:blank'): Promise<void> {
      const browserContextId = tabs.get(viewer.shown?.id ?? '')?.contextId;
      const where = { url, ...(browserContextId !== undefined && { browserContextId }) };
      // The default context has an id too, but a tab cannot always be opened with it.
      const opening = client.ask(isCreated, 'Target.createTarget', where);
      const made = await opening.catch(() =>
        client.ask(isCreated, 'Target.createTarget', { url }).catch(() => undefined),
      );
      if (made && !viewer.over) select(made.targetId);
    },

    close(id: string): void {
      if (tabs.has(id)) client.send('Target.closeTarget', { targetId: id }).catch(() => {});
    },
  };
}

function isBlank(tab: TabInfo | undefined): boolean {
  return tab === undefined || tab.url === '' || tab.url === 'about:blank';
}

function cut(text: string, length: number): string {
  return text.slice(0, length);
}
