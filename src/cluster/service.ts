import type { EventBus } from '../events.ts';
import type { Keyring } from '../lib/seal.ts';
import { tokens } from '../lib/tokens.ts';
import { credentials } from './credential.ts';
import { membership, type MembershipOptions } from './membership.ts';
import { places } from './places.ts';
import type { NodeRow } from './store.ts';
import { traffic } from './traffic.ts';

export type Cluster = ReturnType<typeof cluster>;

/** A node as clients see it. */
interface Member {
  id: string;
  public_url: string;
  version: string;
  running: number;
  capacity: number;
  silent_ms: number;
}

/**
 * The nodes that share one database: which exist, which have room, and the connections between them. With a single node,
 * it is a list with one entry and sends nothing.
 */
export function cluster(
  options: Omit<MembershipOptions, 'keys' | 'onMembers'> & { keys: () => Keyring; events: EventBus },
) {
  const { id, load, events, log } = options;
  let known: string[] = [];

  const members = membership({ ...options, keys: () => options.keys().ids, onMembers });
  const credential = credentials({
    tokens: tokens(options.keys, () => members.now(), 'node to node'),
    now: () => members.now(),
  });
  const others = () => members.members.filter((node) => node.id !== id);
  const find = (nodeId: string) => members.members.find((node) => node.id === nodeId);
  const { read: placesRead, ...placing } = places({ id, load, others });
  const { read: trafficRead, close: endTraffic, ...passing } = traffic({ id, credential, find, log });

  function onMembers(nodes: readonly NodeRow[]) {
    const left = known.filter((nodeId) => !nodes.some((node) => node.id === nodeId));
    known = nodes.map((node) => node.id);
    for (const nodeId of left) if (nodeId !== id) events.publish('node.left', { nodeId });
    trafficRead(nodes);
    placesRead(nodes);
  }

  return {
    id,
    join: members.join,
    ready: members.ready,
    refresh: members.refresh,
    complaints: members.complaints,
    drain: members.drain,
    ...placing,
    ...passing,

    async leave(): Promise<void> {
      await members.leave();
      endTraffic();
    },

    /** Whether there are other nodes. */
    get company(): boolean {
      return members.members.length > 1;
    },

    members: (): Member[] =>
      members.members.map(({ id: nodeId, public_url, version, running, capacity, silent_ms }) => ({
        id: nodeId,
        public_url,
        version,
        ...(nodeId === id ? load() : { running, capacity }),
        silent_ms: Math.round(silent_ms),
      })),

    /** Host and port of the other nodes, which sessions must not reach. */
    *addresses(): Generator<URL> {
      for (const { internal_url, public_url } of others()) yield* [new URL(internal_url), new URL(public_url)];
    },

    /** Where clients reach a node; undefined for this node and for absent ones. */
    publicUrlOf: (nodeId: string) => (nodeId === id ? undefined : find(nodeId)?.public_url),

    /** Whether a node is a member, as far as the database knows now. */
    async knows(nodeId: string): Promise<boolean> {
      if (!find(nodeId)) await members.refresh(); // it may have joined since the last heartbeat
      return find(nodeId) !== undefined;
    },

    /** The capacity of all nodes together. */
    capacity: () => others().reduce((sum, node) => sum + node.capacity, load().capacity),
  };
}
