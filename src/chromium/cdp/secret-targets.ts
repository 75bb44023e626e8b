/** Enough for every page that events may still mention; the oldest ids are dropped. */
const REMEMBERED = 1000;

/**
 * The targets of the service itself, which the multiplexer hides from its clients: Playwright would take such a target for a page of its
 * context, and drive it. While one is created, target events wait 10 to 50 ms for its id.
 *
 * A page comes with a `tab` around it, which Chromium announces just before the page. Nothing else connects the two.
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
    /** Whether a secretive client exists: until then no message has to be inspected. */
    any: false,
    /** How many hidden targets are being created, with ids still unknown. */
    making: 0,
    has: (id: string) => ids.has(id),

    /** Called when the secretive client's events report a target created by any client. */
    created({ targetId, type }: { targetId: string; type: string }) {
      if (this.making === 0) return;
      if (type === 'tab') lastTab = targetId;
      else if (lastTab !== undefined && tabs.size < REMEMBERED) tabs.set(targetId, lastTab);
    },

    /** A hidden target was created; undefined if that failed. */
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
