import { nodeStore } from '../../cluster/store.ts';
import type { Output } from '../output.ts';
import { visit } from './visit.ts';

export function listNodes(output: Output): Promise<void> {
  return visit(async ({ db }) => {
    const nodes = await nodeStore(db).list();
    if (nodes.length === 0 && output.format === 'table') return output.done('No node is running.');
    const rows = nodes.map((node) => ({
      node: node.id,
      public: node.public_url,
      internal: node.internal_url,
      version: node.version,
      running: `${node.running} of ${node.capacity}`,
      since: node.started_at.toISOString(),
      heard: `${Math.max(0, Math.round(node.silent_ms / 1000))} s ago`,
    }));
    output.list(rows, ['node', 'public', 'internal', 'version', 'running', 'since', 'heard']);
  });
}
