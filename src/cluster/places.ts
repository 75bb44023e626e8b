import { mostRoom, nearestRoom, type Room } from './placement.ts';
import type { NodeRow } from './store.ts';

type Node = Pick<NodeRow, 'id' | 'capacity' | 'running' | 'heartbeat_at'>;

/**
 * Chooses the node for a new session. A heartbeat reports the sessions of a node only every two seconds, so this node
 * counts the sessions that it sends to another one in between; otherwise a burst of sessions would all go to the same node.
 */
export function places({
  id,
  load,
  others,
}: {
  /** This node. */
  id: string;
  load: () => { capacity: number; running: number };
  others: () => readonly Node[];
}) {
  /** Sessions sent to a node since its last heartbeat, which does not count them yet. */
  const sent = new Map<string, { since: number; count: number }>();

  function rooms(): { self: Room; rest: Room[] } {
    const { capacity, running } = load();
    return {
      self: { id, free: capacity - running },
      rest: others().map((node) => ({
        id: node.id,
        free: node.capacity - node.running - (sent.get(node.id)?.count ?? 0),
      })),
    };
  }

  function count(nodeId: string) {
    if (nodeId === id) return;
    const heartbeat =
      others()
        .find((node) => node.id === nodeId)
        ?.heartbeat_at.getTime() ?? 0;
    const { since, count: before } = sent.get(nodeId) ?? { since: heartbeat, count: 0 };
    sent.set(nodeId, { since, count: before + 1 });
  }

  return {
    /** The node with the most room, except these; this node when no other has more. The new session is counted there. */
    place(except: ReadonlySet<string> = new Set()): string | undefined {
      const { self, rest } = rooms();
      const [first, ...more] = [self, ...rest].filter((node) => node.free > 0 && !except.has(node.id));
      if (!first) return undefined;
      const best = mostRoom(first, more).id;
      count(best);
      return best;
    },

    /** Another node for a session that was requested here; undefined when it is best made here. */
    placeElsewhere(): string | undefined {
      const { self, rest } = rooms();
      const best = nearestRoom(self, rest).id;
      if (best === id) return undefined;
      count(best);
      return best;
    },

    /** The nodes were read again: those with a later heartbeat have counted the sessions sent to them. */
    read(nodes: readonly Node[]) {
      for (const [nodeId, { since }] of sent) {
        const node = nodes.find((one) => one.id === nodeId);
        if (!node || node.heartbeat_at.getTime() > since) sent.delete(nodeId);
      }
    },
  };
}
