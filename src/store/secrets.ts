import { join } from 'node:path';
import { createOnce, readIfThere, replaceFile } from '../lib/files.ts';
import { CannotOpen, keyring, newKey, parseKey, type Keyring } from '../lib/seal.ts';
import type { Db } from './db.ts';
import { sql } from './sql.ts';

/**
 * Sealed values, each named by `kind` and `owner` (say `proxy password` of a proxy's id). The name is
 * bound into the seal: a value moved to another row cannot be opened there.
 */
export interface Secrets {
  put(kind: string, owner: string, value: string, within?: Db): Promise<void>;
  get(kind: string, owner: string, within?: Db): Promise<string | undefined>;
  remove(kind: string, owner: string, within?: Db): Promise<void>;
  /** Seals all values with the current key. Values that no key opens are left unchanged and listed. */
  reseal(): Promise<{ changed: number; unopened: SecretName[] }>;
  readonly keys: KeySource;
}

interface SecretName {
  kind: string;
  owner: string;
}

/** Source of the keys. `reread` is for a key that another process has added since. */
export interface KeySource {
  ring(): Keyring;
  reread(): Promise<void>;
}

/** `configured` is CORRAL_SECRET_KEY; without it the keys are in a private file, newest first, one per line. */
export async function openKeys(dataDir: string, configured: string): Promise<KeySource> {
  const file = keyFile(dataDir);
  const read = async () => {
    const text = configured || (await createOnce(file, newKey));
    const source = configured ? 'CORRAL_SECRET_KEY' : file;
    const keys = text
      .split(/[\s,]+/)
      .filter(Boolean)
      .map((part) => {
        const key = parseKey(part);
        if (!key)
          throw new Error(`${source} holds something that is not a key; a key is 32 bytes as 64 hex digits or base64.`);
        return key;
      });
    return keyring(keys);
  };
  let ring = await read();
  return {
    ring: () => ring,
    reread: async () => void (ring = await read()),
  };
}

/** Puts a new key first in the key file. The old keys stay, to open values that they sealed. */
export async function addKey(dataDir: string): Promise<void> {
  const file = keyFile(dataDir);
  await replaceFile(file, `${newKey()}\n${(await readIfThere(file)) ?? ''}\n`);
}

const keyFile = (dataDir: string) => join(dataDir, 'secret-key');

export function secretStore(db: Db, keys: KeySource): Secrets {
  const place = (kind: string, owner: string) => `${kind}:${owner}`;

  async function open(kind: string, owner: string, envelope: string): Promise<string> {
    try {
      return keys.ring().open(envelope, place(kind, owner));
    } catch (error) {
      const unknown = error instanceof CannotOpen && error.keyId && !keys.ring().ids.includes(error.keyId);
      if (!unknown) throw error;
      await keys.reread(); // rotated by another process
      return keys.ring().open(envelope, place(kind, owner));
    }
  }

  return {
    keys,

    async put(kind, owner, value, within = db) {
      const envelope = keys.ring().seal(value, place(kind, owner));
      await within.rows(sql`insert into secrets (kind, owner, envelope) values (${kind}, ${owner}, ${envelope})
        on conflict (kind, owner) do update set envelope = excluded.envelope, updated_at = now()`);
    },

    async get(kind, owner, within = db) {
      const row = await within.row<{ envelope: string }>(
        sql`select envelope from secrets where kind = ${kind} and owner = ${owner}`,
      );
      return row && open(kind, owner, row.envelope);
    },

    async remove(kind, owner, within = db) {
      await within.rows(sql`delete from secrets where kind = ${kind} and owner = ${owner}`);
    },

    async reseal() {
      const prefix = `v1.${keys.ring().current}.`;
      const unopened: SecretName[] = [];
      let changed = 0;
      let last: SecretName = { kind: '', owner: '' };
      for (;;) {
        // Row by row under a lock, so that a newly written value is never overwritten with an older one.
        const row = await db.transaction(async (tx) => {
          const row = await tx.row<SecretName & { envelope: string }>(sql`select kind, owner, envelope from secrets
            where not starts_with(envelope, ${prefix}) and (kind, owner) > (${last.kind}, ${last.owner})
            order by kind, owner limit 1 for update`);
          if (!row) return undefined;
          const value = await open(row.kind, row.owner, row.envelope).catch((error: unknown) => {
            if (!(error instanceof CannotOpen)) throw error;
            unopened.push({ kind: row.kind, owner: row.owner });
            return undefined;
          });
          if (value !== undefined) {
            await this.put(row.kind, row.owner, value, tx);
            changed++;
          }
          return row;
        });
        if (!row) return { changed, unopened };
        last = row;
      }
    },
  };
}
