/** The filters of the audit log in the address. */
export interface AuditSearch {
  query?: string | undefined;
  method?: string | undefined;
  /** How far back, from now or from the end of a day. */
  days?: number | undefined;
  /** The last day that is shown, as 2026-11-17. */
  until?: string | undefined;
}

const DAY_MS = 86_400_000;
export const methods = ['POST', 'PUT', 'PATCH', 'DELETE'];
/** The API takes thirty days at once. */
export const spans = [1, 7, 30];
const WEEK = 7;

export const auditSearch = ({ query, method, days, until }: Record<string, unknown>): AuditSearch => ({
  ...(typeof query === 'string' && query !== '' ? { query } : {}),
  ...(methods.includes(method as string) ? { method: method as string } : {}),
  ...(spans.includes(days as number) && days !== WEEK ? { days: days as number } : {}),
  ...(isDay(until) ? { until } : {}),
});

const isDay = (text: unknown): text is string =>
  typeof text === 'string' && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));

/** The same as parameters of the API. Days are those of the person's clock; without a last day, entries of this minute count. */
export function auditFilter({ query, method, days = WEEK, until }: AuditSearch, now = Date.now()) {
  const end = until ? Date.parse(`${until}T00:00:00`) + DAY_MS : now + 60_000;
  return {
    start: new Date(end - days * DAY_MS).toISOString(),
    end: new Date(end).toISOString(),
    ...(query && { search: query }),
    ...(method && { method }),
  };
}
