/**
 * Runs one piece of work after the other. Work that fails does not keep the next from running. If its signal aborts, waiting work is
 * forgotten at once, with what it refers to.
 */
export function oneByOne(): <T>(work: () => Promise<T>, signal?: AbortSignal) => Promise<T> {
  const waiting = new Set<() => void>();
  let busy = false;

  const turn = (signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const leave = () => {
        waiting.delete(start);
        reject(signal!.reason as Error);
      };
      const start = () => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      waiting.add(start);
      signal?.addEventListener('abort', leave, { once: true });
    });

  return async (work, signal) => {
    signal?.throwIfAborted();
    if (busy) await turn(signal);
    busy = true;
    try {
      return await work();
    } finally {
      const [next] = waiting;
      if (next) waiting.delete(next);
      else busy = false;
      next?.();
    }
  };
}

/** Runs work of the same key one after the other. Work that fails does not keep the next from running. */
export function oneAtATime(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return (key, work) => {
    const done = (last.get(key) ?? Promise.resolve()).then(work);
    const over = done
      .catch(() => {})
      .then(() => {
        if (last.get(key) === over) last.delete(key);
      });
    last.set(key, over);
    return done;
  };
}
