/**
 * The words that the collectors of a browser and the room that keeps events share. They are here because the engine room
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

/** The categories with events from the browser. */
const browserCategories: readonly TelemetryCategory[] = [
  'console',
  'page',
  'interaction',
  'network',
  'screenshot',
  'captcha',
];

/** Whether the service has to attach to the browser for a capture. */
export const needsBrowser = (capture: Capture): boolean => browserCategories.some((category) => capture.has(category));

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
  /** True when `data` was left out because the record was too large, or there are more secrets than can be hidden. */
  truncated?: boolean;
}

/** Takes events. It never throws and never waits: a slow reader loses events, the browser loses no time. */
export interface TelemetrySink {
  add(event: TelemetryEvent): void;
  /** Takes an event of which a part is to come. Readers see the whole of it, and what there is of it if the service is killed before. */
  draft(event: TelemetryEvent): Finish<TelemetryEvent>;
}

/** Call it once: with the whole, or with nothing to give it up. */
export type Finish<T> = (whole?: T) => void;

/**
 * The fields of a network event's `source.metadata`, for the HAR and trace exports. The data of an event has
 * the fields of the public API and no others; this map is free. Every value is text, every key is optional: without it, an
 * export has less detail.
 */
export interface NetworkMetadata {
  /** Of a request, an answer and a failure: seconds on the clock of Chromium, which is never set back. */
  cdp_timestamp?: string;
  /** network_response: the same clock, when the head of the answer arrived. The rest of the time is the body. */
  head_timestamp?: string;
  /** network_response: the protocol of the answer, such as `http/1.1`, `h2` or `h3`. */
  protocol?: string;
  /** network_response without network traffic: `disk` or `service_worker`. */
  from_cache?: string;
  /** network_response: bytes on the wire, head and body. */
  encoded_data_length?: string;
  /** network_response: the address of the server, without brackets. It is missing behind a proxy, where the server is not known. */
  server_ip?: string;
}
