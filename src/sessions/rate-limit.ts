import { errors } from '../errors.ts';

/** A token bucket: as many at once as a minute allows, refilled evenly. Undefined when there is no limit. */
export function rateLimit(perMinute: number, now: () => number = Date.now) {
  if (perMinute === 0) return undefined;
  let tokens = perMinute;
  let filledAt = now();

  return {
    /** The headers of every answer of a limited path; throws when there is nothing left to take. */
    take(): Record<string, string> {
      tokens = Math.min(perMinute, tokens + ((now() - filledAt) * perMinute) / 60_000);
      filledAt = now();
      const headers = (left: number) => ({
        'X-RateLimit-Limit': String(perMinute),
        'X-RateLimit-Remaining': String(Math.floor(left)),
      });
      if (tokens < 1) {
        const seconds = Math.max(1, Math.ceil(((1 - tokens) * 60) / perMinute));
        throw errors.rate_limit_exceeded(
          { perMinute, seconds },
          { headers: { ...headers(0), 'Retry-After': String(seconds) } },
        );
      }
      tokens -= 1;
      return headers(tokens);
    },
  };
}

export type RateLimit = ReturnType<typeof rateLimit>;
