import { errors } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import type { PoolStore } from './store.ts';

/** What came of waiting: a lease on a browser, or how many still stand before you. */
export type Turn = { leaseId: string; sessionId: string } | { ahead: number };

export type Acquirer = ReturnType<typeof acquirer>;

/**
 * Acquiring is always waiting; sometimes the wait is zero. The database decides who holds what and whose turn it is, `serve`
 * is the only place where the two meet, and waking up is an event: in this process by `given`, from other nodes by a
 * notification that ends up there, too.
 */
export function acquirer({
  store,
  nodeId,
  onNeed,
}: {
  store: PoolStore;
  nodeId: string;
  /** Somebody waits: the pool may have to make one more. */
  onNeed: (poolId: string) => void;
}) {
  /** Who waits in this process, by the lease they are to get. */
  const waiting = new Map<
    string,
    { poolId: string; given: (sessionId: string) => void; failed: (error: Error) => void }
  >();

  async function acquire(poolId: string, waitMs: number, hungUp: AbortSignal): Promise<Turn> {
    const leaseId = newId('lease_');
    const now = await store.leaseNow(poolId, leaseId);
    if (now) return { leaseId, sessionId: now.id };
    if (waitMs === 0) return { ahead: await store.waiting(poolId) };

    hungUp.throwIfAborted();
    const deadline = AbortSignal.timeout(Math.ceil(waitMs));
    const turn = wait(poolId, leaseId, AbortSignal.any([deadline, hungUp]));
    turn.catch(() => {}); // awaited below, after the line was joined
    try {
      await store.join(poolId, nodeId, leaseId);
      onNeed(poolId);
      void serve(poolId); // one may have come back between asking and joining
      const sessionId = await turn;
      await store.leave(leaseId);
      return { leaseId, sessionId };
    } catch (error) {
      waiting.delete(leaseId);
      // Out of the line first; what was given in that very moment is used if somebody is there, else handed on.
      const left = await store.leave(leaseId);
      if (left?.sessionId && !hungUp.aborted) return { leaseId, sessionId: left.sessionId };
      if (left?.sessionId) await putBack(poolId, left.sessionId);
      if (deadline.aborted && !hungUp.aborted) return { ahead: left?.ahead ?? 0 };
      throw error;
    }
  }

  function wait(poolId: string, leaseId: string, signal: AbortSignal): Promise<string> {
    return new Promise<string>((resolve, reject) => {
      const leave = () => reject(signal.reason as Error);
      const done = () => {
        waiting.delete(leaseId);
        signal.removeEventListener('abort', leave);
      };
      waiting.set(leaseId, {
        poolId,
        given: (sessionId) => (done(), resolve(sessionId)),
        failed: (error) => (done(), reject(error)),
      });
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  async function putBack(poolId: string, sessionId: string) {
    await store.endLease(poolId, sessionId, true);
    await store.shelve(sessionId); // nobody has used it
    await serve(poolId);
  }

  /** Call whenever a browser may have come free: on release, when a new one is there, when somebody left the line. */
  async function serve(poolId: string): Promise<void> {
    for (;;) {
      const served = await store.serve(poolId);
      if (!served) return;
      if (served.nodeId !== nodeId)
        await store.tell({ given: served.leaseId, to: served.nodeId, sessionId: served.sessionId });
      else if (!given(served.leaseId, served.sessionId)) await forgotten(poolId, served);
    }
  }

  /** It was given to somebody of ours who is no longer there, and whose place in the line was not cleared yet. */
  async function forgotten(poolId: string, { leaseId, sessionId }: { leaseId: string; sessionId: string }) {
    const left = await store.leave(leaseId);
    if (left) await putBack(poolId, sessionId);
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

    /** Whoever waits for a browser of this pool hears that there will be none. */
    close(poolId: string, name: string) {
      for (const waiter of waiting.values())
        if (waiter.poolId === poolId) waiter.failed(errors.pool_deleted({ pool: name }));
    },
  };
}
