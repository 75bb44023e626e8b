import { errors } from '../errors.ts';
import type { Db } from '../store/db.ts';
import { lookAt, takeToken } from './rate-limit-store.ts';

/** A token bucket: as many requests at once as a minute allows, refilled evenly. All nodes share it. Undefined when there is no limit. */
export function rateLimit(perMinute: number, db: Db) {
  if (perMinute === 0) return undefined;
  const headersFor = (tokens: number) => ({
    'X-RateLimit-Limit': String(perMinute),
    'X-RateLimit-Remaining': String(Math.floor(tokens)),
  });
  return {
    /** The headers of an answer of a limited path. Nothing is taken: a body that is refused uses up no client's requests. */
    async look(): Promise<Record<string, string>> {
      return headersFor(await lookAt(db, 'sessions', perMinute));
    },

    /** The same headers, with a token taken; rejects when none is left. */
    async take(): Promise<Record<string, string>> {
      const { taken, tokens } = await takeToken(db, 'sessions', perMinute);
      const headers = headersFor(tokens);
      if (taken) return headers;
      const seconds = Math.max(1, Math.ceil(((1 - tokens) * 60) / perMinute));
      throw errors.rate_limit_exceeded(
        { perMinute, seconds },
        { headers: { ...headers, 'Retry-After': String(seconds) } },
      );
    },
  };
}

interface Answering {
  headers(values: Record<string, string>): unknown;
}

/** For a route that creates sessions: every answer says how many requests are left, and only a valid body takes one. */
export function limited(limit: RateLimit) {
  return {
    preValidation: async (_request: unknown, reply: Answering) => void (limit && reply.headers(await limit.look())),
    preHandler: async (_request: unknown, reply: Answering) => void (limit && reply.headers(await limit.take())),
  };
}

export type RateLimit = ReturnType<typeof rateLimit>;
