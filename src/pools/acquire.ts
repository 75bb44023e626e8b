import { errors } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import type { PoolStore } from './store.ts';

/** What came of waiting: a lease on a browser, or how many still stand before you. */
export type Turn = { leaseId: string; sessionId: string; place: string | undefined } | { ahead: number };

/** A waiter who got a browser that was unfit, and asks again at the place it had in the line. */
export interface SecondTurn {
  place: string;
  /** The lease on that browser. */
  leaseId: string;
  /** Ends it together with the browser, which may bring another one for the head of the line: called once the place is taken again. */
  discard: () => Promise<unknown>;
}

interface Waiter {
  poolId: string;
  /** In the line; undefined until it was joined. */
  place: string | undefined;
  given: (sessionId: string) => void;
  /** The poll ends without a browser: the pool is gone, the time is over, or the service stops. */
  ended: (why: Error) => void;
}

export type Acquirer = ReturnType<typeof acquirer>;

interface AcquirerOptions {
  store: PoolStore;
  nodeId: string;
  /** Somebody waits: the pool may have to make one more. */
  onNeed: (poolId: string) => void;
  /** The pool has moved on from a browser that was to go back on the shelf. */
  onExpelled: (poolId: string, sessionId: string) => void;
}

/**
 * Acquiring is always waiting; sometimes the wait is zero. The database decides who holds what and whose turn it is, `serve`
 * is the only place where the two meet, and waking up is an event: in this process by `given`, from other nodes by a
 * notification that ends up there, too.
 */
export function acquirer({ store, nodeId, onNeed, onExpelled }: AcquirerOptions) {
  /** Who waits in this process, by the lease they are to get. */
  const waiting = new Map<string, Waiter>();
  /** Leases that somebody in this process is about to get or to hand over. Whatever else the database has of ours was left there. */
  const underWay = new Set<string>();
  let closed = false;

  /** The lease is under way until `settled` says that it was handed over or given back. */
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
      void serve(poolId).catch(() => {}); // one may have come back between asking and joining; else whoever brings one serves
      const sessionId = await turn;
      await store.leave(leaseId);
      return { leaseId, sessionId, place: waiter.place };
    } catch (error) {
      waiting.delete(leaseId);
      // Out of the line first; what was given in that very moment is used if somebody is there, else handed on.
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
    turn.catch(() => {}); // awaited after the line was joined
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

  /** Nobody has used it. */
  async function putBack(poolId: string, sessionId: string, leaseId: string) {
    if ((await store.shelve(sessionId, leaseId)) === 'expelled') onExpelled(poolId, sessionId);
    await serve(poolId);
  }

  /** Call whenever a browser may have come free: on release, when a new one is there, when somebody left the line. */
  async function serve(poolId: string): Promise<void> {
    for (;;) {
      const served = await store.serve(poolId, nodeId);
      if (!served) return;
      if (served.nodeId === nodeId && !given(served.leaseId, served.sessionId)) await forgotten(poolId, served);
    }
  }

  /** It was given to somebody of ours who is no longer there, and whose place in the line was not cleared yet. */
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
    underWay: () => [...underWay],
    settled: (leaseId: string) => void underWay.delete(leaseId),

    /**
     * What we were told may have been lost, or we were taken for lost ourselves: asks what became of those who wait here.
     * Whose place in the line is gone gets it back.
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

    /** Whoever waits for a browser of this pool hears that there will be none. */
    close(poolId: string, name: string) {
      for (const waiter of waiting.values())
        if (waiter.poolId === poolId) waiter.ended(errors.pool_deleted({ pool: name }));
    },

    /** The service stops: every poll is over, and who asks again finds another node or the next service. */
    closeAll() {
      closed = true;
      for (const waiter of waiting.values()) waiter.ended(new PollOver());
    },
  };
}

/** None came free in time. */
class PollOver extends Error {
  override readonly name = 'PollOver';
}
