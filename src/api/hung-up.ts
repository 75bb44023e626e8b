import type { FastifyReply } from 'fastify';
import { errors } from '../errors.ts';

/** Aborts when the client disconnects before the response, so that its work can be cancelled. */
export function hungUp(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  const abort = () => void (reply.raw.writableEnded || controller.abort(errors.client_hung_up()));
  if (reply.raw.destroyed)
    abort(); // disconnected while its key was looked up
  else reply.raw.once('close', abort);
  return controller.signal;
}
