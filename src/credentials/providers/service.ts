import type { RequestDirectly } from '../../chromium/egress/direct-request.ts';
import { errors, type ServiceError } from '../../errors.ts';
import type { EventBus } from '../../events.ts';
import type { Caller } from '../../lib/caller.ts';
import { newId } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import { uniqueViolation, type Db } from '../../store/db.ts';
import type { Secrets } from '../../store/secrets.ts';
import { bestFit } from '../domains.ts';
import { connectSource } from './connect.ts';
import { httpSource } from './http.ts';
import { itemLists } from './lists.ts';
import type { CreateProvider, Provider, ProviderList, ProviderTest, UpdateProvider } from './schema.ts';
import { serviceAccountSource } from './service-account.ts';
import { mountNames, refuseMeaningless, refuseNoPem, serverAddress, type RefuseHost } from './settings.ts';
import { SourceFailure, type Contents, type Source, type SourceItem } from './source.ts';
import { providerStore, type NewProvider, type ProviderRow } from './store.ts';
import { turns } from './turns.ts';
import { vaultSource } from './vault.ts';

/** The kind under which a provider's token is kept in the secrets. */
const tokenOf = 'credential provider token';

export type ProviderService = ReturnType<typeof providerService>;

export function providerService({
  db,
  secrets,
  events,
  refuseHost,
  request,
  version,
  log,
}: {
  db: Db;
  secrets: Secrets;
  events: EventBus;
  refuseHost: RefuseHost;
  request: RequestDirectly;
  /** Of the service, for stores that want to know who asks. */
  version: string;
  log: Log;
}) {
  const store = providerStore(db);
  const lists = itemLists();
  const inTurn = turns(4, 15_000);

  async function find(id: string): Promise<ProviderRow> {
    const row = await store.find(id);
    if (!row) throw errors.provider_not_found({ provider: id });
    return row;
  }

  /** The store behind a provider, for one operation. */
  async function sourceOf(row: ProviderRow): Promise<Source> {
    const token = (await secrets.get(tokenOf, row.id)) ?? '';
    if (row.server_url === null) return serviceAccountSource(token, version, request);
    const settings = {
      token,
      serverUrl: row.server_url,
      ca: row.ca_bundle ?? undefined,
      namespace: row.namespace ?? undefined,
      mounts: row.mounts ?? undefined,
    };
    const kinds = { vault: vaultSource, http: httpSource, onepassword: connectSource, passwordmanager: connectSource };
    return kinds[row.provider_type](settings, request);
  }

  /** Asks the store. What goes wrong there becomes an answer with the reason, and a line in the log. */
  async function using<T>(row: ProviderRow, work: (source: Source) => Promise<T>): Promise<T> {
    try {
      return await inTurn(async () => work(await sourceOf(row)));
    } catch (error) {
      if (!(error instanceof SourceFailure)) throw error;
      log.warn({ provider: row.id, reason: error.code }, 'credential_provider.failed');
      throw asRefusal(row, error);
    }
  }

  const read = (row: ProviderRow) => using(row, (source) => lists.read(row.id, row.revision, () => source.items()));

  /** One item of a store, found by `choose`, and what is in it. */
  const readItem = (row: ProviderRow, choose: (items: readonly SourceItem[]) => SourceItem | undefined) =>
    using(row, async (source) => {
      const provider = { id: row.id, revision: row.revision, ttlMs: row.cache_ttl_seconds * 1000 };
      const item = await lists.find(provider, choose, () => source.items());
      return item && source.read(item);
    });

  async function changed(row: ProviderRow, request: UpdateProvider): Promise<NewProvider> {
    const { server_url, ca_bundle, token } = request;
    if (token === undefined && (server_url !== undefined || ca_bundle !== undefined))
      throw errors.invalid_input({
        detail:
          'server_url and ca_bundle change only together with token: the stored one is for the store that it was sent for.',
      });
    const next = {
      ...row,
      name: request.name ?? row.name,
      enabled: request.enabled ?? row.enabled,
      priority: request.priority ?? row.priority,
      cache_ttl_seconds: request.cache_ttl_seconds ?? row.cache_ttl_seconds,
      server_url:
        server_url === undefined
          ? row.server_url
          : server_url === ''
            ? null
            : await serverAddress(server_url, refuseHost),
      ca_bundle: ca_bundle === undefined ? row.ca_bundle : ca_bundle || null,
      namespace: request.namespace === undefined ? row.namespace : request.namespace || null,
      mounts: request.mounts === undefined ? row.mounts : mountNames(request.mounts),
    };
    refuseMeaningless(row.provider_type, next);
    if (ca_bundle) refuseNoPem(ca_bundle);
    return next;
  }

  return {
    async create(caller: Caller, request: CreateProvider): Promise<Provider> {
      orgWide(caller);
      const { provider_type, name, token, server_url, ca_bundle } = request;
      refuseMeaningless(provider_type, request);
      if (ca_bundle) refuseNoPem(ca_bundle);
      const id = newId('credprov_');
      const row: NewProvider = {
        id,
        provider_type,
        name,
        enabled: request.enabled ?? true,
        priority: request.priority ?? 0,
        cache_ttl_seconds: request.cache_ttl_seconds ?? 300,
        server_url: server_url ? await serverAddress(server_url, refuseHost) : null,
        ca_bundle: ca_bundle || null,
        namespace: request.namespace || null,
        mounts: mountNames(request.mounts ?? []),
      };
      return unlessTaken(name, () =>
        db.transaction(async (tx) => {
          const inserted = await providerStore(tx).insert(row);
          await secrets.put(tokenOf, id, token, tx);
          return inserted;
        }),
      );
    },

    async list(filter: ProviderList): Promise<Provider[]> {
      return (await store.list(filter)).map(toProvider);
    },

    get: async (id: string): Promise<Provider> => toProvider(await find(id)),

    async update(caller: Caller, id: string, request: UpdateProvider): Promise<Provider> {
      orgWide(caller);
      // Names are looked up before the row is locked: a slow name server must not hold up a transaction.
      const wanted = await changed(await find(id), request);
      return unlessTaken(request.name ?? '', () =>
        db.transaction(async (tx) => {
          const row = await providerStore(tx).lock(id);
          if (!row) throw errors.provider_not_found({ provider: id });
          if (request.token !== undefined) await secrets.put(tokenOf, id, request.token, tx);
          return (await providerStore(tx).change(onlyAsked(row, wanted, request)))!;
        }),
      );
    },

    async remove(caller: Caller, id: string): Promise<void> {
      orgWide(caller);
      const removed = await db.transaction(async (tx) => {
        if (!(await providerStore(tx).remove(id))) return false;
        await secrets.remove(tokenOf, id, tx);
        return true;
      });
      if (!removed) throw errors.provider_not_found({ provider: id });
      lists.forget(id);
      events.publish('credential_provider.removed', { providerId: id });
    },

    /** A store that does not answer is a result, not an error. */
    async test(caller: Caller, id: string): Promise<ProviderTest> {
      orgWide(caller);
      const row = await find(id);
      try {
        return { success: true, vaults: await inTurn(async () => (await sourceOf(row)).vaults()) };
      } catch (error) {
        if (!(error instanceof SourceFailure)) throw error;
        return { success: false, vaults: [], error: error.message };
      }
    },

    async items(caller: Caller, id: string): Promise<{ items: SourceItem[] }> {
      orgWide(caller);
      return { items: await read(await find(id)) };
    },

    // For rooms that log in.

    /** The id of the provider that a request names by name or id. */
    async idOf(idOrName: string): Promise<string> {
      const row = await store.findByIdOrName(idOrName);
      if (row) return row.id;
      throw errors.invalid_input({
        detail: `credential.provider: no credential provider is '${idOrName}'. GET /org/credential_providers lists them.`,
      });
    },

    /** The current name; undefined when the provider is deleted. */
    nameOf: async (id: string): Promise<string | undefined> => (await store.find(id))?.name,

    /** What is at a path of a provider. */
    async open(id: string, path: string): Promise<Contents> {
      const row = await find(id);
      refuseDisabled(row);
      const named = await using(row, async (source) => source.readPath?.(path));
      const contents = named ?? (await readItem(row, (items) => atPath(items, path, row)));
      if (contents) return contents;
      throw errors.provider_item_not_found({
        detail: `Credential provider '${row.name}' has no item '${path}'. GET /org/credential_providers/${id}/items lists them.`,
      });
    },

    /**
     * What fits a domain best, in one provider or in all that are enabled, in their order. A store that does not answer ends
     * the search: what a later one has may be outdated, and wrong passwords lock accounts.
     */
    async openFor(domain: string, id?: string): Promise<Contents> {
      const rows = id === undefined ? await store.enabled() : [await find(id)];
      for (const row of rows) {
        refuseDisabled(row);
        const contents = await readItem(row, (items) => bestFit(items, domain));
        if (contents) return contents;
      }
      throw errors.provider_item_not_found({
        detail: `No item of ${rows.length === 1 ? `credential provider '${rows[0]!.name}'` : 'the enabled credential providers'} is for '${domain}'. Add the site to an item, or *.example.com for all below a name.`,
      });
    },
  };
}

