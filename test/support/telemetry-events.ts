import { categoryOf, type EventType } from '../../src/lib/telemetry-events.ts';
import type { TelemetryEvent } from '../../src/lib/telemetry.ts';
import type { EventSource, StoredEvent } from '../../src/telemetry/export/source.ts';

/** Records of a session, a quarter of a second apart. */
export function eventList() {
  const list: StoredEvent[] = [];
  const startedAt = Date.UTC(2026, 10, 16, 8) * 1000;
  let ts = startedAt;
  return {
    list,
    startedAt,
    add(type: EventType, data?: Record<string, unknown>, more: Partial<TelemetryEvent['source']> = {}) {
      const category = categoryOf(type);
      ts += 250_000;
      const event: TelemetryEvent = { ts, type, category, source: { kind: 'cdp', ...more }, ...(data && { data }) };
      list.push({ seq: list.length + 1, event });
      return this;
    },
  };
}

/** A source over a list. `endedEarly` counts the readings that were left before their end. */
export function sourceOf(list: Iterable<StoredEvent>) {
  const count = { endedEarly: 0 };
  const source: EventSource = {
    async *read(_sessionId, { categories }) {
      let whole = false;
      try {
        for (const stored of list) if (!categories || categories.includes(stored.event.category)) yield stored;
        whole = true;
      } finally {
        if (!whole) count.endedEarly++;
      }
    },
  };
  return { source, count };
}

/** The context of a tab whose main frame has the id of the tab, as Chromium gives them out. */
export function tab(targetId: string, loaderId: string) {
  return { session_id: 'S', target_id: targetId, target_type: 'page', frame_id: targetId, loader_id: loaderId };
}

/** A real PNG of one pixel. */
export const onePixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
