import type { Group } from '../lib/byte-budget.ts';
import { memoryShare, NoRoom, type MemoryShare } from '../lib/memory-share.ts';
import { answerBound, bounded } from './answers.ts';
import { ToolFailure } from './host.ts';

/**
 * The memory of the answers of the API to one request. All of its messages together may read as much as one: without that, twenty files
 * were held at the same time. It is kept until the request is answered.
 */
export function answerMemory(group: Group, signal: AbortSignal) {
  const rooms: MemoryShare[] = [];
  const bound = answerBound();

  return {
    async read(answer: AsyncIterable<Uint8Array>): Promise<Buffer> {
      const stalled = new AbortController();
      const room = memoryShare(group, () => stalled.abort(new NoRoom()), AbortSignal.any([signal, stalled.signal]));
      rooms.push(room);
      try {
        const bytes = await bounded(answer, (more) => {
          bound(more);
          return room.add(more);
        });
        room.whole();
        return bytes;
      } catch (error) {
        throw error instanceof NoRoom ? new ToolFailure(`${error.message} Wait some seconds, then try again.`) : error;
      }
    },

    close(): void {
      for (const room of rooms) room.close();
    },
  };
}
