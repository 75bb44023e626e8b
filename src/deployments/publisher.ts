import { BuildError, type Built } from '../chromium/workshop/build.ts';
import { newId } from '../lib/ids.ts';
import type { Db } from '../store/db.ts';
import { appStore } from './app-store.ts';
import { invocationStore } from './invocation-store.ts';
import type { LineWriter } from './logs.ts';
import type { DeploymentSecrets } from './secrets.ts';
import { deploymentStore, type DeploymentRow } from './store.ts';

/** The label that a new deployment takes over without `force`. */
const latest = 'latest';

export interface Keys {
  /** A key of the project that is listed nowhere. */
  createHidden(projectId: string, name: string, within: Db): Promise<{ id: string; key: string }>;
  removeHidden(id: string): Promise<void>;
}

export function publisher(deps: { db: Db; secrets: DeploymentSecrets; keys: Keys; stopReplaced: () => Promise<void> }) {
  const { db, secrets, keys } = deps;

  /** Makes a built deployment run: it takes its apps over from the deployments that had them. */
  return async function publish(row: DeploymentRow, built: Built, lines: LineWriter): Promise<void> {
    const { id, project_id: projectId, version } = row;
    await lines.flush();
    const replaced = await db.transaction(async (tx) => {
      const [within, apps] = [deploymentStore(tx), appStore(tx)];
      await apps.lock(projectId);
      // With all the rest or not at all: a key that no deployment has would never be withdrawn.
      const key = await keys.createHidden(projectId, `deployment ${id}`, tx);
      await secrets.putKey(id, key.key, tx);
      const had: string[] = [];
      for (const { name, actions } of built.apps) {
        const there = await apps.find(projectId, name, version);
        if (there && version !== latest && !row.force)
          throw new BuildError(
            `App '${name}' has a version '${version}' already, of deployment ${there.deployment_id}. Send force: true to replace it, or another version.`,
          );
        if (there) {
          had.push(there.deployment_id);
          await invocationStore(tx).moveQueue(there.deployment_id, id, name);
        }
        await apps.give({
          id: newId(),
          project_id: projectId,
          app_name: name,
          version,
          deployment_id: id,
          actions,
        });
      }
      const moved = await within.apply(id, 'built', { entry: built.entry, keyId: key.id });
      if (!moved) throw new BuildError('It was stopped while it was built.');
      return within.markReplaced(had);
    });
    if (replaced.length > 0) await deps.stopReplaced();
  };
}
