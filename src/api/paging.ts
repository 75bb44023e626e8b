import type { FastifyReply } from 'fastify';

export interface Page {
  limit: number;
  offset: number;
}

/**
 * Answers one page of a list. `rows` is what the store found when asked for one more than the limit: the extra row is
 * how we know that there is another page.
 */
export function sendPage<T>(reply: FastifyReply, { limit, offset }: Page, rows: T[]): T[] {
  const more = rows.length > limit;
  void reply.headers({
    'X-Has-More': String(more),
    'X-Next-Offset': String(more ? offset + limit : 0),
    'X-Limit': String(limit),
    'X-Offset': String(offset),
  });
  return more ? rows.slice(0, limit) : rows;
}
