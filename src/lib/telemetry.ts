/**
 * The words that the collectors of a browser and the room that keeps events share. They stand here because the engine room
 * imports nothing but lib/, and because neither side owns them.
 */

/** What clients can switch on and off. */
export const telemetryCategories = [
  'console',
  'page',
  'interaction',
  'network',
  'control',
  'connection',
  'system',
  'screenshot',
  'captcha',
] as const;

export type TelemetryCategory = (typeof telemetryCategories)[number];

/** `monitor` cannot be set: it reports on the collector itself, whenever that runs. */
export type EventCategory = TelemetryCategory | 'monitor';

/** The categories that are captured. An empty set captures nothing. */
export type Capture = ReadonlySet<TelemetryCategory>;

/** One thing that happened, as clients read it. `seq` is added where events of a session come together. */
export interface TelemetryEvent {
  /** Unix microseconds. */
  ts: number;
  type: string;
  category: EventCategory;
  source: {
    kind: 'cdp' | 'kernel_api' | 'extension' | 'local_process';
    event?: string;
    metadata?: Record<string, string>;
  };
  data?: Record<string, unknown>;
  /** True when `data` was left out because the record was too large. */
  truncated?: boolean;
}

/** Takes an event. It never throws and never waits: a slow reader loses events, the browser loses no time. */
export type TelemetrySink = (event: TelemetryEvent) => void;
