import { errors } from '../errors.ts';
import type { Hold } from './holds.ts';
import type { LiveSession } from './live-session.ts';
import { SessionEnded } from './state.ts';

export type Roster = ReturnType<typeof sessionRoster>;

/** The sessions of this process, from before their launch until nothing is left of them. */
export function sessionRoster() {
  const live = new Map<string, LiveSession>();
  const launching = new Map<string, { callOff: AbortController; over: Promise<unknown> }>();

  /** A session that clients may use. */
  function running(id: string): LiveSession | undefined {
    const session = live.get(id);
    return session?.shelved ? undefined : session;
  }

  return {
    /** Sessions that have a browser. */
    live,
    /** Sessions with starting browsers: how to abort the launch, and when it is over either way. */
    launching,
    /** Ends in progress: `killed` when no client can use the session any more, `over` when nothing is left of it. */
    ends: new Map<string, { killed: Promise<unknown>; over: Promise<void> }>(),
    /** The profile that a session saves when it ends. */
    saving: new Map<string, string>(),
    /** The service is being stopped: no more sessions are created. */
    closed: false,

    ids: (): string[] => [...new Set([...launching.keys(), ...live.keys()])],

    /** A session that has a browser, whether clients may use it or it is idle in a pool. */
    get(id: string): LiveSession {
      const session = live.get(id);
      if (!session) throw errors.session_not_found({ session: id });
      return session;
    },

    running,

    /** Wakes a session that clients may use, and keeps it awake until the hold is released. */
    async hold(id: string): Promise<Hold> {
      const session = running(id);
      if (!session) throw errors.session_not_found({ session: id });
      return awake(session);
    },
  };
}

/** Wakes a session, and keeps it awake until the hold is released. */
export function awake(session: LiveSession): Promise<Hold> {
  return session.hold().catch((error: Error) => notFoundIfEnded(session.id, error));
}

/** A session that ends while it is used is reported as not found. */
export function notFoundIfEnded(id: string, error: Error): never {
  throw error instanceof SessionEnded ? errors.session_not_found({ session: id }) : error;
}
