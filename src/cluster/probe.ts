import type { Cluster } from './service.ts';

/** The part of `/ready` about the nodes: the list of them, and the conflicts between them. */
export function nodesProbe(nodes: Pick<Cluster, 'complaints' | 'members'>) {
  return {
    name: 'nodes',
    required: false,
    check: async () => nodes.complaints().join(' ') || undefined,
    nodes: () => nodes.members(),
  };
}
