import { AsyncLocalStorage } from 'node:async_hooks';
import type { EventEmitter } from 'node:events';

/** What work is done for. A fault in the work ends its owner, and not the service. */
export interface Owner {
  kind: 'session' | 'login' | 'check' | 'build' | 'worker' | 'invocation' | 'request';
  id: string;
  /** Ends it because of a fault of the service. Does nothing if it is over. */
  end(error: Error): void;
}

const owners = new AsyncLocalStorage<Owner | undefined>();

/** Runs work for an owner. All that the work starts belongs to that owner: promises, timers, child processes, connections that it opens. */
export function onBehalfOf<T>(owner: Owner, work: () => T): T {
  return owners.run(owner, work);
}

/** For shared objects that outlive their first user, such as a connection of the database pool. */
export function withoutOwner<T>(work: () => T): T {
  return owners.run(undefined, work);
}

/**
 * The owner of the current work. In a handler of `unhandledRejection` and `uncaughtException`: the owner of the failed work. Tried on Node
 * 20, 22, 24 and 26: for a rejection, the owner of the async function; for a bare `new Promise`, its maker up to Node 22, and from 24 on
 * the code that rejects it. For an exception, the owner of the timer, child process or connection.
 */
export function currentOwner(): Owner | undefined {
  return owners.getStore();
}

/** Returns a function that runs work for the current owner later. */
export function sameOwner(): <T>(work: () => T) => T {
  const owner = owners.getStore();
  return (work) => owners.run(owner, work);
}

/** As `sameOwner`, for callbacks that another owner's work calls. An exception in the callback is a fault of its own owner, not of the caller. */
export function ownWork(): (work: () => void) => void {
  const owner = owners.getStore();
  return (work) =>
    owners.run(owner, () => {
      try {
        work();
      } catch (error) {
        throwInATick(error);
      }
    });
}

/**
 * Runs the listeners of an accepted socket for the current owner. Node runs them without an owner, also those that an owner added. `emit` is
 * replaced instead of each listener, because streams add their own listeners. An exception of a listener is thrown again in a tick of the
 * owner: thrown here, Node would report it without an owner.
 */
export function ownEvents<E extends EventEmitter>(emitter: E): E {
  const owner = owners.getStore();
  const { emit } = emitter;
  const emitOwned = (args: Parameters<EventEmitter['emit']>) => {
    try {
      return emit.apply(emitter, args);
    } catch (error) {
      throwInATick(error);
      return true;
    }
  };
  emitter.emit = (...args) => owners.run(owner, emitOwned, args);
  return emitter;
}

function throwInATick(error: unknown): void {
  process.nextTick(() => {
    throw error;
  });
}
