import { errors } from '../errors.ts';
import type { Db } from '../store/db.ts';
import { takeToken } from './rate-limit-store.ts';

/** A token bucket: as many requests at once as a minute allows, refilled evenly. All nodes share it. Undefined when there is no limit. */
export function rateLimit(perMinute: number, db: Db) {
  if (perMinute === 0) return undefined;
  return {
    /** The headers of every answer of a limited path; rejects when no token is left. */
    async take(): Promise<Record<string, string>> {
      const { taken, tokens } = await takeToken(db, 'sessions', perMinute);
      const headers = {
        'X-RateLimit-Limit': String(perMinute),
        'X-RateLimit-Remaining': String(Math.floor(tokens)),
      };
      if (taken) return headers;
      const seconds = Math.max(1, Math.ceil(((1 - tokens) * 60) / perMinute));
      throw errors.rate_limit_exceeded(
        { perMinute, seconds },
        { headers: { ...headers, 'Retry-After': String(seconds) } },
      );
    },
  };
}

export type RateLimit = ReturnType<typeof rateLimit>;
