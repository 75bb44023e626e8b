import type { Downloads } from './downloads.ts';
import { byteLength, readAnswer, toKeep, type Answer } from './message.ts';
import type { Message, Pipe } from './pipe.ts';
import type { Arguments, Method } from './protocol.ts';
import { ContextLanes, type OpenLane } from './context-lanes.ts';
import { secretTargets } from './secret-targets.ts';
import { newSession, type Connection, type Pending, type Session } from './session.ts';
import { Watching } from './watcher-isolation.ts';

export type MissingFile = (paths: readonly string[]) => Promise<string | undefined>;

/** Ids on the pipe all have ten digits, so any client's id fits into the same place and answers can be rewritten in place. */
const FIRST_ID = 1_000_000_000;
const LAST_ID = 2 ** 31 - 1;

/** Limit per client: many times the number of a page with a thousand frames. Only a compromised browser reports more. */
const MOST_SESSIONS = 20_000;
/** The most unanswered commands of the multiplexer that events of the browser cause. */
const MOST_ASKED = 10_000;

/** State shared by the connections to one Chromium: its pipe, the owners of sessions, and the unanswered commands. */
export class Switchboard {
  readonly pipe: Pipe;
  readonly answerMs: number;
  readonly sessions = new Map<string, Session>();
  readonly pending = new Map<number, Pending>();
  readonly connections = new Set<Connection>();
  readonly paused = new Set<Connection>();
  readonly secrets = secretTargets();
  readonly watching = new Watching((done) => this.ask('Browser.getVersion', undefined, undefined, () => done()));
  readonly lanes: ContextLanes;
  closed = false;
  /** The target that a client last brought to the front; undefined after a client has created another. */
  front: string | undefined;
  readonly onFront = new Set<(targetId: string) => void>();
  /** Where downloads go; undefined leaves that to the browser. */
  downloads: Downloads | undefined;
  /** The first of these paths that does not exist for the browser; undefined leaves that to the browser. */
  missingFile: MissingFile | undefined;
  /** Called when no hidden target is being created any more: held messages can be delivered. */
  onSecretsKnown = () => {};

  /** Messages that wait in all connections: see `Connection.held`. */
  readonly held = { messages: 0, bytes: 0 };

  /** The multiplexer's own commands on the pipe's own session. */
  readonly #asked = new Map<number, { answer: (answer: Answer) => void; late: NodeJS.Timeout }>();
  #turn: Promise<unknown> = Promise.resolve();
  #lastId = FIRST_ID;
  /** Connections with something to flush. */
  #unflushed: Connection[] = [];

  constructor(pipe: Pipe, answerMs: number, openLane: OpenLane | undefined) {
    this.pipe = pipe;
    this.lanes = new ContextLanes(openLane);
    this.answerMs = answerMs;
  }

  nextId(): number {
    let id = this.#lastId;
    do id = id === LAST_ID ? FIRST_ID : id + 1;
    while (this.pending.has(id) || this.#asked.has(id));
    this.#lastId = id;
    return id;
  }

  /** Calls `done` once: with the answer, or with nothing if none came in time. Never after the pipe is closed. */
  ask<M extends Method>(
    method: M,
    ...args: Arguments<M, [sessionId?: string, done?: (answer?: Answer) => void]>
  ): void {
    const [params, sessionId, done = () => {}] = args;
    const id = this.nextId();
    const late = setTimeout(() => this.#asked.delete(id) && done(), this.answerMs);
    this.#asked.set(id, { answer: done, late });
    this.pipe.send(JSON.stringify({ id, method, params, sessionId }));
    this.pipe.flush();
  }

  get mayAskMore(): boolean {
    return this.#asked.size < MOST_ASKED;
  }

  /** An answer that no client waits for: to the multiplexer's own command, or too late. */
  answered(id: number, message: Message): void {
    const question = this.#asked.get(id);
    if (!question) return;
    this.#asked.delete(id);
    clearTimeout(question.late);
    question.answer(readAnswer(message));
  }

  /** A session created under a client's session is of that client. */
  adopt(id: string, parent: Session, { targetId, paused }: { targetId: string | undefined; paused: boolean }): void {
    const { owner } = parent;
    if (this.sessions.get(id)?.owner.root?.id === id || owner.sessions.size >= MOST_SESSIONS) {
      return owner.end(1011, 'The browser attached this connection to more than there can be.');
    }
    const session = newSession(id, owner, parent, targetId);
    this.sessions.set(id, session);
    parent.children.add(session);
    owner.sessions.add(session);
    if (paused) this.watching.paused(session);
  }

  /** Runs lookups of files one after the other: the threads that do them serve all sessions. Undefined if the work fails. */
  inTurn<T>(work: () => Promise<T>): Promise<T | undefined> {
    const done = this.#turn.then(work).catch(() => undefined);
    this.#turn = done;
    return done;
  }

  broughtToFront(targetId: string): void {
    this.front = targetId;
    for (const listener of this.onFront) listener(targetId);
  }

  forget(session: Session): void {
    for (const child of session.children) this.forget(child);
    this.sessions.delete(session.id);
    session.owner.sessions.delete(session);
    session.parent?.children.delete(session);
    session.detachedAt = Date.now();
    this.watching.forget(session);
  }

  /** Keeps a message for a connection until it is released. */
  hold(connection: Connection, message: Message): void {
    const bytes = byteLength(message);
    connection.held ??= { messages: [], bytes: 0 };
    connection.held.messages.push(toKeep(message));
    connection.held.bytes += bytes;
    this.held.messages += 1;
    this.held.bytes += bytes;
  }

  /** The oldest message that was kept for a connection. */
  release(connection: Connection): Message | undefined {
    const { held } = connection;
    const message = held?.messages.shift();
    if (!held || !message) return undefined;
    const bytes = byteLength(message);
    held.bytes -= bytes;
    this.held.messages -= 1;
    this.held.bytes -= bytes;
    if (held.messages.length === 0) connection.held = undefined;
    return message;
  }

  /** Drops the messages that were kept for a connection. */
  drop(connection: Connection): void {
    const { messages, bytes } = connection.held ?? { messages: [], bytes: 0 };
    connection.held = undefined;
    this.held.messages -= messages.length;
    this.held.bytes -= bytes;
  }

  /** Call it after something was sent to a connection: its sink is flushed with the next `flush`. */
  flushLater(connection: Connection): void {
    if (connection.unflushed) return;
    connection.unflushed = true;
    this.#unflushed.push(connection);
  }

  /** Messages that arrive together are sent together, in each direction, within the same turn of the event loop. */
  flush(): void {
    this.pipe.flush();
    if (this.#unflushed.length === 0) return;
    const those = this.#unflushed;
    this.#unflushed = [];
    for (const connection of those) {
      connection.unflushed = false;
      connection.flushSink();
    }
  }

  /** The browser is behind: every client is paused, so that only one large message waits here and not one of each client. */
  pauseAll(): void {
    for (const connection of this.connections) {
      if (this.paused.has(connection)) continue;
      this.paused.add(connection);
      connection.pause();
    }
  }

  resumeAll(): void {
    for (const connection of this.paused) connection.resume();
    this.paused.clear();
  }

  /** Closes every connection with this code and reason, and the pipe. */
  close(code: number, reason: string): void {
    if (this.closed) return;
    this.closed = true;
    for (const connection of this.connections) connection.end(code, reason);
    this.pending.clear();
    for (const { late } of this.#asked.values()) clearTimeout(late);
    this.#asked.clear();
    this.pipe.close();
  }
}
