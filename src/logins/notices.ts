import { EventEmitter, setMaxListeners } from 'node:events';
import { wakeUps } from '../lib/wake-ups.ts';

/** What nodes tell each other about a login. */
interface Notice {
  connectionId: string;
  runId: string;
  what: 'state' | 'input' | 'cancel';
}

export type Notices = ReturnType<typeof loginNotices>;

/** Passes the notices of all nodes to those of this process that wait for something. */
export function loginNotices() {
  const emitter = new EventEmitter();
  setMaxListeners(0, emitter);
  const ups = wakeUps();

  function onConnection(connectionId: string, listener: (notice: Notice | undefined) => void): () => void {
    const name = `connection ${connectionId}`;
    emitter.on(name, listener);
    return () => void emitter.off(name, listener);
  }

  return {
    onConnection,

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
      emitter.emit(`connection ${notice.connectionId}`, notice);
      emitter.emit('any', notice);
    },

    /** Notifications may have been missed: everything that waits looks again. */
    gap() {
      ups.wakeAll();
      for (const name of emitter.eventNames()) emitter.emit(name, undefined);
    },

    /** Undefined instead of a notice: any of them may have been missed. */
    onAny(listener: (notice: Notice | undefined) => void): () => void {
      emitter.on('any', listener);
      return () => void emitter.off('any', listener);
    },
  };
}
