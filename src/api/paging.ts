import type { FastifyReply } from 'fastify';

export interface Page {
  limit: number;
  offset: number;
}

/** Sends one page of a list. `rows` is the store's answer to a query for `limit + 1` rows: the extra row shows that there is another page. */
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
