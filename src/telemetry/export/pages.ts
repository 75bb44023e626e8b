import { textIn, type StoredEvent } from './source.ts';

/** A document that a tab showed, from the request for it on. */
export interface PageLoad {
  id: string;
  targetId: string;
  loaderId: string | undefined;
  url: string;
  /** Unix microseconds, like the two below. */
  startedAt: number;
  contentLoadedAt?: number;
  loadedAt?: number;
}

/** A session that loads documents all day keeps its first ones; requests of later ones belong to no page. */
const mostPages = 10_000;
/** Of the addresses of all pages. */
const mostPageBytes = 16 * 2 ** 20;
const mostFrames = 10_000;

/** The main frame of a tab has the id of its target. So has a frame in a process of its own, which has a target that is no page. */
export function inMainFrame(data: StoredEvent['event']['data']): boolean {
  return textIn(data, 'frame_id') === textIn(data, 'target_id') && textIn(data, 'target_type') === 'page';
}

/** Follows which document each tab shows, so that a request can be given to its page. */
export function pageLoads() {
  const all: PageLoad[] = [];
  let bytes = 0;
  const current = new Map<string, PageLoad>();
  /** Frames by id, with the frame around each. A cross-origin frame is a target of its own; this finds its tab. */
  const parents = new Map<string, string>();

  function begin(targetId: string, loaderId: string | undefined, url: string, startedAt: number) {
    if (all.length >= mostPages || bytes + url.length > mostPageBytes) return void current.delete(targetId);
    const page = { id: `page_${all.length + 1}`, targetId, loaderId, url, startedAt };
    bytes += url.length;
    all.push(page);
    current.set(targetId, page);
  }

  /** A page keeps its first address if there is no room for the new one. */
  function redirected(page: PageLoad, url: string) {
    const more = url.length - page.url.length;
    if (bytes + more > mostPageBytes) return;
    bytes += more;
    page.url = url;
  }

  function requested({ event: { ts, data } }: StoredEvent) {
    const [targetId, url, loaderId] = [textIn(data, 'target_id'), textIn(data, 'url'), textIn(data, 'loader_id')];
    if (!targetId || !url || !inMainFrame(data)) return;
    const page = current.get(targetId);
    if (data?.['is_redirect'] === true && page) redirected(page, url);
    else begin(targetId, loaderId, url, ts);
  }

  function navigated({ event: { ts, data } }: StoredEvent) {
    const [targetId, frameId, parent] = [
      textIn(data, 'target_id'),
      textIn(data, 'frame_id'),
      textIn(data, 'parent_frame_id'),
    ];
    if (parent || !inMainFrame(data)) {
      if (parent && frameId && parents.size < mostFrames) parents.set(frameId, parent);
      return;
    }
    const [url, loaderId] = [textIn(data, 'url'), textIn(data, 'loader_id')];
    if (!targetId || !url) return;
    const page = current.get(targetId);
    // Without the network category, and for documents without a request, the navigation is the first sign of the page.
    if (page && (page.loaderId === undefined || page.loaderId === loaderId)) redirected(page, url);
    else begin(targetId, loaderId, url, ts);
  }

  function reached(key: 'contentLoadedAt' | 'loadedAt', { event: { ts, data } }: StoredEvent) {
    const page = current.get(textIn(data, 'target_id') ?? '');
    if (page) page[key] ??= ts;
  }

  return {
    all: all as readonly PageLoad[],
    bytes: () => bytes,

    take(stored: StoredEvent) {
      const { type, data } = stored.event;
      if (type === 'network_request' && textIn(data, 'resource_type') === 'Document') requested(stored);
      else if (type === 'page_navigation') navigated(stored);
      else if (type === 'page_dom_content_loaded') reached('contentLoadedAt', stored);
      else if (type === 'page_load') reached('loadedAt', stored);
    },

    /** The page that an event belongs to. */
    of({ event: { data } }: StoredEvent): PageLoad | undefined {
      const own = current.get(textIn(data, 'target_id') ?? '');
      if (own) return own;
      let frame = textIn(data, 'frame_id');
      // Frames nest a few deep. The bound is for records in which they go in a circle.
      for (let depth = 0; frame && depth < 32; depth++) {
        const page = current.get(frame);
        if (page) return page;
        frame = parents.get(frame);
      }
      return undefined;
    },
  };
}
