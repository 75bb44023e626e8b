import { measureNodes } from '../cluster/metrics.ts';
import { relay, relayChannel } from '../cluster/relay.ts';
import type { Cluster } from '../cluster/service.ts';
import type { Ground } from './ground.ts';

/** Nodes that join and leave, and the events of other nodes. */
export function listenToNodes({ store, events, metrics, log }: Ground, nodes: Cluster) {
  const { anchor, db } = store;
  anchor.on('corral_nodes', () => void nodes.refresh());
  anchor.onGap(() => void nodes.refresh());
  const which = ['project.closed', 'credential.removed', 'credential_provider.removed'] as const;
  const relayed = relay({ db, id: nodes.id, events, which, log });
  anchor.on(relayChannel, (payload) => relayed.hear(payload));
  measureNodes(metrics, nodes);
}
