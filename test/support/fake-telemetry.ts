import type { TelemetryEvent, TelemetrySink } from '../../src/lib/telemetry.ts';
import { silent } from '../../src/lib/log.ts';
import type { Collector } from '../../src/chromium/telemetry/collector.ts';
import { sessionTelemetry } from '../../src/sessions/telemetry.ts';
import { nothing } from '../../src/telemetry/capture.ts';

/** Takes events into a list: those of which a part is to come when they are whole. */
export const intoList = (events: TelemetryEvent[]): TelemetrySink => ({
  add: (event) => void events.push(event),
  draft: () => (whole) => void (whole && events.push(whole)),
});

/** The telemetry of a session with a journal and a collector that only record their calls. */
export function fakeTelemetry(collector: Partial<Collector> = {}) {
  const events: TelemetryEvent[] = [];
  const done: string[] = [];
  const journal = {
    capture: nothing,
    ...intoList(events),
    hide: (secrets: Iterable<{ password: string }>) =>
      void done.push(`hide ${Array.from(secrets, ({ password }) => password).join(' ')}`),
    clean: (text: string) => `clean ${text}`,
    endReaders: () => void done.push('end readers'),
    end: () => void done.push('end'),
  };
  const telemetry = sessionTelemetry({
    id: 's',
    journal,
    collect: ({ capture }) => ({
      ready: Promise.resolve(void done.push(`collect ${[...capture].join(' ')}`)),
      change: async (next) => void done.push(`change ${[...next].join(' ')}`),
      browserGone: () => void done.push('browser gone'),
      browserBack: async () => void done.push('browser back'),
      browserLost: () => void done.push('browser lost'),
      close: async () => void done.push('close'),
      ...collector,
    }),
    log: silent,
  });
  return { telemetry, journal, events, done };
}
