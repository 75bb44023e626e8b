import type { ClientRequest } from 'node:http';
import { stopParsing } from './counted-response.ts';

/** A server has reasons for a few: `100 Continue`, `102 Processing`, `103 Early Hints`. */
const MOST = 20;

/**
 * Bounds the interim answers (1xx) to a request. Node emits all that a chunk has in one turn of the event loop: a server that sends nothing else
 * stopped the service for a second. The request fails with the first one too many.
 */
export function boundInterimAnswers<R extends ClientRequest>(request: R): R {
  let count = 0;
  return request.on('information', () => {
    count += 1;
    if (count <= MOST) return;
    const { socket } = request;
    request.destroy(new Error('there are too many interim answers'));
    if (socket) stopParsing(socket);
  });
}
