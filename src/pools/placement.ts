import type { Placed } from './nodes/anywhere.ts';
import type { PoolRow, PoolStore, PoolToFill } from './store.ts';

/** How many browsers of one pool a node starts at the same time: more only slow each other down. */
const atOnce = 2;
/** How long a node that refused is not asked again. */
const avoidMs = 15_000;
/** How soon to look again: when nodes are busy, and when none has room. */
const busyMs = 250;
const noRoomMs = 2000;
/** A lack of room shorter than this is the normal gap between two browsers and is not reported. */
const noRoomShownMs = 10_000;

/** Has browsers of a pool made on the nodes with the most room. */
export function spreading({
  store,
  nodeId,
  place,
  makeHere,
  makeAt,
  pausedUntil,
  onPlaced,
}: {
  store: Pick<PoolStore, 'recordFailure'>;
  nodeId: string;
  /** The node with the most room, except these; undefined when no node has room. */
  place: (except: ReadonlySet<string>) => string | undefined;
  makeHere: (pool: PoolRow) => Promise<Placed>;
  /** Asks another node to make one. */
  makeAt: (target: string, poolId: string) => Promise<Placed>;
  /** Until when this node makes none for the pool. */
  pausedUntil: (poolId: string) => number;
  onPlaced: (poolId: string) => void;
}) {
  /** Other nodes that refused, with the time until which they are not asked. */
  const avoided = new Map<string, number>();
  const noRoomSince = new Map<string, number>();

  /** Nodes that cannot start a browser of this pool now. */
  function unfit(poolId: string): string[] {
    const now = performance.now();
    for (const [node, until] of avoided) if (until <= now) avoided.delete(node);
    return pausedUntil(poolId) > now ? [...avoided.keys(), nodeId] : [...avoided.keys()];
  }

  /** No node can make one now: all are busy with this pool, avoided for a while, or full. */
  async function notNow(pool: PoolToFill, except: ReadonlySet<string>, someBusy: boolean): Promise<number> {
    const pauses = [pausedUntil(pool.id), ...avoided.values()].map((until) => until - performance.now());
    const pause = Math.min(...pauses.filter((ms) => ms > 0));
    if (someBusy) return busyMs;
    if (except.size > 0 && pause < noRoomMs) return pause;
    const since = noRoomSince.get(pool.id) ?? performance.now();
    noRoomSince.set(pool.id, since);
    if (performance.now() - since >= noRoomShownMs && !pool.last_error)
      await store.recordFailure(pool.id, 'No node has room for one more browser (CORRAL_MAX_SESSIONS).');
    return noRoomMs;
  }

  return {
    unfit,

    /**
     * Places as many as nodes can make now. A node that has made one looks at the pool again. Resolves with the
     * milliseconds after which to look again, if no event triggers that.
     */
    async launch(pool: PoolToFill, wanted: number, closed: () => boolean): Promise<number | undefined> {
      const except = new Set(unfit(pool.id));
      const warming = new Map(Object.entries(pool.warmingOn));
      const isBusy = (node: string) => (warming.get(node) ?? 0) >= atOnce;
      for (const node of warming.keys()) if (isBusy(node)) except.add(node);
      let left = wanted;
      while (left > 0 && !closed()) {
        const target = place(except);
        if (target === undefined) return notNow(pool, except, [...warming.keys()].some(isBusy));
        const placed = target === nodeId ? await makeHere(pool) : await makeAt(target, pool.id);
        if (placed === 'pool_full') return undefined; // another node was quicker
        if (placed === 'project_full') return noRoomMs; // its cap was lowered
        if (placed === 'placed') {
          left--;
          warming.set(target, (warming.get(target) ?? 0) + 1);
          onPlaced(pool.id);
          noRoomSince.delete(pool.id);
        }
        if (placed === 'refused' && target !== nodeId) avoided.set(target, performance.now() + avoidMs);
        if (placed !== 'placed' || isBusy(target)) except.add(target);
      }
      return undefined;
    },

    forget: (poolId: string) => void noRoomSince.delete(poolId),
  };
}
