import type { EventBus } from '../events.ts';
import type { Log } from '../lib/log.ts';
import type { Db } from '../store/db.ts';
import { replayStore } from './replays/store.ts';
import { sessionStore } from './store.ts';

/**
 * Settles the sessions and recordings of a node that disappeared. The node itself does this when it starts again (`start` in service.ts); otherwise
 * another node does it here, in the transaction that removes the node from the list.
 */
export function settleLostNode({ events, log }: { events: EventBus; log: Log }) {
  return async (nodeId: string, within: Db, silentMs: number): Promise<() => void> => {
    const reason = 'node_lost';
    const lost = await sessionStore(within).settleAll(nodeId, reason, silentMs);
    await replayStore(within).loseAll(nodeId);
    return () => {
      if (lost.length > 0) log.warn({ node: nodeId, sessions: lost.length }, 'sessions.settled_for_lost_node');
      for (const { id, project_id, pool_id } of lost) {
        events.publish('session.ended', { sessionId: id, projectId: project_id, poolId: pool_id, reason });
      }
    };
  };
}

export const nodesWithSessions = (within: Db): Promise<string[]> => sessionStore(within).nodesInUse();
