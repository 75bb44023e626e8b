import type { Db } from '../../store/db.ts';
import type { Secrets } from '../../store/secrets.ts';
import type { RefuseHost } from '../providers/settings.ts';
import type { CodeSourceInput } from './schema.ts';
import { newSources, type NewSource } from './settings.ts';
import { codeSourceStore } from './store.ts';

/** The kinds under which passwords of mailboxes, and posted codes, are kept in the secrets. */
export const mailboxOf = 'one-time code mailbox';
export const postedOf = 'one-time code';

/** Writes the sources of a credential with their sealed parts, in the transaction of the credential. */
export function codeSourceContents({ secrets, refuseHost }: { secrets: Secrets; refuseHost: RefuseHost }) {
  async function forget(ids: string[], tx: Db): Promise<void> {
    const store = codeSourceStore(tx);
    for (const codeId of await store.forgetCodes(ids, 0)) await secrets.remove(postedOf, codeId, tx);
    await store.remove(ids);
    for (const id of ids) await secrets.remove(mailboxOf, id, tx);
  }

  return {
    /** Checks a list before the transaction: a host is looked up, and the credential is not locked meanwhile. */
    async check(credentialId: string, inputs: readonly CodeSourceInput[], db: Db): Promise<NewSource[]> {
      const known = await codeSourceStore(db).of(credentialId);
      return newSources(inputs, { credentialId, known, refuseHost });
    },

    /** Replaces the list. A source that another request has removed since the check is created again, with what was sent. */
    async replace(credentialId: string, sources: readonly NewSource[], tx: Db): Promise<void> {
      const store = codeSourceStore(tx);
      const kept = new Set(sources.map(({ row }) => row.id));
      const gone = (await store.of(credentialId)).filter(({ id }) => !kept.has(id)).map(({ id }) => id);
      await forget(gone, tx);
      for (const { row, password } of sources) {
        await store.put(row);
        if (password !== undefined) await secrets.put(mailboxOf, row.id, password, tx);
      }
    },

    async remove(credentialId: string, tx: Db): Promise<void> {
      await forget(
        (await codeSourceStore(tx).of(credentialId)).map(({ id }) => id),
        tx,
      );
    },
  };
}
