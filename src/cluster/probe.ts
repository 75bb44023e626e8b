import type { Cluster } from './service.ts';

/** What `/ready` says of the nodes: all of them, and what is wrong between them. */
export function nodesProbe(nodes: Pick<Cluster, 'complaints' | 'members'>) {
  return {
    name: 'nodes',
    required: false,
    check: async () => nodes.complaints().join(' ') || undefined,
    nodes: () => nodes.members(),
  };
}
