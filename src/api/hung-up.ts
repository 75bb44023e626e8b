import type { FastifyReply } from 'fastify';
import { errors } from '../errors.ts';

/** Aborts when the client goes away before it was answered, so that nothing is made for nobody. */
export function hungUp(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  const gone = () => void (reply.raw.writableEnded || controller.abort(errors.client_hung_up()));
  if (reply.raw.destroyed)
    gone(); // while its key was looked up
  else reply.raw.once('close', gone);
  return controller.signal;
}
