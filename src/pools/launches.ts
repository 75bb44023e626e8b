import type { ServiceError } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import type { Placed } from './nodes/anywhere.ts';
import type { PoolRow, PoolStore } from './store.ts';

/** A launch that failed on this node is retried after a second, then two, and at most after a minute. */
const longestPauseMs = 60_000;

/** Makes browsers of pools on this node, and pauses a pool if its browsers do not start here. */
export function poolLaunches({
  store,
  make,
  retire,
  onShelved,
  onLaunched,
  onFailed,
  onOver,
  log,
}: {
  store: Pick<PoolStore, 'shelve' | 'recordSuccess' | 'recordFailure'>;
  /** Makes one browser of the pool on this node and resolves with its id. */
  make: (pool: PoolRow, onPlaced: () => void) => Promise<string>;
  /** Ends browsers that have left the pool. */
  retire: (poolId: string, sessionIds: string[]) => void;
  onShelved: (poolId: string) => void;
  onLaunched: (outcome: 'launched' | 'failed') => void;
  /** Called when a launch has failed whose place was taken: the browser that it was to replace is missing again. */
  onFailed: (poolId: string) => void;
  /** Called when a launch has succeeded or failed: the pool is looked at again. */
  onOver: (poolId: string) => void;
  log: Log;
}) {
  const running = new Set<Promise<unknown>>();
  const failed = new Map<string, { count: number; until: number }>();

  async function launch(pool: PoolRow, placed: () => void): Promise<Placed> {
    try {
      const sessionId = await make(pool, placed);
      failed.delete(pool.id);
      onLaunched('launched');
      if (pool.last_error) await store.recordSuccess(pool.id);
      const shelved = await store.shelve(sessionId);
      if (shelved === 'shelved') onShelved(pool.id);
      if (shelved === 'expelled') retire(pool.id, [sessionId]); // the pool changed while it was made
      return 'placed';
    } catch (error) {
      return refusal(pool, error as ServiceError);
    }
  }

  async function refusal(pool: PoolRow, { code, message }: ServiceError): Promise<Placed> {
    if (code === 'pool_full') return 'pool_full';
    if (code === 'capacity_exhausted' || code === 'shutting_down') return 'node_full';
    if (code === 'session_limit_reached') {
      if (pool.last_error !== message) await store.recordFailure(pool.id, message);
      return 'project_full';
    }
    const count = (failed.get(pool.id)?.count ?? 0) + 1;
    const pauseMs = Math.min(longestPauseMs, 500 * 2 ** Math.min(count, 7));
    failed.set(pool.id, { count, until: performance.now() + pauseMs });
    onLaunched('failed');
    log.warn({ pool: pool.id, error: message, retryMs: pauseMs }, 'pool.launch_failed');
    await store.recordFailure(pool.id, message);
    return 'refused';
  }

  return {
    /** Resolves when the session's place is taken, so that later counts include it; the launch itself takes longer. */
    start(pool: PoolRow): Promise<Placed> {
      return new Promise((resolve) => {
        let taken = false;
        const placed = () => ((taken = true), resolve('placed'));
        const launching = launch(pool, placed)
          .catch((): Placed => 'refused')
          .then((outcome) => {
            resolve(outcome);
            if (taken && outcome !== 'placed') onFailed(pool.id);
            running.delete(launching);
            onOver(pool.id);
          });
        running.add(launching);
      });
    },

    /** Until when (`performance.now()`) the pool is paused here, after a launch that failed; 0 when it never was. */
    pausedUntil: (poolId: string) => failed.get(poolId)?.until ?? 0,

    forget: (poolId: string) => void failed.delete(poolId),

    /** Resolves when no launch runs any more. */
    async settled(): Promise<void> {
      await Promise.all(running);
    },
  };
}
