/** The queue of one owner is bounded, because work stays in it when its client disconnects. */
const MOST_WAITING = 50;

/** Runs work of many owners: `most` pieces at once, and one of each owner. Owners that wait take turns. `full`: too much of it waits. */
export function fairPlaces(
  most: number,
  full: (waiting: number) => Error,
): <T>(owner: unknown, work: () => Promise<T>) => Promise<T> {
  const running = new Set<unknown>();
  /** The owner that comes next is first. */
  const waiting = new Map<unknown, (() => void)[]>();

  function startNext(): void {
    for (const [owner, queue] of waiting) {
      if (running.size >= most) return;
      if (running.has(owner)) continue;
      running.add(owner);
      queue.shift()!();
      if (queue.length === 0) waiting.delete(owner);
    }
  }

  return async (owner, work) => {
    const queue = waiting.get(owner) ?? [];
    if (queue.length >= MOST_WAITING) throw full(queue.length);
    await new Promise<void>((resolve) => {
      queue.push(resolve);
      waiting.set(owner, queue);
      startNext();
    });
    try {
      return await work();
    } finally {
      running.delete(owner);
      const queue = waiting.get(owner);
      if (queue && waiting.delete(owner)) waiting.set(owner, queue); // behind owners that began to wait since
      startNext();
    }
  };
}
