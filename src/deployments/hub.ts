import { wakeUps } from '../lib/wake-ups.ts';

/** Wakes waiters when another part of the service, or another node, has reported an event. */
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
  const ups = wakeUps();
  const listeners = new Map<string, ((id: string) => void)[]>();

  return {
    hear(message) {
      const [kind = '', id = ''] = message.split(' ');
      for (const listener of listeners.get(kind) ?? []) listener(id);
      ups.wake(id);
      ups.wake(message);
    },
    wakeAll: ups.wakeAll,
    on(kind, listener) {
      listeners.set(kind, [...(listeners.get(kind) ?? []), listener]);
    },
    wait: (about, ms, signal) => ups.wait(about, { ms, signal }),
  };
}
