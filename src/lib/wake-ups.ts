/** Work that waits for news of a name, such as an id. A wake-up only says that there may be news: the work looks again. */
export function wakeUps() {
  const waiting = new Map<string, Set<() => void>>();

  function wake(name: string): void {
    for (const resume of waiting.get(name) ?? []) resume();
  }

  return {
    /** Resolves at the next wake-up, after `ms`, or when the signal aborts. */
    wait(name: string, { ms, signal }: { ms?: number; signal?: AbortSignal | undefined }): Promise<void> {
      return new Promise((resolve) => {
        const all = waiting.get(name) ?? new Set();
        waiting.set(name, all);
        const resume = () => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', resume);
          all.delete(resume);
          if (all.size === 0 && waiting.get(name) === all) waiting.delete(name);
          resolve();
        };
        const timer = ms === undefined ? undefined : setTimeout(resume, ms);
        all.add(resume);
        if (signal?.aborted) resume();
        else signal?.addEventListener('abort', resume, { once: true });
      });
    },

    wake,

    /** Notifications may have been missed. */
    wakeAll(): void {
      for (const name of waiting.keys()) wake(name);
    },

    /** How many names are waited for. */
    size: () => waiting.size,
  };
}
