import { wakeUps } from '../lib/wake-ups.ts';

/** A message between nodes about a login. */
interface Notice {
  connectionId: string;
  runId: string;
  what: 'state' | 'input' | 'cancel';
}

/** Undefined instead of a notice: any of them may have been missed. */
type Listener = (notice: Notice | undefined) => void;

export type Notices = ReturnType<typeof loginNotices>;

/** Passes the notices of all nodes to the listeners of this process. */
export function loginNotices() {
  const listeners = new Set<Listener>();
  const ups = wakeUps();

  return {
    /** Resolves with the next notice about a connection, after `ms`, when the signal fires, or when it is stopped. */
    next(connectionId: string, signal: AbortSignal, ms: number): { promise: Promise<void>; stop: () => void } {
      const stopped = new AbortController();
      const promise = ups.wait(connectionId, { ms, signal: AbortSignal.any([signal, stopped.signal]) });
      return { promise, stop: () => stopped.abort() };
    },

    /** The payload of a notification of the database. */
    hear(payload: string) {
      const notice = JSON.parse(payload) as Notice;
      ups.wake(notice.connectionId);
      for (const listener of listeners) listener(notice);
    },

    /** Notifications may have been missed: everything that waits looks again. */
    gap() {
      ups.wakeAll();
      for (const listener of listeners) listener(undefined);
    },

    onAny: (listener: Listener) => void listeners.add(listener),
  };
}
