import type { RequestDirectly } from '../../chromium/egress/direct-request.ts';
import { anyText, list, object, optional, text, type Check } from '../../lib/shape.ts';
import { contentsOf, type Field } from './fields.ts';
import {
  asking,
  itemCollection,
  pathPart,
  type Source,
  type SourceItem,
  type SourceSettings,
  type SourceVault,
} from './source.ts';

const orNull = <T>(check: Check<T>): Check<T | null | undefined> => {
  return (value): value is T | null | undefined => value === null || value === undefined || check(value);
};

const Vault = object({ id: text(255), name: text(1024) });
const ListedItem = object({
  id: text(255),
  title: text(4096),
  category: optional(text(64)),
  urls: orNull(list(object({ href: orNull(text(8192)) }))),
});
const FullItem = object({
  fields: orNull(
    list(
      object({
        type: optional(text(64)),
        purpose: orNull(text(64)),
        label: orNull(text(4096)),
        value: orNull(anyText),
      }),
    ),
  ),
});

const logins = new Set(['LOGIN', 'PASSWORD', undefined]);
const kinds: Record<string, Field['kind']> = { USERNAME: 'username', PASSWORD: 'password' };

/** The REST API of a Connect server, which gives a password manager's vaults to programs in one's own network. */
export function connectSource(settings: SourceSettings, request: RequestDirectly): Source {
  // The server's documentation writes its address with and without the version.
  const serverUrl = settings.serverUrl.replace(/\/v1\/?$/, '');
  const ask = asking({ ...settings, serverUrl }, { Authorization: `Bearer ${settings.token}` }, request);

  async function vaults(): Promise<SourceVault[]> {
    const found: SourceVault[] = [];
    for await (const { id, name } of ask.list('/v1/vaults', [], Vault)) found.push({ id, name });
    return found;
  }

  return {
    vaults,

    async items() {
      const { items, add } = itemCollection();
      for (const vault of await vaults()) {
        const path = `/v1/vaults/${pathPart(vault.id)}/items`;
        for await (const { id, title, category, urls } of ask.list(path, [], ListedItem)) {
          if (!logins.has(category)) continue;
          const addresses = (urls ?? []).flatMap(({ href }) => (href ? [href] : []));
          if (!add(itemIn(vault, id, title, addresses))) return items;
        }
      }
      return items;
    },

    async read({ id, vault_id }) {
      const path = `/v1/vaults/${pathPart(vault_id)}/items/${pathPart(id)}`;
      const { fields } = await ask(path, FullItem);
      return contentsOf(
        (fields ?? []).flatMap(({ type, purpose, label, value }): Field[] => {
          if (!value || purpose === 'NOTES') return [];
          const kind = type === 'OTP' ? 'totp' : (kinds[purpose ?? ''] ?? 'other');
          return [{ kind, label: label ?? '', value }];
        }),
      );
    },
  };
}

export function itemIn(vault: SourceVault, id: string, title: string, urls: string[]): SourceItem {
  const path = `${vault.name}/${title}`;
  return { id, title, vault_id: vault.id, vault_name: vault.name, path, ...(urls.length > 0 ? { urls } : {}) };
}
