import { setTimeout as sleep } from 'node:timers/promises';
import { errors } from '../../errors.ts';
import type { Session } from '../../sessions/schema.ts';
import type { SessionService } from '../../sessions/service.ts';
import { uniqueViolation, type Db } from '../../store/db.ts';
import { poolStore, type Lease } from '../store.ts';

/** A browser that has not woken up and answered within this time is not fit to be lent. */
const healthMs = 4000;

export type SessionsHere = ReturnType<typeof sessionsHere>;

/** Operations on the pool browsers of this node. */
export function sessionsHere({
  db,
  sessions,
}: {
  db: Db;
  sessions: Pick<SessionService, 'lend' | 'takeBack' | 'stop' | 'isHere' | 'leaseOf'>;
}) {
  const store = poolStore(db);
  return {
    has: sessions.isHere,
    takeBack: sessions.takeBack,
    stop: sessions.stop,
    leaseOf: sessions.leaseOf,

    /**
     * Hands a browser over to the holder of the lease. Rejects when the lease has ended, when its name is taken, and when
     * the browser does not answer.
     */
    async lend(id: string, lease: Lease, keyId: string): Promise<Session> {
      try {
        if (!(await store.describeLease(id, lease))) throw errors.session_not_found({ session: id });
      } catch (error) {
        if (uniqueViolation(error) !== 'sessions_name') throw error;
        throw errors.already_exists({ thing: 'session', name: lease.name ?? '' });
      }
      const late = new AbortController();
      const lent = sessions.lend(id, lease, keyId);
      lent.catch(() => {});
      try {
        return await Promise.race([lent, unlessWithin(healthMs, late.signal)]);
      } finally {
        late.abort();
      }
    },
  };
}

async function unlessWithin(ms: number, signal: AbortSignal): Promise<never> {
  await sleep(ms, undefined, { signal }).catch(() => {});
  throw new Error(`The browser did not answer within ${ms / 1000} s.`);
}
