import { memory, progress, type ByteBudget, type Group } from './byte-budget.ts';

/** The part of the memory budget for bytes of a peer that are kept whole. It grows as they arrive. */
export interface MemoryShare {
  /** Counts bytes that arrived. Resolves when there is room for more; until then nothing is read. Rejects when `disconnected` aborts. */
  add(bytes: number): Promise<void>;
  /** All bytes have arrived: the rest of the work is done by this process. */
  whole(): void;
  close(): void;
}

/** The same for bytes that wait for a reader. */
export interface UnreadShare extends MemoryShare {
  /** The reader has taken bytes: it makes progress. */
  moved(bytes: number): void;
}

/** There was no room for LONGEST_WAIT_MS. */
export class NoRoom extends Error {
  override readonly name = 'NoRoom';

  constructor() {
    super('The memory for large answers was in use for too long.');
  }
}

/** Waiting shares keep what they have, so the wait is bounded: they may be waiting for each other. */
const LONGEST_WAIT_MS = 30_000;

/** `end` is called when no bytes arrived for too long while others wait for room: it ends the source. */
export function memoryShare(
  group: Group,
  end: () => void,
  disconnected?: AbortSignal,
  budget: ByteBudget = memory,
): UnreadShare {
  const share = budget.share(group, 'sender', end);
  return {
    async add(bytes) {
      disconnected?.throwIfAborted();
      let leave: (() => void) | undefined;
      let late: NodeJS.Timeout | undefined;
      try {
        await new Promise<void>((resolve, reject) => {
          if (share.grow(bytes, resolve)) return resolve();
          late = setTimeout(() => reject(new NoRoom()), LONGEST_WAIT_MS);
          leave = () => reject(disconnected!.reason as Error);
          disconnected?.addEventListener('abort', leave, { once: true });
        });
      } finally {
        clearTimeout(late);
        if (leave) disconnected?.removeEventListener('abort', leave);
      }
    },
    moved: (bytes) => progress(share, bytes),
    whole: () => share.hold(true),
    close: () => share.close(),
  };
}
