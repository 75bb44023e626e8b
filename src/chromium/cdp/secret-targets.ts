/** Enough for every page that can still be heard of; ids of pages long gone make room. */
const REMEMBERED = 1000;

/**
 * Which targets are the service's own, for the multiplexer to keep from its clients: a Playwright that saw one would take it for
 * a page of its context, and drive it.
 *
 * A page comes with a `tab` around it, which Chromium announces just before and ties to it by nothing else.
 */
export function secretTargets() {
  const ids = new Set<string>();
  const tabs = new Map<string, string>();
  let lastTab: string | undefined;

  function add(id: string | undefined) {
    if (id === undefined) return;
    ids.add(id);
    if (ids.size > REMEMBERED) ids.delete(ids.values().next().value!);
  }

  return {
    /** Somebody has secrets: until then nothing has to be looked at. */
    any: false,
    /** How many are being made, whose ids are not known yet. */
    making: 0,
    has: (id: string) => ids.has(id),

    /** What the client with secrets hears of targets that come to be, its own among them. */
    created({ targetId, type }: { targetId: string; type: string }) {
      if (this.making === 0) return;
      if (type === 'tab') lastTab = targetId;
      else if (lastTab !== undefined) tabs.set(targetId, lastTab);
    },

    /** One was made; undefined if it was not to be. */
    made(id: string | undefined) {
      this.making -= 1;
      add(id);
      add(id === undefined ? undefined : tabs.get(id));
      if (this.making > 0) return;
      tabs.clear();
      lastTab = undefined;
    },
  };
}
