import { EventEmitter } from 'node:events';

/** Events from lower rooms to higher ones. A room publishes what happened to its own things and knows no listener. */
export interface Events {
  /** The project was archived or deleted; none of its sessions may continue. */
  'project.closed': { projectId: string };
  /** The session can be used from now on. */
  'session.started': { sessionId: string; replayBufferSeconds: number | undefined };
  /** A pool's session was taken back from its holder. */
  'session.returned': { sessionId: string };
  /** The session's browser has exited and all its resources are released. */
  'session.ended': { sessionId: string; projectId: string; poolId: string | null; reason: string };
  /** Sessions that start with the profile get another version from now on. */
  'profile.saved': { profileId: string };
  /** The profile is deleted, and its dependent data with it. */
  'profile.removed': { profileId: string; projectId: string };
  /** The credential is deleted. What named it has none from now on. */
  'credential.removed': { credentialId: string; projectId: string };
  /** The credential provider is deleted; it was for all projects. */
  'credential_provider.removed': { providerId: string };
  /** The node is no longer a member, because it was stopped or declared dead. Its sessions are settled. Every other node publishes this. */
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
