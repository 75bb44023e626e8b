import { errors } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import type { PoolStore } from './store.ts';

/** Result of waiting: a lease on a browser, or the number of waiters ahead. */
type Turn = { leaseId: string; sessionId: string; place: string | undefined } | { ahead: number };

/** A waiter that got an unfit browser, and queues again at its old place. */
export interface SecondTurn {
  place: string;
  /** The lease on the unfit browser. */
  leaseId: string;
  /** Ends the lease and the browser. That may free a browser for the head of the queue, so it is called once the place is taken again. */
  discard: () => Promise<unknown>;
}

interface Waiter {
  poolId: string;
  /** Its place in the queue; undefined until it has joined. */
  place: string | undefined;
  given: (sessionId: string) => void;
  /** Ends the poll without a browser: the pool was deleted, the time is over, or the service stops. */
  ended: (why: Error) => void;
}

export type Acquirer = ReturnType<typeof acquirer>;

interface AcquirerOptions {
  store: PoolStore;
  nodeId: string;
  /** A client waits, so the pool may need one more browser. */
  onNeed: (poolId: string) => void;
  /** A browser that was to go back on the shelf no longer fits the pool. */
  onExpelled: (poolId: string, sessionId: string) => void;
}

/**
 * Acquiring always means waiting; the wait may be zero. The database decides which client holds which browser and which one
 * is next. `serve` of the store is the only place that assigns browsers to waiters. A waiter is woken by `given`: from this process
 * directly, from other nodes by a notification.
 */
