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

/** For what outlives its first user: a connection of the database's pool is of no session. */
export function onNobodysBehalf<T>(work: () => T): T {
  return owners.run(undefined, work);
}

/** Whose work this is. In a handler of `unhandledRejection` and `uncaughtException`: whose work failed. */
export function currentOwner(): Owner | undefined {
  return owners.getStore();
}

/** Runs later work on behalf of whoever is the owner now. */
export function sameOwner(): <T>(work: () => T) => T {
  const owner = owners.getStore();
  return (work) => owners.run(owner, work);
}

/** As `sameOwner`, for work that is called in the course of somebody else's. What it throws is a fault of the owner, and not of the caller. */
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
 * Gives the listeners of a socket that a server has accepted to the current owner. Node runs them on behalf of nobody, whoever added them.
 * `emit` is replaced, and not each listener, because streams add listeners of their own. What a listener throws is thrown again in a tick of
 * the owner's: out here, Node would report it as nobody's.
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
