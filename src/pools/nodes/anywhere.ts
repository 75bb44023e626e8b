import { setTimeout as sleep } from 'node:timers/promises';
import { errors } from '../../errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Session } from '../../sessions/schema.ts';
import type { SessionService } from '../../sessions/service.ts';

/** What pools ask of sessions. */
export interface PooledSessions extends Pick<SessionService, 'makePooled' | 'lend' | 'stop'> {
  /** Never rejects: a browser that cannot be told is on a node that is about to be given up. */
  takeBack(id: string): Promise<void>;
}

/** Asks another node, and resolves with what it answered. */
export type Ask = (
  nodeId: string,
  request: { method: string; url: string; body?: unknown },
) => Promise<{ status: number; body: unknown }>;

/** A node that does not answer is given up after ten seconds, and its sessions are settled then. */
const patienceMs = 20_000;

/** A pool's browsers, on whichever node they are: here by a call, elsewhere by asking the node that has them. */
export function sessionsAnywhere({
  sessions,
  nodeId,
  ask,
  log,
}: {
  sessions: Pick<SessionService, 'makePooled' | 'lend' | 'stop' | 'takeBack' | 'nodeOf'>;
  nodeId: string;
  ask: Ask;
  log: Log;
}): PooledSessions {
  /** The other node that has it; undefined when it is ours, or nobody's. */
  async function elsewhere(id: string): Promise<string | undefined> {
    const owner = await sessions.nodeOf({ id });
    return owner === nodeId ? undefined : owner;
  }

  return {
    makePooled: sessions.makePooled,

    async lend(id, timeoutSeconds, startUrl) {
      const owner = await elsewhere(id);
      if (!owner) return sessions.lend(id, timeoutSeconds, startUrl);
      const body = { timeout_seconds: timeoutSeconds, ...(startUrl === undefined ? {} : { start_url: startUrl }) };
      const answer = await ask(owner, { method: 'POST', url: `/nodes/sessions/${id}/lend`, body });
      if (answer.status !== 200) throw errors.session_not_found({ session: id });
      return answer.body as Session;
    },

    async takeBack(id) {
      try {
        const owner = await elsewhere(id);
        if (owner) await ask(owner, { method: 'POST', url: `/nodes/sessions/${id}/take_back` });
        else await sessions.takeBack(id);
      } catch (error) {
        log.warn({ session: id, error: (error as Error).message }, 'pool.not_taken_back');
      }
    },

    async stop(id, reason, detail) {
      for (const until = performance.now() + patienceMs; ; await sleep(1000)) {
        try {
          const owner = await elsewhere(id);
          if (!owner) return await sessions.stop(id, reason, detail);
          const body = { reason, ...(detail === undefined ? {} : { detail }) };
          await ask(owner, { method: 'POST', url: `/nodes/sessions/${id}/stop`, body });
          return;
        } catch (error) {
          log.warn({ session: id, error: (error as Error).message }, 'pool.browser_not_stopped');
          if (performance.now() > until) return; // its node is given up by now, and its rows are settled
        }
      }
    },
  };
}