/** Two items of one path cannot be told apart by it; their ids can. */
function atPath(items: readonly SourceItem[], path: string, { name }: ProviderRow): SourceItem | undefined {
  const found = items.filter(
    (item) => item.path === path || item.id === path || `${item.vault_id}/${item.id}` === path,
  );
  if (found.length < 2) return found[0];
  throw errors.provider_item_not_found({
    detail: `Credential provider '${name}' has ${found.length} items '${path}'. Use the id of the one you mean as the path.`,
  });
}

/** The changes that a request asked for, on what the row is now. */
function onlyAsked(row: ProviderRow, wanted: NewProvider, request: UpdateProvider): NewProvider {
  const asked = Object.keys(request).filter((field) => field in row);
  return { ...row, ...Object.fromEntries(asked.map((field) => [field, wanted[field as keyof NewProvider]])) };
}

function refuseDisabled({ name, enabled }: ProviderRow) {
  if (!enabled)
    throw errors.provider_refused({
      provider: name,
      detail: 'it is disabled. Send enabled: true with PATCH /org/credential_providers/{id}.',
    });
}

function asRefusal({ name }: ProviderRow, failure: SourceFailure): ServiceError {
  const { code, message, cause } = failure;
  const extras = { details: [{ code, message }], cause };
  if (code === 'token_refused') return errors.provider_refused({ provider: name, detail: message }, extras);
  if (code === 'not_found') return errors.provider_item_not_found({ detail: message }, extras);
  return errors.provider_unavailable({ provider: name, detail: message }, extras);
}

function orgWide(caller: Caller) {
  if (caller.projectId !== null)
    throw errors.forbidden({
      detail:
        'This key is for one project; credential providers serve all projects, and take an organisation-wide key.',
    });
}

async function unlessTaken(name: string, write: () => Promise<ProviderRow>): Promise<Provider> {
  try {
    return toProvider(await write());
  } catch (error) {
    if (uniqueViolation(error) === 'credential_providers_name')
      throw errors.already_exists({ thing: 'credential provider', name });
    throw error;
  }
}

function toProvider(row: ProviderRow): Provider {
  return {
    id: row.id,
    provider_type: row.provider_type,
    name: row.name,
    enabled: row.enabled,
    priority: row.priority,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    cache_ttl_seconds: row.cache_ttl_seconds,
    server_url: row.server_url,
    ...(row.ca_bundle === null ? {} : { has_ca_bundle: true }),
    ...(row.namespace === null ? {} : { namespace: row.namespace }),
    ...(row.mounts === null ? {} : { mounts: row.mounts }),
  };
}
