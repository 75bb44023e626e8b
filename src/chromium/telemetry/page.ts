import { cleanUrl } from './redact.ts';
import { isFired, isStarting } from './shapes.ts';
import { contextOf, rootOf, wireType, type Target } from './target.ts';
import { timelineEvents } from './timeline.ts';
import type { Watch } from './watch.ts';

const SETTLED_MS = 1000;
/** How long a new tab may take to say where it goes, before it is reported without an address. */
const OPENING_MS = 1000;

/** The known state of a page's document. */
interface Progress {
  domContentLoaded: boolean;
  loaded: boolean;
  settled: boolean;
  timer: NodeJS.Timeout | undefined;
}

/** All types of the category page. */
export function pageEvents(watch: Watch) {
  const { client, targets, emit } = watch;
  const progress = new Map<Target, Progress>();
  const opening = new Map<Target, NodeJS.Timeout>();

  const progressOf = (page: Target): Progress => {
    const known = progress.get(page) ?? { domContentLoaded: false, loaded: false, settled: false, timer: undefined };
    progress.set(page, known);
    return known;
  };
  /** The page itself; undefined for the frames and workers in it. */
  const pageOf = (sessionId: string | undefined) => {
    const target = targets.get(sessionId);
    return target?.parent === undefined && target && watch.captures('page') ? target : undefined;
  };

  client.on('Page.frameStartedNavigating', isStarting, ({ frameId, url }, sessionId) => {
    const target = targets.get(sessionId);
    if (target && frameId === target.targetId) opened(target, url);
  });

  function navigated(
    target: Target,
    { frame }: { frame: { id: string; parentId?: string; loaderId: string; url: string } },
  ) {
    const isMain = frame.id === target.targetId && !target.parent;
    if (isMain) {
      opened(target, frame.url);
      forget(target);
    }
    if (!watch.captures('page')) return;
    emit({
      type: 'page_navigation',
      from: 'Page.frameNavigated',
      target,
      data: {
        url: cleanUrl(frame.url),
        frame_id: frame.id,
        parent_frame_id: frame.parentId,
        loader_id: frame.loaderId,
        session_id: target.sessionId,
        target_id: target.targetId,
        target_type: wireType(target.type),
      },
    });
  }

  client.on('Page.domContentEventFired', isFired, ({ timestamp }, sessionId) => {
    const page = pageOf(sessionId);
    if (!page) return;
    emit({
      type: 'page_dom_content_loaded',
      from: 'Page.domContentEventFired',
      target: page,
      data: { ...contextOf(page), cdp_timestamp: timestamp },
    });
    progressOf(page).domContentLoaded = true;
  });

  client.on('Page.loadEventFired', isFired, ({ timestamp }, sessionId) => {
    const page = pageOf(sessionId);
    if (!page) return;
    emit({
      type: 'page_load',
      from: 'Page.loadEventFired',
      target: page,
      data: { ...contextOf(page), cdp_timestamp: timestamp },
    });
    const known = progressOf(page);
    known.loaded = true;
    settleLater(page, known);
  });

  function settleLater(page: Target, known: Progress): void {
    clearTimeout(known.timer);
    known.timer = setTimeout(() => {
      if (page.gone || !watch.captures('page')) return;
      known.settled = true;
      emit({ type: 'page_layout_settled', target: page, data: contextOf(page) });
      if (known.domContentLoaded) emit({ type: 'page_navigation_settled', target: page, data: contextOf(page) });
    }, SETTLED_MS);
  }

  timelineEvents(watch, (target) => {
    const page = rootOf(target);
    const known = progress.get(page);
    if (known?.loaded && !known.settled) settleLater(page, known);
  });

  /** A new tab is reported once its address is known: Chromium announces it without one. */
  function opened(target: Target, url: string): void {
    if (!opening.has(target)) return;
    clearTimeout(opening.get(target));
    opening.delete(target);
    if (!watch.captures('page')) return;
    emit({
      type: 'page_tab_opened',
      from: 'Target.attachedToTarget',
      data: {
        target_id: target.targetId,
        target_type: wireType(target.type),
        url: cleanUrl(url),
        title: cleanUrl(target.title),
        opener_id: target.openerId,
      },
    });
  }

  function forget(page: Target): void {
    clearTimeout(progress.get(page)?.timer);
    progress.delete(page);
  }

  return {
    navigated,

    attached(target: Target): void {
      if (!target.fresh || target.parent || target.type !== 'page') return;
      opening.set(
        target,
        setTimeout(() => opened(target, target.url || 'about:blank'), OPENING_MS),
      );
    },

    gone(target: Target): void {
      opened(target, target.url || 'about:blank');
      forget(target);
    },

    close(): void {
      for (const page of progress.keys()) forget(page);
      for (const timer of opening.values()) clearTimeout(timer);
      opening.clear();
    },
  };
}
