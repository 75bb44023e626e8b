import type { RequestDirectly } from '../../chromium/egress/direct-request.ts';
import { anyText, list, object, optional, text, type Check } from '../../lib/shape.ts';
import { contentsOf, type Field } from './fields.ts';
import { asking, mostItems, type Source, type SourceItem, type SourceSettings, type SourceVault } from './source.ts';

const orNull = <T>(check: Check<T>): Check<T | null | undefined> => {
  return (value): value is T | null | undefined => value === null || value === undefined || check(value);
};

const Vaults = list(object({ id: text(255), name: text(1024) }));
const Items = list(
  object({
    id: text(255),
    title: text(4096),
    category: optional(text(64)),
    urls: orNull(list(object({ href: orNull(text(8192)) }))),
  }),
);
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

  const vaults = async (): Promise<SourceVault[]> =>
    (await ask('/v1/vaults', Vaults)).map(({ id, name }) => ({ id, name }));

  return {
    vaults,

    async items() {
      const found: SourceItem[] = [];
      for (const vault of await vaults()) {
        const items = await ask(`/v1/vaults/${encodeURIComponent(vault.id)}/items`, Items);
        for (const { id, title, category, urls } of items) {
          if (!logins.has(category) || found.length >= mostItems) continue;
          const addresses = (urls ?? []).flatMap(({ href }) => (href ? [href] : []));
          found.push(itemIn(vault, id, title, addresses));
        }
      }
      return found;
    },

    async read({ id, vault_id }) {
      const path = `/v1/vaults/${encodeURIComponent(vault_id)}/items/${encodeURIComponent(id)}`;
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
