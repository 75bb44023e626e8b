import { prepareItems } from '../domains.ts';
import type { SourceItem } from './source.ts';

/** A list that misses an item is read again if it is older than this: the item may be new. */
const freshMs = 10_000;

interface Cached {
  revision: string;
  at: number;
  items: SourceItem[];
}

/**
 * Caches the item lists of credential stores for the time that each provider allows. An entry belongs to a revision of the provider: a new
 * token or address invalidates it on all nodes. Items hold no secrets; secrets are read from the store each time.
 */
export function itemLists(now: () => number = () => performance.now()) {
  const cached = new Map<string, Cached>();
  const reading = new Map<string, Promise<SourceItem[]>>();

  async function read(id: string, revision: string, list: () => Promise<SourceItem[]>): Promise<SourceItem[]> {
    const key = `${id} ${revision}`;
    const running = reading.get(key);
    if (running) return running;
    const work = list()
      .then(async (items) => {
        await prepareItems(items);
        cached.set(id, { revision, at: now(), items });
        return items;
      })
      .finally(() => reading.delete(key));
    reading.set(key, work);
    return work;
  }

  return {
    /** Reads the store now, and keeps what it found. Reads at the same time are one. */
    read,

    /** The item that `choose` finds, in the kept list or in a new one. */
    async find(
      provider: { id: string; revision: string; ttlMs: number },
      choose: (items: readonly SourceItem[]) => SourceItem | undefined,
      list: () => Promise<SourceItem[]>,
    ): Promise<SourceItem | undefined> {
      const { id, revision, ttlMs } = provider;
      const known = cached.get(id);
      if (known?.revision === revision && now() - known.at < ttlMs) {
        const item = choose(known.items);
        if (item || now() - known.at < freshMs) return item;
      }
      return choose(await read(id, revision, list));
    },

    forget: (id: string) => void cached.delete(id),
  };
}
