import type { Readable, Writable } from 'node:stream';
import { loopPace, nextTurn } from './turns.ts';

/**
 * Passes a body on as `pipe` does, in turns of the event loop: all that has arrived since the last turn is one piece. A sender chooses how
 * small its chunks are, and 64 KiB have ten thousand chunks of one byte, each of which would be handled alone. Bodies that are complete
 * at once take turns too, since their readers parse them. Returns a function that stops it.
 */
export function pipeInTurns(from: Readable, to: Writable, owner: unknown, isComplete: () => boolean): () => void {
  let waits = false;

  async function pass(): Promise<void> {
    if (waits || to.writableNeedDrain) return;
    waits = true;
    if (!isComplete() || loopPace.isOver()) await nextTurn(owner);
    waits = false;
    if (to.destroyed) return;
    const arrived = [...chunksIn(from)];
    if (arrived.length > 0) to.write(arrived.length === 1 ? arrived[0] : Buffer.concat(arrived));
    if (isComplete()) to.end(); // there is no event `end` after the client has disconnected
  }

  const end = () => void to.end();
  from.on('readable', pass).once('end', end);
  to.on('drain', pass);
  return () => {
    from.off('readable', pass).off('end', end);
    to.off('drain', pass);
  };
}

/** Until Node 26, the first is all that has arrived. */
function* chunksIn(from: Readable): Generator<Buffer> {
  for (let chunk = from.read() as Buffer | null; chunk !== null; chunk = from.read() as Buffer | null) yield chunk;
}
