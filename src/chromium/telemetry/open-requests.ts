import type { Request } from './network-records.ts';
import { rootOf, type Target } from './target.ts';

/** More unended requests than any page has. The oldest are forgotten. */
const MOST_REQUESTS = 10_000;

/**
 * The requests that have not ended. Each event of the network asks whether a page is busy, so the requests that count are kept by page: to
 * go through all of them each time, a page with thousands of requests could make the collector take long.
 */
export function openRequests() {
  const byKey = new Map<string, Request>();
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
    unlink(key, entry);
    return entry;
  }

  /** Many at a time: the first of a Map is slow to find after others before it were deleted. */
  function forgetOldest(): void {
    let left = MOST_REQUESTS / 10;
    for (const key of byKey.keys()) {
      if (left-- === 0) return;
      remove(key);
    }
  }

  return {
    get: (key: string) => byKey.get(key),
    remove,

    add(key: string, entry: Request): void {
      remove(key);
      if (byKey.size >= MOST_REQUESTS) forgetOldest();
      byKey.set(key, entry);
      link(key, entry);
    },

    /** Its latest event came from this target. */
    move(key: string, entry: Request, target: Target): void {
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
    /** Those whose latest event came from this target. They are forgotten. */
    takeAll(target: Target): Request[] {
      const own = [...(byTarget.get(target) ?? [])];
      for (const [key] of own) remove(key);
      return own.map(([, entry]) => entry);
    },

    clear(): void {
      byKey.clear();
      byTarget.clear();
      counting.clear();
    },
  };
}
