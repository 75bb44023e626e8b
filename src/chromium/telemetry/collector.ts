import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../lib/log.ts';
import { needsBrowser, type Capture, type TelemetrySink } from '../../lib/telemetry.ts';
import type { Mux } from '../cdp/mux.ts';
import { eventOf, type NewEvent } from './target.ts';
import { watchBrowser, type BrowserWatch } from './browser-watch.ts';

/** Collects what one session's browsers do, one browser after the other. */
export interface Collector {
  /** Settles when the first capture is in effect. It never rejects: a failure is reported as an event. */
  readonly ready: Promise<void>;
  /** Captures these categories from now on; those that do not come from the browser are ignored. It never rejects. */
  change(capture: Capture): Promise<void>;
  /** The browser has exited and is being replaced. */
  browserGone(): void;
  /** Another browser has replaced it: the capture continues there. */
  browserBack(mux: Mux): Promise<void>;
  /** The browser was not replaced: nothing more will be collected. */
  browserLost(): void;
  /** Ends the capture. Nothing is captured afterwards. */
  close(): Promise<void>;
}

export interface CollectorOptions {
  mux: Mux;
  capture: Capture;
  sink: TelemetrySink;
  log: Log;
}

/** How often a capture is started again in a replaced browser that does not answer. */
const MOST_TRIES = 10;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 2000;

export function collect({ mux: first, capture: initial, sink, log }: CollectorOptions): Collector {
  let mux = first;
  let capture = initial;
  let watch: BrowserWatch | undefined;
  let goneAt: number | undefined;
  let over = false;
  /** Changes are made one after the other. */
  let line: Promise<void> = Promise.resolve();

  const emit = (event: NewEvent) => {
    if (!over) sink.add(eventOf(event, Date.now()));
  };
  const draft = (event: NewEvent) => {
    const finish = sink.draft(eventOf(event, Date.now()));
    return (whole?: NewEvent) => finish(whole && eventOf(whole, Date.now()));
  };
  const monitor = (event: NewEvent) => {
    if (needsBrowser(capture)) emit(event);
  };

  /** Brings the watch in line with the categories. Rejects if the browser does not take it. */
  async function apply(): Promise<void> {
    if (over || goneAt !== undefined) return; // browserBack applies it
    if (!needsBrowser(capture)) {
      watch?.close();
      watch = undefined;
      return;
    }
    watch ??= watchBrowser(mux, { emit, draft });
    await watch.change(capture);
  }

  function inLine(work: () => Promise<void>): Promise<void> {
    line = line.then(work);
    return line;
  }

  async function applyOrTell(): Promise<void> {
    try {
      await apply();
    } catch (error) {
      if (over || goneAt !== undefined || mux.isClosed) return;
      log.warn({ reason: (error as Error).message }, 'telemetry.init_failed');
      monitor({ type: 'monitor_init_failed', data: { step: 'Target.setAutoAttach' } });
    }
  }

  async function reconnect(since: number): Promise<void> {
    let wait = FIRST_WAIT_MS;
    for (let tries = 1; !over && goneAt === undefined; tries++) {
      try {
        await apply();
        return monitor({ type: 'monitor_reconnected', data: { reconnect_duration_ms: Date.now() - since } });
      } catch (error) {
        watch?.close();
        watch = undefined;
        if (over || goneAt !== undefined || mux.isClosed) return; // a later browserBack starts again
        log.warn({ reason: (error as Error).message, tries }, 'telemetry.reconnect_failed');
        if (tries >= MOST_TRIES)
          return monitor({ type: 'monitor_reconnect_failed', data: { reason: 'reconnect_exhausted' } });
      }
      await sleep(wait);
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
  }

  return {
    ready: inLine(applyOrTell),

    change(next) {
      capture = next;
      return inLine(applyOrTell);
    },

    browserGone() {
      if (over || goneAt !== undefined) return;
      goneAt = Date.now();
      watch?.close();
      watch = undefined;
      monitor({ type: 'monitor_disconnected', data: { reason: 'chrome_restarted' } });
    },

    browserBack(next) {
      const since = goneAt ?? Date.now();
      goneAt = undefined;
      watch?.close();
      watch = undefined;
      mux = next;
      return inLine(() => reconnect(since));
    },

    browserLost() {
      goneAt ??= Date.now();
      watch?.close();
      watch = undefined;
      monitor({ type: 'monitor_reconnect_failed', data: { reason: 'reconnect_exhausted' } });
    },

    async close() {
      watch?.close();
      watch = undefined;
      over = true;
      await line;
    },
  };
}
