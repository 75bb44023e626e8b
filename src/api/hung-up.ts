import type { FastifyReply } from 'fastify';
import { errors } from '../errors.ts';

/** Aborts when the client goes away before it was answered, so that nothing is made for nobody. */
export function hungUp(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableEnded) controller.abort(errors.client_hung_up());
  });
  return controller.signal;
}
