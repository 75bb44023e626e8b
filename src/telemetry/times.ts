import { errors } from '../errors.ts';

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/;
const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const part = String.raw`(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|h|d)`;
const duration = new RegExp(`^(?:${part})+$`);

/** A time, or how long before `nowMs`, in microseconds since 1970. */
export function sinceUs(text: string, nowMs: number): number {
  if (duration.test(text)) {
    const parts = [...text.matchAll(new RegExp(part, 'g'))];
    const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * unitMs[unit!]!, 0);
    return Math.max(0, Math.round((nowMs - ms) * 1000));
  }
  return timeUs(
    text,
    'query parameter since must be a time such as 2026-01-31T12:00:00Z, or a duration such as 90s, 5m or 1h30m.',
  );
}

export const untilUs = (text: string): number =>
  timeUs(text, 'query parameter until must be a time such as 2026-01-31T12:00:00Z.');

function timeUs(text: string, detail: string): number {
  const ms = rfc3339.test(text) ? Date.parse(text.toUpperCase().replace(' ', 'T')) : Number.NaN;
  if (Number.isNaN(ms)) throw errors.invalid_input({ detail });
  // Date has milliseconds; the three digits after them count, too.
  const micros = Number((/\.(\d+)/.exec(text)?.[1] ?? '').padEnd(9, '0').slice(3, 6) || 0);
  return Math.max(0, ms * 1000 + micros);
}
