import type { RequestDirectly } from '../../chromium/egress/direct-request.ts';
import { errors } from '../../errors.ts';
import type { EventBus } from '../../events.ts';
import type { Caller } from '../../lib/caller.ts';
import { newId } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import type { Db } from '../../store/db.ts';
import { unlessTaken } from '../../store/names.ts';
import type { Secrets } from '../../store/secrets.ts';
import type { CreateProvider, Provider, ProviderList, ProviderTest, UpdateProvider } from './schema.ts';
import { isShared, providerItems } from './items.ts';
import { storeReader } from './reader.ts';
import { changedSettings, newSettings, type RefuseHost } from './settings.ts';
import { SourceFailure, type SourceItem } from './source.ts';
import { providerStore, type NewProvider, type ProviderRow } from './store.ts';

/** The kind under which a provider's token is kept in the secrets. */
const tokenOf = 'credential provider token';

export type ProviderService = ReturnType<typeof providerService>;

export function providerService({
  db,
  secrets,
  events,
  projectId: idOfProject,
  refuseHost,
  request,
  version,
  log,
}: {
  db: Db;
  secrets: Secrets;
  events: EventBus;
  /** The id of the project that has this id or name. */
  projectId: (idOrName: string) => Promise<string | undefined>;
  refuseHost: RefuseHost;
  request: RequestDirectly;
  /** Of the service, for stores that ask for the name of the client. */
  version: string;
  log: Log;
}) {
  const store = providerStore(db);
  const stores = storeReader({ token: tokenFor, request, version, log });

  /** Fails if the row was changed since it was read: the token of a new address must not be sent to the old one. */
  async function tokenFor({ id, revision }: ProviderRow): Promise<string> {
    const token = await secrets.get(tokenOf, id);
    if ((await store.find(id))?.revision === revision) return token ?? '';
    throw new SourceFailure('busy', 'The provider was changed just now. Try again.');
  }

  /** For a project, a provider that is not shared with it is not there. */
  async function find(id: string, projectId: string | null = null): Promise<ProviderRow> {
    const row = await store.find(id);
    if (!row || (projectId !== null && !isShared(row, projectId))) throw errors.provider_not_found({ provider: id });
    return row;
  }

  async function projectIds(given: readonly string[]): Promise<string[]> {
    if (given.includes('*')) return ['*'];
    const ids = new Set<string>();
    for (const idOrName of given) {
      const id = await idOfProject(idOrName);
      if (id === undefined)
        throw errors.invalid_input({ detail: `projects: no project is '${idOrName}'. GET /org/projects lists them.` });
      ids.add(id);
    }
    return [...ids];
  }

  return {
    /** `projectId`: the project that the caller works in, with which it is shared unless the request says otherwise. */
    async create(caller: Caller, projectId: string, request: CreateProvider): Promise<Provider> {
      orgWide(caller);
      const { name, token } = request;
      const id = newId('credprov_');
      const projects = request.projects ? await projectIds(request.projects) : [projectId];
      const row = { id, ...(await newSettings(request, projects, refuseHost)) };
      const made = await unlessTaken(named(name), () =>
        db.transaction(async (tx) => {
          const inserted = await providerStore(tx).insert(row);
          await secrets.put(tokenOf, id, token, tx);
          return inserted;
        }),
      );
      return toProvider(made, caller);
    },

    async list(caller: Caller, filter: ProviderList): Promise<Provider[]> {
      return (await store.list(filter, caller.projectId)).map((row) => toProvider(row, caller));
    },

    get: async (caller: Caller, id: string): Promise<Provider> => toProvider(await find(id, caller.projectId), caller),

    async update(caller: Caller, id: string, request: UpdateProvider): Promise<Provider> {
      orgWide(caller);
      // Names are looked up before the row is locked: a slow name server must not hold up a transaction.
      const row = await find(id);
      const projects = request.projects && (await projectIds(request.projects));
      const wanted = await changedSettings(row, request, projects, refuseHost);
      const changed = await unlessTaken(named(request.name ?? null), () =>
        db.transaction(async (tx) => {
          const row = await providerStore(tx).lock(id);
          if (!row) throw errors.provider_not_found({ provider: id });
          if (request.token !== undefined) await secrets.put(tokenOf, id, request.token, tx);
          return (await providerStore(tx).change(onlyAsked(row, wanted, request)))!;
        }),
      );
      return toProvider(changed, caller);
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
    ...providerItems({ store, stores, find }),
  };
}

/** The changes that a request asked for, on what the row is now. */
function onlyAsked(row: ProviderRow, wanted: NewProvider, request: UpdateProvider): NewProvider {
  const asked = Object.keys(request).filter((field) => field in row);
  return { ...row, ...Object.fromEntries(asked.map((field) => [field, wanted[field as keyof NewProvider]])) };
}

function orgWide(caller: Caller) {
  if (caller.projectId !== null)
    throw errors.forbidden({
      detail:
        'This key is for one project; credential providers belong to the organisation, and take an organisation-wide key.',
    });
}

const named = (name: string | null) => ({ index: 'credential_providers_name', thing: 'credential provider', name });

function toProvider(row: ProviderRow, { projectId }: Caller): Provider {
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
    // Which other projects there are is nothing for a key of one.
    projects: row.projects.filter((one) => projectId === null || one === '*' || one === projectId),
    fields: row.fields,
  };
}
