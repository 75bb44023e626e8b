import { addKey, openKeys, secretStore } from '../../store/secrets.ts';
import type { Output } from '../output.ts';
import { visit } from './visit.ts';

export function rotateSecrets(output: Output): Promise<void> {
  return visit(async ({ db, config }) => {
    // With CORRAL_SECRET_KEY the operator keeps the keys and puts the new one first there; this only seals the secrets again.
    if (!config.secretKey) {
      await openKeys(config.dataDir, ''); // creates the first key if it is missing, so that the new key is the second
      await addKey(config.dataDir);
    }
    const keys = await openKeys(config.dataDir, config.secretKey);
    const { changed: count, unopened } = await secretStore(db, keys).reseal();
    const { current } = keys.ring();
    const lines = [
      ...unopened.map(
        ({ kind, owner }) =>
          `Not changed: the ${kind} of ${owner}, which none of the keys opens. Set it again, or restore its key.`,
      ),
      `Sealed ${count} ${count === 1 ? 'value' : 'values'} with key ${current}. The older keys still open backups.`,
    ];
    const left = unopened.map(({ kind, owner }) => ({ kind, owner }));
    output.done(lines.join('\n'), { sealed: count, key: current, left });
  });
}
