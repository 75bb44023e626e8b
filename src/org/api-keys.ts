import { createHash, timingSafeEqual } from 'node:crypto';
import type { Caller } from '../lib/caller.ts';
import { errors } from '../errors.ts';
import { newId, pick } from '../lib/ids.ts';
import { uniqueViolation, type Db } from '../store/db.ts';
import type { ApiKey, ApiKeyList, CreateApiKey, CreatedApiKey, RotateApiKey } from './schema.ts';
import { orgStore, type ApiKeyRow, type NewApiKey } from './store.ts';

const alphanumeric = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
/** Of those that are valid. The gatekeeper reads the lookups of all keys into memory when an address guesses keys. */
const mostOfProject = 1000;
const graceDays = 7;
const dayMs = 24 * 60 * 60 * 1000;

/** The creator of keys that no key made: the first start and the command line. */
const operator = { keyId: 'operator', keyName: 'operator', projectId: null } satisfies Caller;

/** The creator of keys that a sign-in link was exchanged for. No key has this id. */
const consoleSignIn = { keyId: 'console', keyName: 'console', projectId: null } satisfies Caller;
/** The keys of the console end after this time: a closed tab forgets its key, and leaves it in the list. */
const consoleDays = 1;

export type ApiKeyService = ReturnType<typeof apiKeyService>;

/** `changed` is called after every change that may revoke a key, so that this node drops its cache at once. */
export function apiKeyService({ db, changed }: { db: Db; changed: () => void }) {
  const store = orgStore(db);

  async function create(caller: Caller, request: CreateApiKey): Promise<CreatedApiKey> {
    const projectId = request.project_id ?? caller.projectId;
    if (caller.projectId !== null && projectId !== caller.projectId) {
      throw errors.project_not_found({ project: projectId ?? '' });
    }
    if (projectId !== null) {
      const project = await store.findProject(projectId);
      if (project?.status !== 'active') throw errors.project_not_found({ project: projectId });
    }
    return insert(db, caller, request.name, projectId, request.days_to_expire ?? null);
  }

  /**
   * When the caller's own key expires. Keys it creates expire then at the latest; otherwise a key lent for a day could
   * create a permanent one. A longer time is refused; no time means this one.
   */
  async function latestEnd(caller: Caller, days: number | null): Promise<Date | null> {
    if (caller.keyId === operator.keyId || caller.keyId === consoleSignIn.keyId) return null;
    const maker = await store.findKey(caller.keyId, null);
    if (!maker || maker.deleted_at)
      throw errors.unauthorized({ detail: 'This key is not known here, or was revoked.' });
    // A sign-in of a day may create keys for programs that last longer.
    if (maker.created_by === consoleSignIn.keyId) return null;
    const end = maker.expires_at;
    if (end && days !== null && Date.now() + days * dayMs > end.getTime()) {
      throw errors.forbidden({
        detail: `This key ends at ${end.toISOString()}, and cannot create a key that lasts longer. Send a shorter days_to_expire, or none.`,
      });
    }
    return end;
  }

  async function insert(
    within: Db,
    caller: Caller,
    name: string,
    projectId: string | null,
    days: number | null,
  ): Promise<CreatedApiKey> {
    const key = `sk_${pick(alphanumeric, 40)}`;
    const id = newId('key_');
    const notAfter = await latestEnd(caller, days);
    if (projectId !== null && (await orgStore(within).countKeys(projectId)) >= mostOfProject)
      throw errors.api_key_limit_reached({ most: mostOfProject });
    await orgStore(within).insertKey(rowFor({ id, key, name, projectId, caller, days, notAfter }));
    const row = await orgStore(within).findKey(id, null);
    if (!row) throw new Error(`Key ${id} vanished while it was made.`);
    return { ...toApiKey(row), key };
  }

  async function find(caller: Caller, id: string, includeDeleted = false): Promise<ApiKeyRow> {
    const row = await store.findKey(id, caller.projectId);
    if (!row || row.hidden || (row.deleted_at && !includeDeleted)) throw errors.api_key_not_found({ id });
    return row;
  }

  return {
    create,

    async list(caller: Caller, filter: ApiKeyList): Promise<ApiKey[]> {
      return (await store.listKeys(filter, caller.projectId)).map(toApiKey);
    },

    async get(caller: Caller, id: string, includeDeleted: boolean): Promise<ApiKey> {
      return toApiKey(await find(caller, id, includeDeleted));
    },

    async rename(caller: Caller, id: string, name: string): Promise<ApiKey> {
      await find(caller, id);
      await store.renameKey(id, name);
      return toApiKey(await find(caller, id));
    },

    async rotate(caller: Caller, id: string, request: RotateApiKey): Promise<CreatedApiKey> {
      const days = request.days_to_expire ?? null;
      const grace = request.expire_in_days ?? graceDays;
      if (days !== null && days < grace) {
        throw errors.invalid_input({
          detail: `days_to_expire (${days}) must be at least expire_in_days (${grace}): the new key may not end before the old one.`,
        });
      }
      const old = await find(caller, id);
      const created = await db.transaction(async (tx) => {
        await orgStore(tx).endKeyInDays(id, grace);
        return insert(tx, caller, old.name, old.project_id, days);
      });
      changed();
      return created;
    },

    async remove(caller: Caller, id: string): Promise<void> {
      const row = await find(caller, id);
      const signsOut = row.created_by === consoleSignIn.keyId;
      if (id === caller.keyId && !signsOut) throw errors.cannot_delete_current_key();
      await store.deleteKey(id);
      changed();
    },

    /** Registers a key that was made elsewhere (CORRAL_API_KEY, the key file). A deleted key stays deleted. */
    async adopt(key: string, name: string): Promise<'added' | 'known' | 'deleted'> {
      const there = await store.findKeyByLookup(lookupOf(hashOf(key)));
      if (there) return there.deleted_at ? 'deleted' : 'known';
      try {
        await store.insertKey(
          rowFor({ id: newId('key_'), key, name, projectId: null, caller: operator, days: null, notAfter: null }),
        );
        return 'added';
      } catch (error) {
        if (uniqueViolation(error) === 'api_keys_lookup_key') return 'known'; // added by another node that starts at the same time
        throw error;
      }
    },

    /** A key of one project that no request lists, changes or deletes, for something that the service runs. */
    async createHidden(projectId: string, name: string, within: Db): Promise<{ id: string; key: string }> {
      const key = `sk_${pick(alphanumeric, 40)}`;
      const id = newId('key_');
      const row = rowFor({ id, key, name, projectId, caller: operator, days: null, notAfter: null });
      await orgStore(within).insertKey({ ...row, hidden: true });
      return { id, key };
    },

    /** The key of a console that was signed in to by a link. It is listed, and can be revoked as any other. */
    createForConsole: (projectId: string | null, within: Db): Promise<CreatedApiKey> =>
      insert(within, consoleSignIn, 'console', projectId, consoleDays),

    async removeHidden(id: string): Promise<void> {
      await store.deleteKey(id);
      changed();
    },

    anyKey: () => store.anyKey(),
    operator,
  };
}