export function acquirer({ store, nodeId, onNeed, onExpelled }: AcquirerOptions) {
  /** Waiters of this process, by the lease they are to get. */
  const waiting = new Map<string, Waiter>();
  /** Leases that this process is about to get or to hand over. Any other lease that the database holds for this node is left over. */
  const underWay = new Set<string>();
  let closed = false;

  /** The lease is under way until `settled` is called: it was handed over or given back. */
  async function acquire(poolId: string, waitMs: number, hungUp: AbortSignal, again?: SecondTurn): Promise<Turn> {
    const leaseId = newId('lease_');
    underWay.add(leaseId);
    try {
      const turn = await inTurn(poolId, leaseId, waitMs, hungUp, again);
      if ('ahead' in turn) underWay.delete(leaseId);
      return turn;
    } catch (error) {
      underWay.delete(leaseId);
      throw error;
    }
  }

  async function inTurn(
    poolId: string,
    leaseId: string,
    waitMs: number,
    hungUp: AbortSignal,
    again: SecondTurn | undefined,
  ): Promise<Turn> {
    const now = !again && (await store.leaseNow(poolId, leaseId, nodeId));
    if (now) return { leaseId, sessionId: now.id, place: undefined };
    if (waitMs <= 0 || closed || hungUp.aborted) {
      await again?.discard();
      hungUp.throwIfAborted();
      return { ahead: await store.waiting(poolId) };
    }

    const { turn, waiter } = wait(poolId, leaseId, waitMs, hungUp);
    try {
      try {
        waiter.place = await store.join(poolId, nodeId, leaseId, again?.place);
      } finally {
        await again?.discard();
      }
      if (waiter.place === undefined) throw errors.pool_deleted({ pool: poolId });
      onNeed(poolId);
      void serve(poolId).catch(() => {}); // a browser may have come back before this waiter joined; later ones are served on release
      const sessionId = await turn;
      await store.leave(leaseId);
      return { leaseId, sessionId, place: waiter.place };
    } catch (error) {
      waiting.delete(leaseId);
      // Leaves the queue first. A browser that was assigned at that moment is used if the client is still connected, else passed on.
      const left = await store.leave(leaseId);
      if (left?.sessionId && !hungUp.aborted && error instanceof PollOver)
        return { leaseId, sessionId: left.sessionId, place: waiter.place };
      if (left?.sessionId) await putBack(poolId, left.sessionId, leaseId);
      if (error instanceof PollOver) return { ahead: left?.ahead ?? 0 };
      throw error;
    }
  }

  function wait(poolId: string, leaseId: string, waitMs: number, hungUp: AbortSignal) {
    let settle!: { resolve: (sessionId: string) => void; reject: (why: Error) => void };
    const turn = new Promise<string>((resolve, reject) => (settle = { resolve, reject }));
    turn.catch(() => {}); // awaited only after joining the queue
    const deadline = setTimeout(() => waiter.ended(new PollOver()), waitMs);
    const leave = () => waiter.ended(hungUp.reason as Error);
    const done = () => {
      waiting.delete(leaseId);
      clearTimeout(deadline);
      hungUp.removeEventListener('abort', leave);
    };
    const waiter: Waiter = {
      poolId,
      place: undefined,
      given: (sessionId) => (done(), settle.resolve(sessionId)),
      ended: (why) => (done(), settle.reject(why)),
    };
    hungUp.addEventListener('abort', leave, { once: true });
    waiting.set(leaseId, waiter);
    return { turn, waiter };
  }

  /** Puts back a browser that was not used. */
  async function putBack(poolId: string, sessionId: string, leaseId: string) {
    if ((await store.shelve(sessionId, leaseId)) === 'expelled') onExpelled(poolId, sessionId);
    await serve(poolId);
  }

  /** Called whenever a browser may be free: on release, after a launch, and when a waiter leaves the queue. */
  async function serve(poolId: string): Promise<void> {
    for (;;) {
      const served = await store.serve(poolId, nodeId);
      if (!served) return;
      if (served.nodeId === nodeId && !given(served.leaseId, served.sessionId)) await forgotten(poolId, served);
    }
  }

  /** The browser was assigned to a waiter of this node that has left, but was not removed from the queue yet. */
  async function forgotten(poolId: string, { leaseId, sessionId }: { leaseId: string; sessionId: string }) {
    if (await store.leave(leaseId)) await putBack(poolId, sessionId, leaseId);
  }

  function given(leaseId: string, sessionId: string): boolean {
    const waiter = waiting.get(leaseId);
    waiter?.given(sessionId);
    return waiter !== undefined;
  }

  return {
    acquire,
    serve,
    given,
    isUnderWay: (leaseId: string) => underWay.has(leaseId),
    settled: (leaseId: string) => void underWay.delete(leaseId),

    /**
     * Called when notifications may have been lost, or other nodes gave this node up. Asks what became of the waiters
     * here; those that were removed from the queue get their place back.
     */
    async catchUp(): Promise<void> {
      const known = new Map((await store.waitersOf(nodeId)).map(({ leaseId, sessionId }) => [leaseId, sessionId]));
      for (const [leaseId, { poolId, place, ended }] of waiting) {
        if (place === undefined) continue; // it is about to join
        const sessionId = known.get(leaseId);
        if (sessionId) given(leaseId, sessionId);
        else if (sessionId === undefined && (await store.join(poolId, nodeId, leaseId, place)) === undefined)
          ended((await store.find(poolId)) ? new PollOver() : errors.pool_deleted({ pool: poolId }));
      }
      for (const poolId of new Set([...waiting.values()].map((waiter) => waiter.poolId))) await serve(poolId);
    },

    /** Ends every wait for a browser of this pool: it was deleted. */
    close(poolId: string, name: string) {
      for (const waiter of waiting.values())
        if (waiter.poolId === poolId) waiter.ended(errors.pool_deleted({ pool: name }));
    },

    /** The service stops: every poll ends, and clients that poll again reach another node or the restarted service. */
    closeAll() {
      closed = true;
      for (const waiter of waiting.values()) waiter.ended(new PollOver());
    },
  };
}

/** No browser was free in time. */
class PollOver extends Error {
  override readonly name = 'PollOver';
}
