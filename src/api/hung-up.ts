import type { FastifyReply } from 'fastify';

/** Aborts when the client goes away before it was answered, so that nothing is made for nobody. */
export function hungUp(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableEnded) controller.abort(new Error('The client hung up.'));
  });
  return controller.signal;
}
