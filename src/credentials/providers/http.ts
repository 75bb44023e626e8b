import type { RequestDirectly } from '../../chromium/egress/direct-request.ts';
import { anyText, list, object, optional, table, text } from '../../lib/shape.ts';
import { contentsOf, type Field } from './fields.ts';
import {
  asking,
  itemCollection,
  pathPart,
  SourceFailure,
  type Source,
  type SourceSettings,
  type SourceVault,
} from './source.ts';

const Vault = object({ id: text(1024), name: text(1024) });
const ListedItem = object({
  id: text(1024),
  title: text(4096),
  vault_id: optional(text(1024)),
  vault_name: optional(text(1024)),
  path: optional(text(8192)),
  urls: optional(list(text(8192))),
});
const Item = object({ values: table(anyText), totp_secret: optional(anyText) });

/** The three calls of docs/credentials.md, for a store of one's own. */
export function httpSource(settings: SourceSettings, request: RequestDirectly): Source {
  const ask = asking(settings, { Authorization: `Bearer ${settings.token}` }, request);
  return {
    async vaults() {
      const vaults: SourceVault[] = [];
      for await (const { id, name } of ask.list('/vaults', ['vaults'], Vault)) vaults.push({ id, name });
      return vaults;
    },

    async items() {
      const { items, add } = itemCollection();
      for await (const item of ask.list('/items', ['items'], ListedItem)) {
        const { id, title, vault_id = '', vault_name = '', urls } = item;
        const path = item.path ?? (vault_name === '' ? title : `${vault_name}/${title}`);
        if (!add({ id, title, vault_id, vault_name, path, ...(urls ? { urls } : {}) })) break;
      }
      return items;
    },

    async read({ id }) {
      if (id === '') throw new SourceFailure('bad_answer', 'An item has no id.');
      const { values, totp_secret: totp } = await ask(`/items/${pathPart(id)}`, Item);
      const fields = Object.entries(values).map(([label, value]): Field => ({ kind: 'other', label, value }));
      return contentsOf([...fields, { kind: 'totp', label: '', value: totp ?? '' }]);
    },
  };
}
