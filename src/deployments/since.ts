import { errors } from '../errors.ts';

const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Reads `since`: a time such as 2026-01-31T12:00:00Z, or how long ago, such as 90s, 5m or 1h30m. Null when it is left out. */
export function readSince(text: string | undefined, now = Date.now()): Date | null {
  if (text === undefined) return null;
  const ago = [...text.matchAll(/(\d{1,9})([smhd])/g)];
  if (ago.length > 0 && ago.map(([part]) => part).join('') === text) {
    const seconds = ago.reduce((sum, [, count, unit]) => sum + Number(count) * units[unit!]!, 0);
    return new Date(Math.max(0, now - seconds * 1000));
  }
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? new Date(text) : new Date(NaN);
  if (Number.isNaN(at.getTime()))
    throw errors.invalid_input({
      detail: `since is '${text}'; it takes a time such as 2026-01-31T12:00:00Z, or how long ago, such as 5m.`,
    });
  return at;
}
