import { finishedWithin } from '../lib/deadline.ts';
import { errors, ServiceError } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import type { Session } from '../sessions/schema.ts';
import { captureOf, captureOnAcquire } from '../telemetry/capture.ts';
import type { Acquirer, SecondTurn } from './acquire.ts';
import { defaultConfig, fillSeconds } from './config.ts';
import type { PoolMetrics } from './metrics.ts';
import type { SessionsAnywhere } from './nodes/anywhere.ts';
import type { Acquire } from './schema.ts';
import type { Lease, PoolRow, PoolStore } from './store.ts';

/** Clients of this interface give a request up after 60 s, and 55 is promised; the rest is for handing the browser over. */
const longestWaitMs = 50_000;
const longestSaveMs = 45_000;

/** A browser that was acquired. `undelivered` takes it back when the response did not reach the client. */
export interface Acquired {
  session: Session;
  undelivered(): void;
}

/** Lends the browsers of pools, and takes them back. */
export function poolLeases({
  store,
  queue,
  sessions,
  find,
  served,
  renew,
  retire,
  metrics,
  log,
}: {
  store: PoolStore;
  queue: Acquirer;
  sessions: SessionsAnywhere;
  find: (projectId: string, idOrName: string) => Promise<PoolRow>;
  /** A browser is on the shelf: assigns it to the head of the queue, if a client waits. */
  served: (poolId: string) => Promise<void>;
  /** Makes another browser at once to replace a browser that leaves the pool. */
  renew: (poolId: string) => void;
  /** Ends browsers that have left the pool. */
  retire: (poolId: string, sessionIds: string[]) => void;
  metrics: PoolMetrics;
  log: Log;
}) {
  async function acquire(
    projectId: string,
    keyId: string,
    idOrName: string,
    request: Acquire,
    hungUp: AbortSignal,
  ): Promise<Acquired | { ahead: number }> {
    const started = performance.now();
    const elapsed = () => performance.now() - started;
    const pool = await find(projectId, idOrName);
    const telemetry = [...captureOnAcquire(captureOf(pool.config.telemetry), request.telemetry)];
    const waitMs = Math.min(longestWaitMs, (request.acquire_timeout_seconds ?? fillSeconds(pool)) * 1000);
    let again: SecondTurn | undefined;
    for (;;) {
      const turn = await queue.acquire(pool.id, Math.max(0, waitMs - elapsed()), hungUp, again);
      const waited = elapsed();
      metrics.waits.observe(waited / 1000);
      if ('ahead' in turn) {
        metrics.acquires.observe({ outcome: 'timed_out' }, waited / 1000);
        return turn;
      }
      const { sessionId, leaseId } = turn;
      const undo = () => giveBack(pool.id, sessionId, leaseId);
      try {
        const session = await sessions.lend(sessionId, { ...leaseOf(pool, leaseId, request), telemetry }, keyId);
        hungUp.throwIfAborted();
        metrics.acquires.observe({ outcome: 'leased' }, elapsed() / 1000);
        return { session, undelivered: () => void undo() };
      } catch (error) {
        if (hungUp.aborted) {
          await undo(); // the client never got it
          throw error;
        }
        if (error instanceof ServiceError && error.code === 'already_exists') {
          await putBack(pool.id, sessionId, leaseId);
          throw error;
        }
        // The browser does not answer, or the lease has ended: it is replaced, and the client keeps its place in the queue.
        log.warn({ pool: pool.id, session: sessionId, error: (error as Error).message }, 'pool.browser_unfit');
        const { place } = turn;
        const discard = () => replace(pool.id, sessionId, leaseId).finally(() => queue.settled(leaseId));
        if (place === undefined) await discard();
        again = place === undefined ? undefined : { place, leaseId, discard };
      } finally {
        if (again?.leaseId !== leaseId) queue.settled(leaseId);
      }
    }
  }

  /** Ends a lease that its client never received. Never rejects: if the database is unreachable now, `tidy` finds the lease later. */
  async function giveBack(poolId: string, sessionId: string, leaseId: string): Promise<void> {
    try {
      const returned = await sessions.takeBack(sessionId, leaseId);
      await (returned === 'unused' ? putBack : replace)(poolId, sessionId, leaseId);
    } catch (error) {
      log.warn({ pool: poolId, session: sessionId, error: (error as Error).message }, 'pool.not_given_back');
    }
  }

  /** Ends a lease together with its browser, and starts a new browser in its place. False: the lease has ended before. */
  async function replace(poolId: string, sessionId: string, leaseId: string): Promise<boolean> {
    if (!(await store.endLease(sessionId, leaseId))) return false;
    renew(poolId);
    retire(poolId, [sessionId]);
    return true;
  }

  /** Ends a lease and makes its browser idle again. False: the lease has ended before. */
  async function putBack(poolId: string, sessionId: string, leaseId: string | null): Promise<boolean> {
    const shelved = await store.shelve(sessionId, leaseId);
    if (shelved === 'shelved') await served(poolId);
    if (shelved === 'expelled') {
      renew(poolId);
      retire(poolId, [sessionId]);
    }
    return shelved !== undefined;
  }

  /** Ways to end a lease. */
  const endings = {
    unused: putBack,
    kept: putBack,
    renewed: replace,
    async destroyed(poolId: string, sessionId: string, leaseId: string): Promise<boolean> {
      const ended = await store.endLease(sessionId, leaseId);
      if (ended) retire(poolId, [sessionId]);
      return ended !== undefined;
    },
  };

  /**
   * Puts a clean browser back on the shelf at once: the same one when no client used it, otherwise a new one in its
   * place: CDP cannot clear the HTTP-auth cache, HSTS, DNS or open connections.
   */
  async function release(projectId: string, idOrName: string, sessionId: string, reuse: boolean): Promise<void> {
    const pool = await find(projectId, idOrName);
    const leaseId = await store.leaseOn(pool.id, sessionId);
    if (!leaseId) throw errors.not_leased({ session: sessionId, pool: idOrName });
    const returned = await sessions.takeBack(sessionId, leaseId); // disconnects its clients before it can be lent again
    const ownProfile = await store.hasOwnProfile(sessionId); // afterwards: a change that was under way may have attached one
    const kept = pool.config.reset_on_release === false && !ownProfile && returned === 'used';
    const how = !reuse ? 'destroyed' : returned === 'unused' ? 'unused' : kept ? 'kept' : 'renewed';
    const ended = await endings[how](pool.id, sessionId, leaseId);
    if (!ended) throw errors.not_leased({ session: sessionId, pool: idOrName });
    metrics.releases.inc({ how });
    // The caller may rely on the profile being saved; if saving takes too long, it continues without the caller.
    const saved = ownProfile && sessions.stop(sessionId, 'retired');
    if (saved) await finishedWithin(longestSaveMs, saved);
  }

  return { acquire, release, putBack, replace };
}

function leaseOf(pool: PoolRow, id: string, request: Acquire): Omit<Lease, 'telemetry'> {
  return {
    id,
    name: request.name ?? null,
    tags: request.tags ?? {},
    timeoutSeconds: pool.config.timeout_seconds ?? defaultConfig.timeout_seconds,
    startUrl: (request.start_url ?? pool.config.start_url) || null, // an empty one opens none for this lease
  };
}
