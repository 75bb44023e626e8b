import { weightOf, type Request } from './network-records.ts';
import { rootOf, type Target } from './target.ts';

/** More unended requests than any page has. The oldest are forgotten. */
const MOST_REQUESTS = 10_000;
/** The most memory of all of them, in bytes. A request and its answer may have 130 KiB. */
const MOST_WEIGHT = 16 * 2 ** 20;

/**
 * The requests that have not ended. Each event of the network asks whether a page is busy, so the requests that count are kept by page: to
 * go through all of them each time, a page with thousands of requests could make the collector take long.
 */
export function openRequests() {
  const byKey = new Map<string, Request>();
  let weight = 0;
  const byTarget = new Map<Target, Map<string, Request>>();
  /** Those that count, by page. */
  const counting = new Map<Target, Set<Request>>();

  function link(key: string, entry: Request): void {
    const { target } = entry;
    byTarget.set(target, (byTarget.get(target) ?? new Map<string, Request>()).set(key, entry));
    if (!entry.counts) return;
    const root = rootOf(target);
    counting.set(root, (counting.get(root) ?? new Set()).add(entry));
  }

  function unlink(key: string, entry: Request): void {
    const { target } = entry;
    const own = byTarget.get(target);
    if (own?.delete(key) && own.size === 0) byTarget.delete(target);
    uncount(entry);
  }

  function uncount(entry: Request): void {
    const root = rootOf(entry.target);
    const busy = counting.get(root);
    if (busy?.delete(entry) && busy.size === 0) counting.delete(root);
  }

  function remove(key: string): Request | undefined {
    const entry = byKey.get(key);
    if (!entry) return undefined;
    byKey.delete(key);
    weight -= weightOf(entry);
    unlink(key, entry);
    return entry;
  }

  /** Many at a time: the first of a Map is slow to find after others before it were deleted. */
  function forgetOldest(): void {
    let least = MOST_REQUESTS / 10;
    for (const key of byKey.keys()) {
      if (least-- <= 0 && weight <= MOST_WEIGHT * 0.9) return;
      remove(key);
    }
  }

  return {
    get: (key: string) => byKey.get(key),
    remove,

    add(key: string, entry: Request): void {
      remove(key);
      if (byKey.size >= MOST_REQUESTS || weight > MOST_WEIGHT) forgetOldest();
      byKey.set(key, entry);
      weight += weightOf(entry);
      link(key, entry);
    },

    /** Its latest event came from this target, and has these. */
    change(key: string, entry: Request, { target, ...news }: Pick<Request, 'target'> & Partial<Request>): void {
      weight -= weightOf(entry);
      Object.assign(entry, news);
      weight += weightOf(entry);
      if (entry.target === target) return;
      unlink(key, entry);
      entry.target = target;
      link(key, entry);
    },

    /** A page can be idle with it. */
    idle(entry: Request): void {
      uncount(entry);
      entry.counts = false;
    },

    isBusy: (root: Target) => counting.has(root),
    /** Those of a page that count. */
    counted: (root: Target): Iterable<Request> => counting.get(root) ?? [],
    /** Removes and returns the requests with their latest event from this target. */
    takeAll(target: Target): Request[] {
      const own = [...(byTarget.get(target) ?? [])];
      for (const [key] of own) remove(key);
      return own.map(([, entry]) => entry);
    },

    clear(): void {
      byKey.clear();
      weight = 0;
      byTarget.clear();
      counting.clear();
    },
  };
}