/** Finds the row of a key; undefined for an unknown key. The caller checks expiry and deletion. */
export async function findByKey(db: Db, key: string): Promise<ApiKeyRow | undefined> {
  const hash = hashOf(key);
  const row = await orgStore(db).findKeyByLookup(lookupOf(hash));
  return row && timingSafeEqual(row.hash, hash) ? row : undefined;
}

export const hashOf = (key: string) => createHash('sha256').update(key).digest();
export const lookupOf = (hash: Buffer) => hash.toString('hex', 0, 8);

const mask = (key: string) => `${key.slice(0, 7)}...${key.slice(-4)}`;

function rowFor(made: {
  id: string;
  key: string;
  name: string;
  projectId: string | null;
  caller: Caller;
  days: number | null;
  notAfter: Date | null;
}): NewApiKey {
  const { id, key, name, projectId, caller, days, notAfter } = made;
  const hash = hashOf(key);
  return {
    id,
    name,
    hash,
    lookup: lookupOf(hash),
    masked_key: mask(key),
    project_id: projectId,
    created_by: caller.keyId,
    created_by_name: caller.keyName,
    days_to_expire: days,
    not_after: notAfter,
  };
}

function toApiKey(row: ApiKeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    created_at: row.created_at.toISOString(),
    // There are no user accounts: a key is created with another key, or by the operator of the machine.
    created_by: { id: row.created_by, email: 'operator@corral.local', name: row.created_by_name },
    expires_at: row.expires_at?.toISOString() ?? null,
    deleted_at: row.deleted_at?.toISOString() ?? null,
    project_id: row.project_id,
    project_name: row.project_name,
    masked_key: row.masked_key,
  };
}
