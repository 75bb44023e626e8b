import { mergedRuns } from '../../lib/merged-runs.ts';
import { turns } from '../../lib/turns.ts';
import { downloadEvents } from './download-events.ts';
import {
  ANSWER,
  answerId,
  ATTACHED,
  byteLength,
  DETACHED,
  isTargetEvent,
  LETTER_B,
  LETTER_I,
  LETTER_P,
  LETTER_T,
  METHOD_AT,
  readCreated,
  readNewContext,
  readTargetEvent,
  sessionOf,
  stripSession,
  withoutTargets,
} from './message.ts';
import type { NetworkFacts } from './network-facts.ts';
import type { Message } from './pipe.ts';
import type { Pending, Session } from './session.ts';
import type { Switchboard } from './switchboard.ts';

/** The most messages that wait for the clients of a browser until the id of a hidden page is known. */
const MOST_HELD = 20_000;
/** No more messages wait once those that wait have this many bytes. */
const MOST_HELD_BYTES = 16 * 1024 * 1024;

/** Delivers each message of Chromium to its client. Answers begin with their id, events with their method, and both end with their session's id. */
export function router(board: Switchboard, facts: NetworkFacts | undefined): (message: Message) => void {
  const { sessions, pending, secrets } = board;
  const isDownloadHeld = downloadEvents(board);
  /**
   * Delivers the held messages, in pieces: a browser that was taken over may send many events before it says which page it made. A call
   * during a pass leads to another pass, since messages may be held for a connection that the pass has left behind.
   */
  const letGo = mergedRuns(async () => {
    const turn = turns();
    for (const connection of board.connections) {
      while (secrets.making === 0) {
        const message = board.release(connection);
        if (!message) break;
        try {
          route(message);
        } catch {
          // As in mux.ts: a compromised browser may send anything.
        }
        const next = turn();
        if (!next) continue;
        board.flush();
        await next;
      }
    }
    board.flush();
  });
  board.onSecretsKnown = () => void letGo();
  return (message) => {
    if ((secrets.making > 0 || board.held.messages > 0) && isHeld(message)) return;
    route(message);
  };

  function route(message: Message): void {
    const head = message[0];
    if (head[2] === LETTER_I && head.toString('latin1', 0, ANSWER.length) === ANSWER) routeAnswer(message);
    else routeEvent(message);
  }

  function routeAnswer(message: Message): void {
    const head = message[0];
    const { id, end } = answerId(head);
    const entry = pending.get(id);
    if (!entry) return board.answered(id, message);
    pending.delete(id);
    const { owner, session } = entry;
    owner.unanswered.delete(id);
    const original = `${ANSWER}${entry.id}`;
    if (original.length <= end) {
      head.write(original, end - original.length, 'latin1');
      message[0] = head.subarray(end - original.length);
    } else {
      message.splice(0, 1, Buffer.from(original), head.subarray(end)); // only a negative id is longer than the multiplexer's
    }
    if (session === owner.root) stripSession(message, session.id);
    if (entry.method !== undefined && !mayPass(entry, message)) return;
    owner.deliver(message, byteLength(message));
  }

  function routeEvent(message: Message): void {
    const head = message[0];
    const sessionId = sessionOf(message);
    const session = sessionId === undefined ? undefined : sessions.get(sessionId);
    if (head[METHOD_AT] === LETTER_T) {
      if (session && secrets.any && isTargetEvent(head) && isSecret(message, session)) return;
      if (head.toString('latin1', 0, ATTACHED.length) === ATTACHED) {
        const event = session && readTargetEvent(message);
        if (event?.sessionId !== undefined) board.adopt(event.sessionId, session!, event);
      } else if (head.toString('latin1', 0, DETACHED.length) === DETACHED) {
        const detached = sessions.get(readTargetEvent(message)?.sessionId ?? '');
        if (detached?.owner.root === detached && detached) endConnection(detached);
        else if (detached && detached.owner === session?.owner) board.forget(detached);
      }
    }
    const letter = head[METHOD_AT];
    if (board.downloads && (letter === LETTER_B || letter === LETTER_P) && isDownloadHeld(message, session)) return;
    if (!session) return; // the pipe's own session, or a client that has disconnected
    // A watcher does not use half of the network events, and a loading page sends thousands of them.
    if (
      session.owner.watching ? !session.owner.wants(head) : board.watching.any && board.watching.hides(message, session)
    )
      return;
    facts?.correct(message);
    if (session === session.owner.root) stripSession(message, session.id);
    session.owner.deliver(message, byteLength(message));
  }

  function endConnection({ owner, targetId }: Session): void {
    if (targetId === undefined) owner.end(1011, 'The browser ended this connection.');
    else owner.end(1000, 'The page was closed.');
  }

  // ---- hidden targets

  /**
   * Inspects answers about navigations, new contexts and targets: those of a secretive client have the ids of hidden targets, and from those
   * of others hidden targets are removed.
   */
  function mayPass({ owner, method, url, taken }: Pending, message: Message): boolean {
    if (method === 'Page.navigate') {
      facts?.correctNavigation(message, url);
      return true;
    }
    if (method === 'Target.createBrowserContext') {
      const context = readNewContext(message);
      if (taken) board.lanes.created(taken, context);
      if (context !== undefined) board.downloads?.take(context);
      return true;
    }
    if (method !== 'Target.createTarget') return owner.secretive || withoutTargets(message, (id) => secrets.has(id));
    secrets.made(readCreated(message));
    if (secrets.making === 0) void letGo();
    return true;
  }

  /**
   * While a hidden target is created, a message about a target waits. So do all later messages to the same client until those before them are
   * delivered.
   */
  function isHeld(message: Message): boolean {
    const head = message[0];
    const isAnswer = head[2] === LETTER_I;
    const owner = isAnswer ? pending.get(answerId(head).id)?.owner : sessions.get(sessionOf(message) ?? '')?.owner;
    if (!owner || owner.secretive) return false;
    if (!owner.held && (secrets.making === 0 || isAnswer || !isTargetEvent(head))) return false;
    if (board.held.bytes > MOST_HELD_BYTES || board.held.messages >= MOST_HELD)
      owner.end(1011, 'The browser does not say which page it made.');
    else board.hold(owner, message);
    return true;
  }

  /** Whether an event is about a target that is hidden from its client. A session attached to such a target is detached. */
  function isSecret(message: Message, session: Session): boolean {
    const event = readTargetEvent(message);
    if (!event) return true; // it may be about a hidden target
    const { method, targetId, sessionId, type } = event;
    if (session.owner.secretive) {
      if (method === 'Target.targetCreated' && targetId !== undefined) secrets.created({ targetId, type });
      return false;
    }
    if (targetId === undefined || !secrets.has(targetId)) return false;
    if (method === 'Target.attachedToTarget' && sessionId !== undefined && board.mayAskMore) {
      board.ask('Runtime.runIfWaitingForDebugger', {}, sessionId); // it was paused for a client that must not see it
      board.ask('Target.detachFromTarget', { sessionId }, session.id);
    }
    return true;
  }
}
