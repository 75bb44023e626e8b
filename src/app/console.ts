import type { Cluster } from '../cluster/service.ts';
import { consoleLinks } from '../console/links.ts';
import { consoleWeb, frameOrigins } from '../console/web.ts';
import type { Ground } from './ground.ts';
import type { Organisation } from './organisation.ts';

/** The console: its page, and the links that sign in to it. Live views are framed from the nodes that run their sessions. */
export function openConsole(
  { config, store, secrets }: Ground,
  { org, nodes, publicUrl }: { org: Organisation; nodes: Cluster; publicUrl: () => string },
) {
  const frames = () =>
    frameOrigins([publicUrl(), config.sessionHosts, ...nodes.members().map((node) => node.public_url)]);
  return { links: consoleLinks({ db: store.db, secrets, keys: org.keys }), web: consoleWeb({ frames }) };
}
