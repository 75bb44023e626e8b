import type { RequestDirectly } from '../../chromium/egress/direct-request.ts';
import { errors, type ServiceError } from '../../errors.ts';
import type { Log } from '../../lib/log.ts';
import { connectSource } from './connect.ts';
import { forLogins } from './fields.ts';
import { httpSource } from './http.ts';
import { itemLists } from './lists.ts';
import type { ProviderTest } from './schema.ts';
import { serviceAccountSource } from './service-account.ts';
import { SourceFailure, type Contents, type Source, type SourceItem } from './source.ts';
import type { ProviderRow } from './store.ts';
import { turns } from './turns.ts';
import { vaultSource } from './vault.ts';

/** Names one item: by its path, or by what the list shows. */
export interface Which {
  /** The project that needs the item. */
  projectId: string;
  choose: (items: readonly SourceItem[]) => SourceItem | undefined;
  path?: string | undefined;
}

export interface OpenItem extends Contents {
  /** The sites that the item names, as it has them. */
  hosts: readonly string[];
}

export type StoreReader = ReturnType<typeof storeReader>;

/** Asks the stores behind providers, a few at a time. */
export function storeReader({
  token,
  request,
  version,
  log,
}: {
  token: (row: ProviderRow) => Promise<string>;
  request: RequestDirectly;
  version: string;
  log: Log;
}) {
  const lists = itemLists();
  const inTurn = turns({ atOnce: 8, eachProvider: 2, eachProject: 4, mostWaiting: 50, waitMs: 15_000 });

  /** The store behind a provider, for one operation. */
  async function sourceOf(row: ProviderRow): Promise<Source> {
    if (row.server_url === null) return serviceAccountSource(await token(row), version, request);
    const settings = {
      token: await token(row),
      serverUrl: row.server_url,
      ca: row.ca_bundle ?? undefined,
      namespace: row.namespace ?? undefined,
      mounts: row.mounts ?? undefined,
    };
    const kinds = { vault: vaultSource, http: httpSource, onepassword: connectSource, passwordmanager: connectSource };
    return kinds[row.provider_type](settings, request);
  }

  /** What goes wrong at the store becomes an answer with the reason, and a line in the log. */
  async function using<T>(row: ProviderRow, project: string | null, work: (source: Source) => Promise<T>): Promise<T> {
    try {
      return await inTurn({ provider: row.id, project }, async () => work(await sourceOf(row)));
    } catch (error) {
      if (!(error instanceof SourceFailure)) throw error;
      log.warn({ provider: row.id, reason: error.code }, 'credential_provider.failed');
      throw asRefusal(row, error);
    }
  }

  /** The item at the path, where the store can read it without a list; else the item that `choose` finds. */
  async function itemOf(source: Source, row: ProviderRow, { choose, path }: Which): Promise<SourceItem | undefined> {
    const there = path === undefined ? undefined : await source.itemAt?.(path);
    if (there) return there;
    const provider = { id: row.id, revision: row.revision, ttlMs: row.cache_ttl_seconds * 1000 };
    return lists.find(provider, choose, () => source.items());
  }

  return {
    /** A store that does not answer is a result, not an error. */
    async test(row: ProviderRow): Promise<ProviderTest> {
      try {
        return {
          success: true,
          vaults: await inTurn({ provider: row.id, project: null }, async () => (await sourceOf(row)).vaults()),
        };
      } catch (error) {
        if (!(error instanceof SourceFailure)) throw error;
        return { success: false, vaults: [], error: error.message };
      }
    },

    /** Reads from the store and ignores the cache. */
    items: (row: ProviderRow): Promise<SourceItem[]> =>
      using(row, null, (source) => lists.read(row.id, row.revision, () => source.items())),

    /** An item without its secrets. */
    find: (row: ProviderRow, which: Which): Promise<SourceItem | undefined> =>
      using(row, which.projectId, (source) => itemOf(source, row, which)),

    /** An item with what logins may type of it. `admit` throws before anything secret is read. */
    read: (row: ProviderRow, which: Which, admit: (item: SourceItem) => void): Promise<OpenItem | undefined> =>
      using(row, which.projectId, async (source) => {
        const item = await itemOf(source, row, which);
        if (!item) return undefined;
        admit(item);
        return { ...forLogins(await source.read(item), row.fields), hosts: item.urls ?? [] };
      }),

    forget: lists.forget,
  };
}

function asRefusal({ name }: ProviderRow, failure: SourceFailure): ServiceError {
  const { code, message, cause } = failure;
  const retrySoon = code === 'busy' ? { headers: { 'Retry-After': '5' } } : {};
  const extras = { details: [{ code, message }], cause, ...retrySoon };
  if (code === 'token_refused') return errors.provider_refused({ provider: name, detail: message }, extras);
  if (code === 'not_found') return errors.provider_item_not_found({ detail: message }, extras);
  return errors.provider_unavailable({ provider: name, detail: message }, extras);
}
