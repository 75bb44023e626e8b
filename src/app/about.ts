import type { Isolation } from '../chromium/browser/launch.ts';
import { doctor } from '../chromium/sandbox/doctor.ts';
import type { Cluster } from '../cluster/service.ts';
import { version } from '../version.ts';
import type { Ground } from './ground.ts';
import { settingsInForce } from './settings-in-force.ts';

/** What `GET /about` answers on this node. */
export function openAbout(
  { config, store, loop, sessionDisk, opened }: Ground,
  {
    isolation,
    nodes,
    publicUrl,
    internalUrl,
  }: { isolation: Isolation; nodes: Cluster; publicUrl: () => string; internalUrl: () => string },
) {
  const { headlessShell, full } = isolation.engines;
  const { capacity, spares } = config;
  const looking = doctor(config);
  opened(() => looking.close());
  return async function about() {
    const [postgresql, diagnosis] = await Promise.all([store.serverVersion(), looking.diagnose()]);
    const { checkedAt, findings, mends, failure = null } = diagnosis;
    const found = {
      publicUrl: publicUrl(),
      internalUrl: internalUrl(),
      sessionDisk: String(sessionDisk),
      maxSessions: String(capacity),
      warmSpares: `headless:${spares.headless},headful:${spares.headful}`,
      chromium: full?.path ?? '',
      headlessShell: headlessShell?.path ?? '',
    };
    return {
      node_id: nodes.id,
      public_url: publicUrl(),
      versions: {
        corral: version,
        node: process.versions.node,
        chromium: full?.version ?? null,
        headless_shell: headlessShell?.version ?? null,
        postgresql,
      },
      event_loop: {
        longest_stop_ms: Math.round(loop.longestMs()),
        longest_stop_since_start_ms: Math.round(loop.longest()?.ms ?? 0),
        longest_stop_at: loop.longest()?.at.toISOString() ?? null,
      },
      settings: settingsInForce(config, found),
      doctor: { checked_at: checkedAt.toISOString(), findings: [...findings], mends: [...mends], failure },
    };
  };
}
