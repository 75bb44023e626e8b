import type { RequestDirectly } from '../../chromium/egress/direct-request.ts';
import { errors } from '../../errors.ts';
import type { EventBus } from '../../events.ts';
import type { Caller } from '../../lib/caller.ts';
import { newId } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import type { Db } from '../../store/db.ts';
import { unlessTaken } from '../../store/names.ts';
import type { Secrets } from '../../store/secrets.ts';
import { bestFit } from '../domains.ts';
import type { CreateProvider, Provider, ProviderList, ProviderTest, UpdateProvider } from './schema.ts';
import { storeReader } from './reader.ts';
import { changedSettings, newSettings, type RefuseHost } from './settings.ts';
import type { Contents, SourceItem } from './source.ts';
import { providerStore, type NewProvider, type ProviderRow } from './store.ts';

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
  const stores = storeReader({ token: async (id) => (await secrets.get(tokenOf, id)) ?? '', request, version, log });

  async function find(id: string): Promise<ProviderRow> {
    const row = await store.find(id);
    if (!row) throw errors.provider_not_found({ provider: id });
    return row;
  }

  return {
    async create(caller: Caller, request: CreateProvider): Promise<Provider> {
      orgWide(caller);
      const { name, token } = request;
      const id = newId('credprov_');
      const row = { id, ...(await newSettings(request, refuseHost)) };
      const made = await unlessTaken(named(name), () =>
        db.transaction(async (tx) => {
          const inserted = await providerStore(tx).insert(row);
          await secrets.put(tokenOf, id, token, tx);
          return inserted;
        }),
      );
      return toProvider(made);
    },

    async list(filter: ProviderList): Promise<Provider[]> {
      return (await store.list(filter)).map(toProvider);
    },

    get: async (id: string): Promise<Provider> => toProvider(await find(id)),

    async update(caller: Caller, id: string, request: UpdateProvider): Promise<Provider> {
      orgWide(caller);
      // Names are looked up before the row is locked: a slow name server must not hold up a transaction.
      const wanted = await changedSettings(await find(id), request, refuseHost);
      const changed = await unlessTaken(named(request.name ?? null), () =>
        db.transaction(async (tx) => {
          const row = await providerStore(tx).lock(id);
          if (!row) throw errors.provider_not_found({ provider: id });
          if (request.token !== undefined) await secrets.put(tokenOf, id, request.token, tx);
          return (await providerStore(tx).change(onlyAsked(row, wanted, request)))!;
        }),
      );
      return toProvider(changed);
    },

    async remove(caller: Caller, id: string): Promise<void> {
      orgWide(caller);
      const removed = await db.transaction(async (tx) => {
        if (!(await providerStore(tx).remove(id))) return false;
        await secrets.remove(tokenOf, id, tx);
        return true;
      });
      if (!removed) throw errors.provider_not_found({ provider: id });
      stores.forget(id);
      events.publish('credential_provider.removed', { providerId: id });
    },

    /** A store that does not answer is a result, not an error. */
    async test(caller: Caller, id: string): Promise<ProviderTest> {
      orgWide(caller);
      return stores.test(await find(id));
    },

    async items(caller: Caller, id: string): Promise<{ items: SourceItem[] }> {
      orgWide(caller);
      return { items: await stores.items(await find(id)) };
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
      const contents = await stores.read(row, (items) => atPath(items, path, row), path);
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
        const contents = await stores.read(row, (items) => bestFit(items, domain));
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

function orgWide(caller: Caller) {
  if (caller.projectId !== null)
    throw errors.forbidden({
      detail:
        'This key is for one project; credential providers serve all projects, and take an organisation-wide key.',
    });
}

const named = (name: string | null) => ({ index: 'credential_providers_name', thing: 'credential provider', name });

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
