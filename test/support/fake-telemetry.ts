import type { TelemetryEvent } from '../../src/lib/telemetry.ts';
import { silent } from '../../src/lib/log.ts';
import type { Collector } from '../../src/chromium/telemetry/collector.ts';
import { sessionTelemetry } from '../../src/sessions/telemetry.ts';
import { nothing } from '../../src/telemetry/capture.ts';

/** The telemetry of a session with a journal and a collector that only note what they are told. */
export function fakeTelemetry(collector: Partial<Collector> = {}) {
  const events: TelemetryEvent[] = [];
  const done: string[] = [];
  const journal = {
    capture: nothing,
    add: (event: TelemetryEvent) => void events.push(event),
    hide: (secrets: Iterable<{ password: string }>) =>
      void done.push(`hide ${Array.from(secrets, ({ password }) => password).join(' ')}`),
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
