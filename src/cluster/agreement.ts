import type { NodeRow } from './store.ts';
import { lostAfterMs } from './store.ts';

/** A node that may not join the present nodes. The message says which node differs, in what, and what to do. */
export class NodesDisagree extends Error {
  override readonly name = 'NodesDisagree';
}

type Side = Pick<NodeRow, 'id' | 'version' | 'keys'>;
type Other = Side & Pick<NodeRow, 'internal_url' | 'silent_ms'>;

/** Refuses when a present node does not fit. Nodes that are silent for too long count as dead. */
export function refuseStrangers(self: Side, nodes: readonly Other[]): void {
  for (const node of nodes) {
    if (node.id === self.id || node.silent_ms >= lostAfterMs) continue;
    const difference = disagreement(self, node);
    if (difference) throw new NodesDisagree(difference);
  }
}

export function disagreement(self: Side, node: Other): string | undefined {
  const name = `Node ${node.id} (${node.internal_url})`;
  if (node.version !== self.version) {
    return (
      `${name} runs version ${node.version}, and this one is version ${self.version}; nodes that share a database run the same version. ` +
      `Stop that node first, or start version ${node.version} here.`
    );
  }
  if (!sameKeys(self.keys, node.keys)) {
    return (
      `${name} has another secret key (${node.keys[0]}) than this one (${self.keys[0]}), so neither can read data that the other sealed or signed. ` +
      'Give both the same CORRAL_SECRET_KEY, or copy the file secret-key from its data directory into the one here.'
    );
  }
  return undefined;
}

/** Each node knows the other's current key. So keys can be rotated node by node: the new key is first put second on all nodes. */
function sameKeys(ours: readonly string[], theirs: readonly string[]): boolean {
  return theirs.includes(ours[0] ?? '') && ours.includes(theirs[0] ?? '');
}
