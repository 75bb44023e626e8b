import type { EventCategory, TelemetryEvent } from '../lib/telemetry.ts';
import type { SecretFilter } from './secret-filter.ts';

/**
 * An event as one line of JSON, exactly as clients read it: the stream and the archive pass lines on and never parse them.
 * The fields have a fixed order, so that time and category can be read from the beginning of a line.
 */

/** A longer line loses its data. */
const longestRecord = 1_000_000;

/** The bit of each category in every stored chunk. A new category gets the next bit: a moved one hides what is stored. */
const bits: Record<EventCategory, number> = {
  console: 0,
  page: 1,
  interaction: 2,
  network: 3,
  control: 4,
  connection: 5,
  system: 6,
  screenshot: 7,
  captcha: 8,
  monitor: 9,
};

/** The categories of a chunk, as a bit mask. */
export const maskOf = (categories: Iterable<EventCategory>): number =>
  [...categories].reduce((mask, category) => mask | (1 << bits[category]), 0);

export const everyCategory = maskOf(Object.keys(bits) as EventCategory[]);

/** Undefined for an event that cannot be written as JSON. */
export function lineOf(seq: number, event: TelemetryEvent, secrets: SecretFilter): string | undefined {
  try {
    const line = bounded(seq, event);
    // A picture has no text, and is longer than all other events.
    if (event.category === 'screenshot' || !secrets.finds(line.text)) return line.text;
    return bounded(seq, withoutSecrets(line.event, secrets)).text;
  } catch {
    return undefined;
  }
}

/** The line of an event, without its data if that is too long. */
function bounded(seq: number, event: TelemetryEvent): { text: string; event: TelemetryEvent } {
  const text = stringify(seq, event);
  // A character of a string has three bytes in UTF-8 at most, so most lines need not be measured.
  if (text.length * 3 <= longestRecord || Buffer.byteLength(text) <= longestRecord) return { text, event };
  const cut = withoutData(event);
  return { text: stringify(seq, cut), event: cut };
}

function withoutData({ data: _data, ...event }: TelemetryEvent): TelemetryEvent {
  return { ...event, truncated: true };
}

function stringify(seq: number, { ts, type, category, source, data, truncated }: TelemetryEvent): string {
  return JSON.stringify({ seq, event: { ts: Math.round(ts), type, category, source, data, truncated } });
}

const head = /^\{"seq":(\d+),"event":\{"ts":(\d+),"type":"\w+","category":"(\w+)"/;

/** The same line with another number. */
export const renumbered = (line: string, seq: number): string => `{"seq":${seq}${line.slice(line.indexOf(','))}`;

/** What a line says about itself at its beginning. */
export function headOf(line: string): { seq: number; ts: number; mask: number } {
  const [, seq, ts, category] = head.exec(line) ?? [];
  return { seq: Number(seq), ts: Number(ts), mask: maskOf([category as EventCategory]) };
}

/** Only values are changed, and names in `data`: a secret such as "type" must not take the event apart. */
function withoutSecrets(event: TelemetryEvent, secrets: SecretFilter): TelemetryEvent {
  const { source, data } = event;
  if (secrets.full) {
    const { metadata: _metadata, ...bare } = source;
    return { ...withoutData(event), source: bare };
  }
  const walk = (value: unknown): unknown => {
    if (typeof value === 'string') return secrets.clean(value);
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [secrets.clean(name), walk(inner)]));
  };
  return {
    ...event,
    source: {
      ...source,
      ...(source.metadata ? { metadata: walk(source.metadata) as Record<string, string> } : {}),
    },
    ...(data ? { data: walk(data) as Record<string, unknown> } : {}),
  };
}
