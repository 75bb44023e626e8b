import { ContextConfig } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/browser/ContextConfig.js';
import { ContextConfigStorage } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/browser/ContextConfigStorage.js';

/** Of the JSON of all settings of tabs and contexts of one client. */
const MOST_KEPT = 8 * 1024 * 1024;
/** What a setting takes besides its values. */
const EACH = 100;

type Update = (this: ContextConfigStorage, id: string, config: ContextConfig) => void;

/** The settings that a storage has, those that were changed longest ago first. */
class Kept {
  readonly #sizes = new Map<string, { forget: () => void; of: Map<string, number>; sum: number }>();
  #all = 0;

  changed(key: string, config: ContextConfig, forget: () => void): void {
    const entry = this.#sizes.get(key) ?? { forget, of: new Map<string, number>(), sum: 0 };
    this.#sizes.delete(key);
    this.#sizes.set(key, entry);
    for (const [name, value] of Object.entries(config) as [string, unknown][]) {
      if (value === undefined) continue;
      const size = value === null ? 0 : EACH + JSON.stringify(value).length;
      const more = size - (entry.of.get(name) ?? 0);
      entry.of.set(name, size);
      entry.sum += more;
      this.#all += more;
    }
    for (const [oldest, { forget, sum }] of this.#sizes) {
      if (this.#all <= MOST_KEPT || oldest === key) return;
      this.#sizes.delete(oldest);
      this.#all -= sum;
      forget();
    }
  }
}

const kept = new WeakMap<ContextConfigStorage, Kept>();
const nothing = Object.fromEntries(Object.keys(new ContextConfig()).map((name) => [name, null])) as never;

function keepBounded(kind: string, update: Update): Update {
  return function updateBounded(id, config) {
    update.call(this, id, config);
    const settings = kept.get(this) ?? new Kept();
    kept.set(this, settings);
    settings.changed(`${kind} ${id}`, config, () => update.call(this, id, nothing));
  };
}

/** The mapper keeps the settings of every tab and context that there ever was. From now on it forgets the oldest of very many. */
export function boundSettings(): void {
  const { prototype } = ContextConfigStorage;
  prototype.updateBrowsingContextConfig = keepBounded('tab', prototype.updateBrowsingContextConfig);
  prototype.updateUserContextConfig = keepBounded('context', prototype.updateUserContextConfig);
}
