import { memory, type ByteBudget } from './byte-budget.ts';

/** Bytes that are gathered from a peer to be kept whole. They draw from the memory budget as they come, until it is closed. */
export interface Gathering {
  /** Counts bytes that came. Resolves when there is room for more; meanwhile nothing is to be read. Rejects when `gone` aborts. */
  add(bytes: number): Promise<void>;
  /** Everything has come: what follows is up to this process. */
  whole(): void;
  close(): void;
}

/** There was no room for too long. */
export class NoRoom extends Error {
  override readonly name = 'NoRoom';

  constructor() {
    super('There was no room for the answer for too long.');
  }
}

/** Those that wait for room may be what keeps it from others: then the wait has an end. */
const LONGEST_WAIT_MS = 30_000;

/** `end` is called when nothing came for too long while others wait for room: it ends the source. */
export function gathering(end: () => void, gone?: AbortSignal, budget: ByteBudget = memory): Gathering {
  const share = budget.share(budget.group(), 'sender', end);
  return {
    async add(bytes) {
      gone?.throwIfAborted();
      let leave: (() => void) | undefined;
      let late: NodeJS.Timeout | undefined;
      try {
        await new Promise<void>((resolve, reject) => {
          if (share.grow(bytes, resolve)) return resolve();
          late = setTimeout(() => reject(new NoRoom()), LONGEST_WAIT_MS);
          leave = () => reject(gone!.reason as Error);
          gone?.addEventListener('abort', leave, { once: true });
        });
      } finally {
        clearTimeout(late);
        if (leave) gone?.removeEventListener('abort', leave);
      }
    },
    whole: () => void (share.held = true),
    close: () => share.close(),
  };
}
