/** Wakes those who wait for something that another part of the service, or another node, has done. */
export interface Hub {
  /** A notification of the database: `queue`, `build`, `begun <id>`, `log <id>`, `state <id>`, `stop <id>`. */
  hear(message: string): void;
  /** Wakes all: notifications may have been missed. */
  wakeAll(): void;
  on(kind: 'queue' | 'build' | 'state' | 'stop', listener: (id: string) => void): void;
  /** Resolves when a message about an id comes, or one whole message, such as `state <id>`; after `ms`; or when the signal aborts. */
  wait(about: string, ms: number, signal?: AbortSignal): Promise<void>;
}

export function runHub(): Hub {
  const waiting = new Map<string, Set<() => void>>();
  const listeners = new Map<string, ((id: string) => void)[]>();

  return {
    hear(message) {
      const [kind = '', id = ''] = message.split(' ');
      for (const listener of listeners.get(kind) ?? []) listener(id);
      for (const about of [id, message]) for (const wake of waiting.get(about) ?? []) wake();
    },
    wakeAll() {
      for (const wake of [...waiting.values()].flatMap((all) => [...all])) wake();
    },
    on(kind, listener) {
      listeners.set(kind, [...(listeners.get(kind) ?? []), listener]);
    },
    wait(about, ms, signal) {
      return new Promise((resolve) => {
        const all = waiting.get(about) ?? new Set();
        waiting.set(about, all);
        const wake = () => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', wake);
          all.delete(wake);
          if (all.size === 0 && waiting.get(about) === all) waiting.delete(about);
          resolve();
        };
        const timer = setTimeout(wake, ms);
        all.add(wake);
        if (signal?.aborted) wake();
        else signal?.addEventListener('abort', wake, { once: true });
      });
    },
  };
}
