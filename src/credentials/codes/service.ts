import type { Log } from '../../lib/log.ts';
import type { Db } from '../../store/db.ts';
import type { Secrets } from '../../store/secrets.ts';
import { turns } from '../providers/turns.ts';
import { postedOf } from './contents.ts';
import { codeIn } from './find-code.ts';
import type { Mailboxes } from './mailbox.ts';
import { postedMessage } from './posted.ts';
import { hashOf } from './settings.ts';
import { codeSourceStore } from './store.ts';
import { keptSeconds, loginCodes, type LoginCodes } from './watch.ts';

/** Codes of one source that wait for a login. */
const mostKept = 10;
/** No login looks for mails that are older. */
const usedDays = 2;

export type CodeSourceService = ReturnType<typeof codeSourceService>;

/** One-time codes that arrive without a person: in mailboxes, and by requests of programs. */
export function codeSourceService(deps: { db: Db; secrets: Secrets; mailboxes: Mailboxes; log: Log }) {
  const { db, secrets, log } = deps;
  // A mailbox that is read takes a thread and a connection for as long as its login waits.
  const inTurn = turns({ atOnce: 16, eachProvider: 4, eachProject: 8, mostWaiting: 50, waitMs: 60_000 });

  async function forgetOld(tx: Db): Promise<void> {
    for (const id of await codeSourceStore(tx).forgetOldCodes(keptSeconds)) await secrets.remove(postedOf, id, tx);
  }

  return {
    /** The source of an address. Undefined for an unknown one, after the same work. */
    sourceOf: (token: string): Promise<string | undefined> => codeSourceStore(db).byToken(hashOf(token)),

    /** Takes what a program posted. A message without a code is forgotten. */
    async receive(sourceId: string, type: string, body: string): Promise<void> {
      const code = codeIn(postedMessage(type, body));
      if (code === undefined) {
        log.info({ source: sourceId }, 'one_time_code.none_in_message');
        return;
      }
      await db.transaction(async (tx) => {
        const store = codeSourceStore(tx);
        if (!(await store.lock(sourceId))) return;
        await secrets.put(postedOf, await store.addCode(sourceId), code, tx);
        for (const id of await store.forgetCodes([sourceId], mostKept)) await secrets.remove(postedOf, id, tx);
        await forgetOld(tx);
      });
    },

    forLogin: (login: { projectId: string; credentialId: string }): LoginCodes =>
      loginCodes({ ...deps, inTurn }, login),

    /** Removes posted codes that no login took, and the marks of old mails. */
    tidy: (): Promise<void> =>
      db.transaction(async (tx) => {
        await forgetOld(tx);
        await codeSourceStore(tx).forgetOldMails(usedDays);
      }),
  };
}
