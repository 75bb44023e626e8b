import { randomBytes } from 'node:crypto';
import type { Message } from './pipe.ts';
import { METHOD_AT, readContext } from './message.ts';
import type { Session } from './session.ts';

export const RESUME = 'Runtime.runIfWaitingForDebugger';
const CONTEXT = '{"method":"Runtime.executionContext';
const DESTROYED = `${CONTEXT}Destroyed"`;
const CLEARED = `${CONTEXT}sCleared"`;
const LETTER_R = 0x52;

/** The sessions of watchers, or those of other clients, that know a target as paused. */
interface Side {
  /** They have not sent their command to resume. */
  readonly expected: Set<Session>;
  /** Their commands to resume, which wait for those of the other side. */
  readonly waiting: Map<Session, () => void>;
}

interface Paused {
  readonly watchers: Side;
  readonly others: Side;
}

const newSide = (): Side => ({ expected: new Set(), waiting: new Map() });
const sideOf = ({ watchers, others }: Paused, { owner }: Session) => (owner.watching ? watchers : others);

function release({ waiting }: Side): void {
  for (const [session, forward] of waiting) {
    waiting.delete(session);
    forward();
  }
}

/**
 * Keeps a watching client (the collector of telemetry) from changing the view of the other clients.
 *
 * Targets that start paused: Chromium starts a popup when the first of its clients resumes it. A client that was promised a paused target
 * would find it running if the watcher resumed it first, and the watcher would miss the first request if the client came first. So the
 * watcher's command to resume waits for the commands of the others, and theirs wait for the watcher's. Chromium reports the
 * target to one client after the other, so the watcher's command also waits for the answer to a probe: by then all clients have the event.
 *
 * Isolated worlds: clients with Runtime enabled get events of every world. The watcher's has a random name, and events about it are dropped.
 */
export class Watching {
  /** The name of the world in which watchers run their scripts. */
  readonly world = `w${randomBytes(12).toString('hex')}`;
  /** Whether such a world was ever made: worlds stay in documents after their maker has left. */
  any = false;
  /** By target: the sessions that know it as paused. */
  readonly #paused = new Map<string, Paused>();
  /** Calls back when the browser has answered, or does not. */
  readonly #ask: (done: () => void) => void;

  constructor(ask: (done: () => void) => void) {
    this.#ask = ask;
  }

  paused(session: Session): void {
    const { targetId } = session;
    if (targetId === undefined) return;
    const paused = this.#paused.get(targetId) ?? { watchers: newSide(), others: newSide() };
    this.#paused.set(targetId, paused);
    sideOf(paused, session).expected.add(session);
  }

  /** Takes a command to resume: `forward` is called now or later, once. */
  resume(session: Session, forward: () => void): void {
    const paused = this.#paused.get(session.targetId ?? '');
    const side = paused && sideOf(paused, session);
    if (!side?.expected.has(session)) return forward();
    const asked = () => {
      if (!side.expected.delete(session)) return; // already detached
      side.waiting.set(session, forward);
      this.#settle(session.targetId!, paused!);
    };
    if (session.owner.watching) this.#ask(asked);
    else asked();
  }

  /** The session is detached, or its client has left. */
  forget(session: Session): void {
    const paused = this.#paused.get(session.targetId ?? '');
    if (!paused) return;
    const { expected, waiting } = sideOf(paused, session);
    if (expected.delete(session) || waiting.delete(session)) this.#settle(session.targetId!, paused);
  }

  /** Each command is forwarded once, so the work for a target grows with its sessions, of which a client may make thousands. */
  #settle(targetId: string, { watchers, others }: Paused): void {
    if (watchers.expected.size === 0) release(others);
    if (others.expected.size === 0) release(watchers);
    if (watchers.expected.size + watchers.waiting.size + others.expected.size + others.waiting.size === 0)
      this.#paused.delete(targetId);
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
