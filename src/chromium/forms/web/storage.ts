/** A hash of the origin's storage, for comparisons only. */
export function storage(seed: number) {
  let hash = seed >>> 0;
  let keys = 0;
  const mix = (text: string) => {
    for (let i = 0; i < text.length && i < 20_000; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619) >>> 0;
    hash = Math.imul(hash ^ text.length, 2246822519) >>> 0;
  };
  for (const kind of ['localStorage', 'sessionStorage'] as const) {
    try {
      const store = globalThis[kind];
      const names = Object.keys(store).sort().slice(0, 1000);
      keys += names.length;
      for (const name of names) {
        mix(name);
        mix(store.getItem(name) ?? '');
      }
    } catch {
      // A document of an opaque origin has no storage.
    }
  }
  return { origin: globalThis.origin.slice(0, 300), keys, hash };
}
