import { errors } from '../../errors.ts';
import { bestFit, namesSite } from '../domains.ts';
import type { OpenItem, StoreReader, Which } from './reader.ts';
import type { SourceItem } from './source.ts';
import type { ProviderRow, ProviderStore } from './store.ts';

/** The items of a provider that a connection asks for, and where it would have them typed. */
export interface ItemWanted {
  projectId: string;
  /** Undefined: all providers that the project may use are asked for the domain. */
  providerId?: string | undefined;
  /** Undefined: the item that fits the domain best. */
  path?: string | undefined;
  domain: string;
  loginUrl?: string | undefined;
}

/** The caller of a request that names a provider: a project, and whether the key is of the whole organisation. */
export interface Asker {
  projectId: string;
  orgWide?: boolean | undefined;
}

/** Items of providers for the rooms that log in: only those of the project, and only for the sites that they name. */
export function providerItems({
  store,
  stores,
  find,
}: {
  store: ProviderStore;
  stores: StoreReader;
  /** Refuses a provider that is not shared with the project like an unknown one. */
  find: (id: string, projectId: string) => Promise<ProviderRow>;
}) {
  /**
   * What `look` finds, in one provider or in all that the project may use, in their order. A store that does not answer ends
   * the search: what a later one has may be outdated, and wrong passwords lock accounts.
   */
  async function search<T>(
    { projectId, providerId, path, domain }: ItemWanted,
    look: (row: ProviderRow, which: Which) => Promise<T | undefined>,
  ): Promise<T> {
    const rows = providerId === undefined ? await store.enabled(projectId) : [await find(providerId, projectId)];
    for (const row of rows) {
      refuseDisabled(row);
      const choose: Which['choose'] =
        path === undefined ? (items) => bestFit(items, domain) : (items) => atPath(items, path, row);
      const found = await look(row, { projectId, choose, path });
      if (found) return found;
    }
    throw errors.provider_item_not_found({ detail: nothingFound(rows, path, domain) });
  }

  return {
    /**
     * The id of the provider that a request names by name or id. A provider that is not shared with the project is refused like an
     * unknown one; the answer to a caller with the right to share it says how.
     */
    async idOf({ projectId, orgWide }: Asker, idOrName: string): Promise<string> {
      const row = await store.findByIdOrName(idOrName);
      if (row && isShared(row, projectId)) return row.id;
      throw errors.invalid_input({
        detail:
          row && orgWide
            ? `credential.provider: credential provider '${row.name}' is not shared with project ${projectId}. Add the project to projects with PATCH /org/credential_providers/${row.id}.`
            : `credential.provider: no credential provider is '${idOrName}'. GET /org/credential_providers lists them.`,
      });
    },

    /** The current name; undefined when the provider is deleted, or not shared with the project any more. */
    async nameOf(projectId: string, id: string): Promise<string | undefined> {
      const row = await store.find(id);
      return row && isShared(row, projectId) ? row.name : undefined;
    },

    /** What logins may type of an item. Refuses, before anything secret is read, an item that does not name the sites. */
    open: (wanted: ItemWanted): Promise<OpenItem> =>
      search(wanted, (row, which) => stores.read(row, which, (item) => refuseForeign(row, item, wanted))),

    /** The same refusals, and nothing secret is read. */
    check: (wanted: ItemWanted): Promise<SourceItem> =>
      search(wanted, async (row, which) => {
        const item = await stores.find(row, which);
        if (item) refuseForeign(row, item, wanted);
        return item;
      }),
  };
}

export const isShared = ({ projects }: ProviderRow, projectId: string) =>
  projects.some((one) => one === '*' || one === projectId);

/** An item is typed only at sites that the item names: a project that may use a provider must not choose where its items are typed. */
function refuseForeign({ name }: ProviderRow, { urls = [] }: SourceItem, { path, domain, loginUrl }: ItemWanted): void {
  const foreign = [domain, ...(loginUrl === undefined ? [] : [loginUrl])].find((site) => !namesSite(urls, site));
  if (foreign === undefined) return;
  const site = foreign === loginUrl ? new URL(loginUrl).origin : foreign;
  throw errors.item_not_for_site({
    item: path === undefined ? `for ${domain}` : `'${path}'`,
    provider: name,
    site,
  });
}

function nothingFound(rows: readonly ProviderRow[], path: string | undefined, domain: string): string {
  const [first] = rows;
  if (!first)
    return 'No enabled credential provider is shared with the project. An organisation-wide key shares one by its projects.';
  const one = `credential provider '${first.name}'`;
  if (path !== undefined)
    return `No item of ${one} is '${path}'. GET /org/credential_providers/${first.id}/items lists them.`;
  return `No item of ${rows.length === 1 ? one : 'the enabled credential providers'} is for '${domain}'. Add the site to an item, or *.example.com for all below a name.`;
}

/** A path that two items have names neither; their ids do. */
function atPath(items: readonly SourceItem[], path: string, { name }: ProviderRow): SourceItem | undefined {
  const found = items.filter(
    (item) => item.path === path || item.id === path || `${item.vault_id}/${item.id}` === path,
  );
  if (found.length < 2) return found[0];
  throw errors.provider_item_not_found({
    detail: `Credential provider '${name}' has ${found.length} items '${path}'. Use the id of the one you mean as the path.`,
  });
}

function refuseDisabled({ name, enabled }: ProviderRow) {
  if (!enabled)
    throw errors.provider_refused({
      provider: name,
      detail: 'it is disabled. Send enabled: true with PATCH /org/credential_providers/{id}.',
    });
}
