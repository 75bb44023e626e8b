import { Counter, Gauge, type Registry } from 'prom-client';
import type { Cluster } from './service.ts';

export function measureNodes(registry: Registry, nodes: Pick<Cluster, 'members' | 'forwarded'>): void {
  registry.registerMetric(
    new Gauge({
      name: 'corral_nodes',
      help: 'Nodes that share the database, this one included.',
      registers: [],
      collect() {
        this.set(nodes.members().length);
      },
    }),
  );
  registry.registerMetric(
    new Counter({
      name: 'corral_node_forwarded_total',
      help: 'Requests that came here and were sent on to the node that answers them.',
      labelNames: ['kind'],
      registers: [],
      collect() {
        this.reset();
        for (const [kind, count] of Object.entries(nodes.forwarded())) this.inc({ kind }, count);
      },
    }),
  );
}
