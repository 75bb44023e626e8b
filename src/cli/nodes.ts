import { nodeStore } from '../cluster/store.ts';
import { table, UsageError, type Command } from './command.ts';

export const nodesCommand: Command = {
  usage: ['nodes                                                       the nodes that share the database'],
  options: {},
  async run({ db, positionals, print }) {
    if (positionals.length > 0) throw new UsageError(`'corral nodes' takes nothing, not '${positionals[0]}'.`);
    const nodes = await nodeStore(db).list();
    if (nodes.length === 0) return print('No node is running.');
    const rows = nodes.map((node) => [
      node.id,
      node.public_url,
      node.internal_url,
      node.version,
      `${node.running} of ${node.capacity}`,
      node.started_at.toISOString(),
      `${Math.max(0, Math.round(node.silent_ms / 1000))} s ago`,
    ]);
    print(table([['NODE', 'PUBLIC', 'INTERNAL', 'VERSION', 'RUNNING', 'SINCE', 'HEARD'], ...rows]));
  },
};
