import type { FastifyReply } from 'fastify';
import { errors } from '../errors.ts';

/** The event streams that a session may have. The service keeps up to 320 KiB for a reader that does not read. */
const mostStreams = 64;

const open = new Map<string, number>();

/** Takes a place for an event stream of a session, until its connection closes. Throws when there is no place left. */
export function takeStreamPlace(sessionId: string, { raw }: FastifyReply): void {
  const before = open.get(sessionId) ?? 0;
  if (before >= mostStreams) throw errors.too_many_streams({ most: mostStreams });
  if (raw.destroyed) return; // the reader has disconnected, and `close` was emitted
  open.set(sessionId, before + 1);
  raw.once('close', () => {
    const left = open.get(sessionId)! - 1;
    if (left > 0) open.set(sessionId, left);
    else open.delete(sessionId);
  });
}
