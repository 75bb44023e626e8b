import { EventEmitter } from 'node:events';

/** What rooms tell each other upwards. A room publishes what happened to its own things and knows no listener. */
export interface Events {
  /** The project was archived or deleted; nothing of it may go on running. */
  'project.closed': { projectId: string };
  /** It can be used from now on. */
  'session.started': { sessionId: string; replayBufferSeconds: number | undefined };
  /** Whoever had it from a pool has it no more. */
  'session.returned': { sessionId: string };
  /** Its browser is gone and nothing of it is left. */
  'session.ended': { sessionId: string; projectId: string; poolId: string | null; reason: string };
  /** Sessions that start with it start with something else from now on. */
  'profile.saved': { profileId: string };
  /** It is not among the nodes any more, whether it was stopped or given up. What it had is settled. Every other node tells. */
  'node.left': { nodeId: string };
}

export interface EventBus {
  publish<E extends keyof Events>(event: E, facts: Events[E]): void;
  on<E extends keyof Events>(event: E, listener: (facts: Events[E]) => void): () => void;
}

export function eventBus(): EventBus {
  const emitter = new EventEmitter();
  return {
    publish: (event, facts) => void emitter.emit(event, facts),
    on(event, listener) {
      emitter.on(event, listener);
      return () => void emitter.off(event, listener);
    },
  };
}
