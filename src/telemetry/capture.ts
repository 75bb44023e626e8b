import { errors } from '../errors.ts';
import { telemetryCategories, type Capture, type TelemetryCategory } from '../lib/telemetry.ts';

/**
 * Which categories a request switches on. The rules are a table, which capture.test.ts repeats row by row: a create starts
 * from nothing, an update from the session's capture, an acquire from its pool's.
 */

type Flags = { [C in TelemetryCategory]?: { enabled?: boolean } };

/** What clients send. */
export interface TelemetryRequest {
  enabled?: boolean;
  browser?: Flags;
}

/** The reply to clients. */
interface TelemetryReply {
  browser: { [C in TelemetryCategory]: { enabled: boolean } };
}

/** Captured unless switched off: what costs the browser nothing. */
export const defaultSet: Capture = new Set<TelemetryCategory>(['control', 'connection', 'system', 'captcha']);

export const nothing: Capture = new Set();

/** The capture of a new session or pool. */
export function captureOnCreate(request: TelemetryRequest | null | undefined): Capture {
  return captureOnUpdate(nothing, request) ?? nothing;
}

/** The capture after an update of a session or a pool; undefined when the request leaves it as it is. */
export function captureOnUpdate(before: Capture, request: TelemetryRequest | null | undefined): Capture | undefined {
  const flags = flagsOf(request);
  if (request?.enabled === false) {
    if (flags.length > 0)
      throw errors.invalid_input({
        detail: `telemetry.enabled is false and telemetry.browser.${flags[0]![0]} is given. Leave out one of them: enabled false switches everything off.`,
      });
    return nothing;
  }
  if (request?.enabled !== true && flags.length === 0) return undefined;
  const after = new Set(request?.enabled === true || before.size === 0 ? defaultSet : before);
  for (const [category, enabled] of flags) {
    if (enabled) after.add(category);
    else after.delete(category);
  }
  return after;
}

/** The capture of a lease: what the pool captures, changed by the request for this lease alone. */
export const captureOnAcquire = (pool: Capture, request: TelemetryRequest | null | undefined): Capture =>
  captureOnUpdate(pool, request) ?? pool;

/** Null when nothing is captured. */
export function inReply(capture: Capture): TelemetryReply | null {
  if (capture.size === 0) return null;
  const flags = telemetryCategories.map((category) => [category, { enabled: capture.has(category) }]);
  return { browser: Object.fromEntries(flags) as TelemetryReply['browser'] };
}

/** The capture that a row or a pool's configuration names. Names of a newer version are left out. */
export function captureOf(stored: readonly string[] | { browser?: Flags } | null | undefined): Capture {
  const named = Array.isArray(stored)
    ? (category: TelemetryCategory) => stored.includes(category)
    : (category: TelemetryCategory) =>
        (stored as { browser?: Flags } | null | undefined)?.browser?.[category]?.enabled === true;
  return new Set(telemetryCategories.filter(named));
}

/** The categories for which a request says on or off. */
function flagsOf(request: TelemetryRequest | null | undefined): [TelemetryCategory, boolean][] {
  return telemetryCategories.flatMap((category) => {
    const enabled = request?.browser?.[category]?.enabled;
    return enabled === undefined ? [] : [[category, enabled] as [TelemetryCategory, boolean]];
  });
}
