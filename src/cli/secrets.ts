import { addKey, openKeys, secretStore } from '../store/secrets.ts';
import { UsageError, type Command } from './command.ts';

export const secretsCommand: Command = {
  usage: [
    'secrets rotate                                              make a new service key and seal everything with it',
  ],
  options: {},
  async run({ db, config, positionals, print }) {
    const [verb] = positionals;
    if (verb !== 'rotate') throw new UsageError(`'corral secrets' takes rotate${verb ? `, not '${verb}'` : ''}.`);
    // With CORRAL_SECRET_KEY the operator keeps the keys and puts the new one first there; this only seals anew.
    if (!config.secretKey) {
      await openKeys(config.dataDir, ''); // makes the first key if there is none, so that the new key is the second
      await addKey(config.dataDir);
    }
    const keys = await openKeys(config.dataDir, config.secretKey);
    const { changed: count, unopened } = await secretStore(db, keys).reseal();
    for (const { kind, owner } of unopened)
      print(
        `Left as it is: the ${kind} of ${owner}, which none of the keys opens. Set it anew, or bring its key back.`,
      );
    print(
      `Sealed ${count} ${count === 1 ? 'value' : 'values'} with key ${keys.ring().current}. The older keys still open what is in backups.`,
    );
  },
};
