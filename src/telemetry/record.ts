import { telemetryCategories, type EventCategory, type TelemetryEvent } from '../lib/telemetry.ts';

/**
 * An event as one line of JSON, exactly as clients read it: the stream and the archive pass lines on and never parse them.
 * The fields stand in a fixed order, so that time and category can be read off the beginning of a line.
 */

/** A longer line loses its data. */
export const longestRecord = 1_000_000;

const order: readonly EventCategory[] = [...telemetryCategories, 'monitor'];

/** One bit for each category: a chunk knows in one integer what is in it. */
export const maskOf = (categories: Iterable<EventCategory>): number =>
  [...categories].reduce((mask, category) => mask | (1 << order.indexOf(category)), 0);

export const everyCategory = maskOf(order);

/** Undefined for an event that cannot be written as JSON. */
export function lineOf(seq: number, event: TelemetryEvent, secrets: readonly string[]): string | undefined {
  try {
    const line = stringify(seq, event);
    const whole = holdsAny(line, secrets) ? stringify(seq, withoutSecrets(event, secrets)) : line;
    // A character of a string has three bytes in UTF-8 at most, so most lines need not be measured.
    if (whole.length * 3 <= longestRecord || Buffer.byteLength(whole) <= longestRecord) return whole;
    return stringify(seq, { ...event, data: undefined, truncated: true });
  } catch {
    return undefined;
  }
}

function stringify(
  seq: number,
  { ts, type, category, source, data, truncated }: Omit<TelemetryEvent, 'data'> & { data?: unknown },
): string {
  return JSON.stringify({ seq, event: { ts: Math.round(ts), type, category, source, data, truncated } });
}

const head = /^\{"seq":(\d+),"event":\{"ts":(\d+),"type":"\w+","category":"(\w+)"/;

/** What a line says about itself at its beginning. */
export function headOf(line: string): { seq: number; ts: number; mask: number } {
  const [, seq, ts, category] = head.exec(line) ?? [];
  return { seq: Number(seq), ts: Number(ts), mask: 1 << order.indexOf(category as EventCategory) };
}

export const cut = '[redacted]';
/** A shorter secret would be found in every other word. */
const shortest = 4;

/** The ways in which secrets stand in headers, addresses and bodies; for `lineOf`. */
export function formsOf(secrets: Iterable<{ username?: string; password: string }>): string[] {
  const forms = new Set<string>();
  for (const { username = '', password: given } of secrets) {
    if (given.length < shortest) continue;
    const password = wellFormed(given);
    forms.add(password);
    forms.add(encodeURIComponent(password));
    forms.add(new URLSearchParams({ '': password }).toString().slice(1)); // as forms send it
    forms.add(JSON.stringify(password).slice(1, -1));
    forms.add(Buffer.from(`${username}:${password}`).toString('base64'));
  }
  return [...forms].sort((a, b) => b.length - a.length); // a form may contain another one
}

/** Half a surrogate pair becomes what every encoder makes of it. `encodeURIComponent` throws on one. */
const wellFormed = (text: string) => Buffer.from(text).toString();

/** A line has strings in JSON's spelling, so both spellings of a secret are looked for. */
const holdsAny = (line: string, secrets: readonly string[]) =>
  secrets.some((secret) => line.includes(secret) || line.includes(JSON.stringify(secret).slice(1, -1)));

/** `text` without the secrets that have these forms. */
export const withoutForms = (text: string, forms: readonly string[]): string =>
  forms.reduce((rest, form) => rest.replaceAll(form, cut), text);

/** Only values are changed, and names in `data`: a secret such as "type" must not take the event apart. */
function withoutSecrets(event: TelemetryEvent, secrets: readonly string[]): TelemetryEvent {
  const clean = (text: string) => withoutForms(text, secrets);
  const walk = (value: unknown): unknown => {
    if (typeof value === 'string') return clean(value);
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [clean(name), walk(inner)]));
  };
  const { source, data } = event;
  return {
    ...event,
    source: {
      ...source,
      ...(source.metadata ? { metadata: walk(source.metadata) as Record<string, string> } : {}),
    },
    ...(data ? { data: walk(data) as Record<string, unknown> } : {}),
  };
}
