import type { EventCategory, TelemetryEvent } from '../../lib/telemetry.ts';

/** An event as the archive has it. `seq` rises within a session. */
export interface StoredEvent {
  seq: number;
  event: TelemetryEvent;
}

/** The events of a session, the oldest first; of all categories unless some are named. Leaving the loop ends the reading. */
export interface EventSource {
  read(sessionId: string, query: { categories?: readonly EventCategory[] }): AsyncIterable<StoredEvent>;
}

/** Counts what an export keeps in memory. Resolves when there is room for so many bytes. */
export type Keep = (bytes: number) => Promise<void>;

type Data = TelemetryEvent['data'];

export function textIn(data: Data, key: string): string | undefined {
  const value = data?.[key];
  return typeof value === 'string' ? value : undefined;
}

export function numberIn(data: Data, key: string): number | undefined {
  const value = data?.[key];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** A number that is written as text, as headers and metadata have them. */
export function numberOf(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  const value = Number(text);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** About how many bytes of memory a value of an event takes. */
export function weightOf(value: unknown): number {
  if (typeof value === 'string') return 16 + value.length;
  if (typeof value !== 'object' || value === null) return 16;
  let weight = 64;
  for (const [name, inner] of Object.entries(value)) weight += name.length + weightOf(inner);
  return weight;
}

/** Milliseconds since 1970, from the microseconds of events. */
export function msOf(ts: number): number {
  return ts / 1000;
}
