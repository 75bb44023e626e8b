import type { FastifyReply } from 'fastify';

interface Page {
  limit: number;
  offset: number;
}

/**
 * Sends one page of a list. `rows` is the store's answer to a query for `limit + 1` rows: the extra row shows that there is another page.
 * `cut`: the store left out the end of that answer because of its size, so the next page begins there.
 */
export function sendPage<T>(reply: FastifyReply, { limit, offset }: Page, rows: T[], cut = false): T[] {
  const more = cut || rows.length > limit;
  void reply.headers({
    'X-Has-More': String(more),
    'X-Next-Offset': String(more ? offset + Math.min(limit, rows.length) : 0),
    'X-Limit': String(limit),
    'X-Offset': String(offset),
  });
  return more ? rows.slice(0, limit) : rows;
}
