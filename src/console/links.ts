import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { errors } from '../errors.ts';
import { pick } from '../lib/ids.ts';
import { CannotOpen } from '../lib/seal.ts';
import type { ApiKeyService } from '../org/api-keys.ts';
import type { CreatedApiKey } from '../org/schema.ts';
import { strangers } from '../org/strangers.ts';
import type { Db } from '../store/db.ts';
import type { Secrets } from '../store/secrets.ts';
import { linkKind, linkStore } from './store.ts';

const alphanumeric = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
/** Time to copy the link from a terminal into a browser, and not much more. */
export const linkMinutes = 15;

export type ConsoleLinks = ReturnType<typeof consoleLinks>;

/**
 * Sign-in links. The database has the hash of a code, and sealed beside it when the code ends and which project it is for. The first
 * exchange removes that row, so a code works once on all nodes together. The code is in the fragment of the address, which browsers
 * send to no server and no proxy logs.
 */
export function consoleLinks(room: {
  db: Db;
  secrets: Secrets;
  keys: Pick<ApiKeyService, 'createForConsole'>;
  now?: () => number;
}) {
  const { db, secrets, keys, now = Date.now } = room;
  const wrongCodes = strangers(now);
  const codes = nextList(() => linkStore(db).owners());

  return {
    /** A code that signs in once, to one project or to all. */
    async create(projectId: string | null = null): Promise<string> {
      const code = pick(alphanumeric, 40);
      const endsAt = now() + linkMinutes * 60_000;
      await linkStore(db).forgetOld();
      await secrets.put(linkKind, ownerOf(code), JSON.stringify({ endsAt, projectId }));
      return code;
    },

    /**
     * The key that the code is exchanged for. `from` is the client's address: after a wrong code, it has to wait before it may try another wrong
     * code. A right one is taken from there too, since others may share the address.
     */
    async exchange(code: string, from: string): Promise<CreatedApiKey> {
      const owner = ownerOf(code);
      const refusal = wrongCodes.refusal(from);
      if (refusal && !(await codes()).has(owner)) throw refusal;
      // In one transaction: if the key cannot be created, the code still works.
      const created = await db.transaction(async (tx) => {
        const link = await openLink(secrets, owner, tx);
        const taken = link !== undefined && (await linkStore(tx).take(owner));
        return taken && link.endsAt > now() ? keys.createForConsole(link.projectId, tx) : undefined;
      });
      if (created) return created;
      wrongCodes.count(from, owner);
      throw errors.unauthorized({
        detail: `This link was used already, or is older than ${linkMinutes} minutes. Make another with \`npx corral console\`, or sign in with a key.`,
      });
    },
  };
}

/**
 * A list that is read after the question, and at most once a second for all questions together: guesses cost no query each, and a code that
 * was made a moment ago is in it.
 */
function nextList<T>(read: () => Promise<T>): () => Promise<T> {
  let next: Promise<T> | undefined;
  let readAt = -Infinity;
  return () =>
    (next ??= sleep(Math.max(0, readAt + 1000 - performance.now())).then(() => {
      next = undefined;
      readAt = performance.now();
      return read();
    }));
}

/** The address that a person opens. `publicUrl` has no slash at its end. */
export const linkAddress = (publicUrl: string, code: string) => `${publicUrl}/console#code=${code}`;

async function openLink(secrets: Secrets, owner: string, within: Db) {
  try {
    const text = await secrets.get(linkKind, owner, within);
    return text === undefined ? undefined : (JSON.parse(text) as { endsAt: number; projectId: string | null });
  } catch (error) {
    if (error instanceof CannotOpen) return undefined; // made by a command line with other keys than the service's
    throw error;
  }
}

const ownerOf = (code: string) => createHash('sha256').update(code).digest('hex');
