import type { IncomingMessage } from 'node:http';
import { Pieces } from './pieces.ts';

/** Larger chunks are passed on as they come, unless smaller ones wait. */
const SMALL = 4 * 1024;

/**
 * Gathers the chunks of a body that are read in one turn of the event loop. Node passes each one to the stream of the request: 64 KiB have
 * ten thousand chunks of one byte, and the work of the stream is several times that of the parser.
 */
export function gatherChunks(request: Pick<IncomingMessage, 'push'>): void {
  const push = request.push.bind(request);
  const pieces = new Pieces();
  const flush = () => {
    if (pieces.length > 0) push(pieces.take());
  };
  request.push = (chunk: Buffer | null) => {
    if (chunk === null) flush();
    if (chunk === null || (pieces.length === 0 && chunk.length > SMALL)) return push(chunk);
    if (pieces.length === 0) setImmediate(flush);
    pieces.add(chunk);
    return false; // nothing more is read from the connection until these are
  };
}
