import { randomBytes } from 'node:crypto';
import type { Message } from './pipe.ts';
import { METHOD_AT, readContext } from './message.ts';
import type { Session } from './session.ts';

export const RESUME = 'Runtime.runIfWaitingForDebugger';
const CONTEXT = '{"method":"Runtime.executionContext';
const DESTROYED = `${CONTEXT}Destroyed"`;
const CLEARED = `${CONTEXT}sCleared"`;
const LETTER_R = 0x52;

/**
 * Keeps a watching client (the collector of telemetry) from changing what the other clients see.
 *
 * Targets that start paused: Chromium starts a popup when the first of its clients resumes it. A client that was promised a paused target
 * would find it running if the watcher resumed it first, and the watcher would miss the first request if the client came first. So the
 * watcher's command to resume waits for the commands of the others, and theirs wait for the watcher's. Chromium tells each client of the
 * target in turn, so the watcher's command also waits until the browser has answered a question: by then the others have been told.
 *
 * Isolated worlds: clients with Runtime enabled are told of every world. The watcher's has a random name, and events about it are dropped.
 */
export class Watching {
  /** The name of the world in which watchers run their scripts. */
  readonly world = `w${randomBytes(12).toString('hex')}`;
  /** Whether such a world was ever made: worlds stay in documents after their maker has left. */
  any = false;
  /** By target: the sessions that were told that it is paused, each with its command to resume, once that was sent. */
  readonly #paused = new Map<string, Map<Session, (() => void) | undefined>>();
  /** Calls back when the browser has answered, or does not. */
  readonly #ask: (done: () => void) => void;

  constructor(ask: (done: () => void) => void) {
    this.#ask = ask;
  }

  paused(session: Session): void {
    const { targetId } = session;
    if (targetId === undefined) return;
    const sessions = this.#paused.get(targetId) ?? new Map<Session, undefined>();
    this.#paused.set(targetId, sessions.set(session, undefined));
  }

  /** Takes a command to resume: `forward` is called now or later, once. */
  resume(session: Session, forward: () => void): void {
    const sessions = this.#paused.get(session.targetId ?? '');
    if (!sessions?.has(session) || sessions.get(session)) return forward();
    const asked = () => {
      if (!sessions.has(session)) return; // detached meanwhile
      sessions.set(session, forward);
      this.#settle(session.targetId!, sessions);
    };
    if (session.owner.watching) this.#ask(asked);
    else asked();
  }

  /** The session is detached, or its client has left. */
  forget(session: Session): void {
    const sessions = this.#paused.get(session.targetId ?? '');
    if (sessions?.delete(session)) this.#settle(session.targetId!, sessions);
  }

  #settle(targetId: string, sessions: Map<Session, (() => void) | undefined>): void {
    const unasked = (watching: boolean) =>
      [...sessions].some(([{ owner }, forward]) => !forward && owner.watching === watching);
    const [watchersAwaited, othersAwaited] = [unasked(true), unasked(false)];
    for (const [session, forward] of sessions) {
      if (!forward || (session.owner.watching ? othersAwaited : watchersAwaited)) continue;
      sessions.delete(session);
      forward();
    }
    if (sessions.size === 0) this.#paused.delete(targetId);
  }

  /** Whether an event for a client is about a watcher's world. */
  hides(message: Message, session: Session): boolean {
    const head = message[0];
    if (head[METHOD_AT] !== LETTER_R || head.toString('latin1', 0, CONTEXT.length) !== CONTEXT) return false;
    if (head.toString('latin1', 0, CLEARED.length) === CLEARED) session.hiddenContexts = undefined;
    else if (head.toString('latin1', 0, DESTROYED.length) === DESTROYED) {
      if (!session.hiddenContexts) return false;
      return session.hiddenContexts.delete(readContext(message)?.id ?? -1);
    } else {
      const { id, name } = readContext(message) ?? {};
      if (name !== this.world || id === undefined) return false;
      (session.hiddenContexts ??= new Set()).add(id);
      return true;
    }
    return false;
  }
}
