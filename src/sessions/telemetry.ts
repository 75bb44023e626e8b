import type { Engine } from '../chromium/engine.ts';
import type { Proxy } from '../chromium/egress/proxy.ts';
import type { OutOfMemory } from '../chromium/sandbox/memory-watch.ts';
import type { Collector, CollectorOptions } from '../chromium/telemetry/collector.ts';
import { Overdue, within } from '../lib/deadline.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import { needsBrowser, type Capture, type TelemetryEvent } from '../lib/telemetry.ts';
import { nothing } from '../telemetry/capture.ts';
import type { SessionJournal } from '../telemetry/service.ts';
import * as serviceEvents from '../telemetry/service-events.ts';

export type Collect = (options: CollectorOptions) => Collector;

/** A connection that is reported when it begins and when it ends. */
export interface Visit {
  message(): void;
  /** `code` is the one with which the service closed it; undefined: the client did. Only the first call counts. */
  over(code?: number): void;
}

/** After this time the session continues without waiting for its collector, which also continues. */
const patienceMs = 5000;

export type SessionTelemetry = ReturnType<typeof sessionTelemetry>;

/** What one session reports about itself, and the collector of its browser while a category needs it. */
export function sessionTelemetry({
  id,
  journal,
  collect,
  log,
}: {
  id: string;
  journal: SessionJournal;
  collect: Collect;
  log: Log;
}) {
  let collector: Collector | undefined;
  let changes: Promise<unknown> = Promise.resolve();

  /** A failure is reported in the events themselves (`monitor_init_failed`) and in the log; the session works without. */
  const patiently = (work: Promise<void>) =>
    within(patienceMs, 'The collector', work).catch((error: Error) =>
      log.warn({ session: id, error: error.message, late: error instanceof Overdue }, 'session.not_captured'),
    );

  async function follow(capture: Capture, engine: Engine): Promise<void> {
    if (!needsBrowser(capture)) {
      const last = collector;
      collector = undefined;
      return last?.close();
    }
    if (collector) return collector.change(capture);
    collector = collect({ mux: engine.mux, capture, sink: journal, log });
    await collector.ready;
  }

  return {
    get capture() {
      return journal.capture;
    },

    tell: (event: TelemetryEvent) => journal.add(event),
    crashed: (phase: serviceEvents.CrashPhase) => journal.add(serviceEvents.serviceCrashed('chromium', phase)),

    outOfMemory(report: OutOfMemory) {
      for (const event of serviceEvents.oomKills(report)) journal.add(event);
    },

    /** Captures this from now on. One change at a time, so that the browser and the journal end up with the last one. */
    change(capture: Capture, engine: Engine): Promise<void> {
      journal.capture = capture;
      const done = changes.then(() => patiently(follow(capture, engine)));
      changes = done;
      return done;
    },

    /** The proxy's password must not be in any event, also if the proxy or a page repeats it. */
    hide(proxy: Proxy | undefined) {
      if (proxy?.login) journal.hide([proxy.login]);
    },

    /** The same for values typed into a login page: forms send it under any name. */
    hideTyped(values: readonly string[]) {
      journal.hide(values.map((password) => ({ password })));
    },

    /** Lines of a log without the secrets that no event may have either. */
    clean: (lines: readonly string[]): string[] => lines.map(journal.clean),

    browserGone: () => collector?.browserGone(),
    browserBack: async (engine: Engine) => collector && patiently(collector.browserBack(engine.mux)),
    browserLost: () => collector?.browserLost(),

    /** A client or a viewer has connected. */
    visited(kind: 'cdp' | 'viewer'): Visit {
      const started = performance.now();
      const viewer = newId();
      let messages = 0;
      let over = false;
      journal.add(kind === 'cdp' ? serviceEvents.cdpConnect() : serviceEvents.liveViewConnect(viewer));
      return {
        message: () => void messages++,
        over(code) {
          if (over) return;
          over = true;
          const durationMs = performance.now() - started;
          journal.add(
            kind === 'cdp'
              ? serviceEvents.cdpDisconnect(durationMs, messages, code)
              : serviceEvents.liveViewDisconnect(viewer, durationMs),
          );
        },
      };
    },

    /** The session has no holder from now on: nothing is captured, and the holder's streams end. */
    shelve() {
      journal.capture = nothing;
      journal.endReaders();
      const last = collector;
      collector = undefined;
      last?.close().catch(() => {});
    },

    /** The session is over. */
    end() {
      collector?.close().catch(() => {});
      collector = undefined;
      journal.end();
    },
  };
}
