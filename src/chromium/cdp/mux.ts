import { Backlog, type BacklogBounds } from './backlog.ts';
import {
  ANSWER,
  answerId,
  ATTACHED,
  byteLength,
  DETACHED,
  isTargetEvent,
  LETTER_I,
  LETTER_T,
  METHOD_AT,
  readAnswer,
  readCreated,
  readTargetEvent,
  SESSION,
  sessionOf,
  stripSession,
  withoutTargets,
  type Answer,
} from './message.ts';
import { readCommand, type Command, type Fault } from './command.ts';
import { meantDownloads } from './downloads.ts';
import { Overdue } from '../../lib/deadline.ts';
import { ANSWER_MS, localClient, type LocalClient } from './local-client.ts';
import type { Message, Pipe } from './pipe.ts';
import { secretTargets } from './secret-targets.ts';

/** Where a client's messages go: the far end of its websocket, or a part of this service. */
export interface Sink {
  /** Takes one message, given in pieces, to send with the next `flush`. The pieces are the sink's from then on. */
  send(pieces: readonly Buffer[]): void;
  flush(): void;
  /** Bytes taken by `send` that have not left this process. */
  readonly bufferedAmount: number;
  /** Ends the connection after what was sent; a websocket's close code and reason. The sink answers with `closed`. */
  close(code: number, reason: string): void;
  /** Stop and start calling `receive`: Chromium is behind. */
  pause(): void;
  resume(): void;
}

export interface Client {
  /** One message from the client, as it came. It goes on with the next `flush`. */
  receive(data: Buffer): void;
  /** What came together has been received. */
  flush(): void;
  /** The connection is over, whoever ended it. What the client had attached to is let go. */
  closed(): void;
}

export interface Mux {
  /** One more client, which finds the browser as if it were alone with it. */
  attach(sink: Sink): Client;
  /** A client inside this process. With `secretive`, the targets it creates are not shown to the other clients. */
  attachLocal(options?: { secretive?: boolean }): LocalClient;
  /** Closes every connection with this code and reason, and the pipe. */
  close(code: number, reason: string): void;
  readonly clientCount: number;
  /** The browser is gone, or was let go: whoever attaches is told so and closed. */
  readonly isClosed: boolean;
}

/** A client that is further behind than the bounds is dropped. */
export interface MuxOptions extends BacklogBounds {
  /** What clients are told when the pipe closes by itself, because the browser went away. */
  whenGone?: () => { code: number; reason: string };
  /** How many commands of one client may be without an answer. */
  maxInFlight?: number;
  /** How long Chromium has for an answer to us. Clients wait as long as they like. */
  answerMs?: number;
  /** A client who said where downloads go has left; Chromium has forgotten whatever was said before. */
  onDownloadsLeft?: () => void;
}

/**
 * Chromium closes its pipe, and with it every client's connection, when a message exceeds 100 MiB in its read buffer
 * (kReceiveBufferSizeForDevtools). So larger ones are answered here. The same message on a raw websocket ends that one.
 */
export const MAX_TO_CHROMIUM = 100 * 1024 * 1024 - 1024;

/**
 * Ids on the pipe all have ten digits, so the id of any client fits into the place of ours and answers can be
 * rewritten where they lie.
 */
const FIRST_ID = 1_000_000_000;
const LAST_ID = 2 ** 31 - 1;

/** Commands that would reach beyond the client that sends them, and what it is told instead. */
const REFUSED = new Map([
  ['Browser.crash', 'Browser.crash is not available: the browser is shared with other clients.'],
  ['Browser.crashGpuProcess', 'Browser.crashGpuProcess is not available: the browser is shared with other clients.'],
  [
    'Target.exposeDevToolsProtocol',
    'Target.exposeDevToolsProtocol is not available: the page would drive the browser past this connection.',
  ],
  [
    'Target.sendMessageToTarget',
    'Target.sendMessageToTarget is not available: attach with flatten: true and put the sessionId on each message.',
  ],
]);

/** Of one client: many times what a page of a thousand frames has. A browser that tells of more is a browser no longer. */
const MOST_SESSIONS = 20_000;
/** Questions of our own that wait for an answer. */
const MOST_ASKED = 10_000;
/** Messages that wait for a client until it is known which page is not its business. */
const MOST_HELD = 10_000;

/** A CDP session, from the moment Chromium announced it until it is detached. */
interface Session {
  id: string;
  owner: Connection;
  children: Set<Session>;
  parent: Session | undefined;
  /** When it was detached; commands that were under way to it may never be answered. */
  detachedAt: number;
}

interface Pending {
  owner: Connection;
  session: Session;
  id: number;
  /** Set where the answer has to be looked at on its way. */
  method?: 'Target.getTargets' | 'Target.createTarget';
}

interface Connection extends Client {
  deliver(pieces: readonly Buffer[], bytes: number): void;
  sessions: Set<Session>;
  /** How many of its commands wait for an answer. */
  inFlight: number;
  root: Session | undefined;
  end(code: number, reason: string): void;
  pause(): void;
  resume(): void;
  /** Something was sent to it since its sink was last flushed. */
  unflushed: boolean;
  flushSink(): void;
  readonly secretive: boolean;
  /** What came for it while a target was made that it may not see: kept until it is known which one that is. */
  held: Message[] | undefined;
}

/**
 * Gives each client a browser-level CDP session of its own on one Chromium. That session's id is never shown: to the
 * client it is the connection itself. Sessions that come to be under a client's sessions are that client's, and only
 * it can use them. Ids are mapped, so clients may count as they like.
 */
export function multiplex(pipe: Pipe, options: MuxOptions = {}): Mux {
  const { maxInFlight = 100_000, answerMs = ANSWER_MS } = options;
  const whenGone = options.whenGone ?? (() => ({ code: 1011, reason: 'The browser went away.' }));
  const sessions = new Map<string, Session>();
  const pending = new Map<number, Pending>();
  /** Our own commands on the pipe's own session. */
  const asked = new Map<number, { answer: (answer: Answer) => void; late: NodeJS.Timeout }>();
  const connections = new Set<Connection>();
  const paused = new Set<Connection>();
  const secrets = secretTargets();
  let lastId = FIRST_ID;
  let closed = false;

  /** Who has something to flush. */
  let unflushed: Connection[] = [];

  pipe.onMessage = (message) => {
    try {
      route(message);
    } catch {
      // Not what Chromium sends. A page that has taken over its browser may say anything; it must not end the service.
    }
  };
  pipe.onPause = flush;
  pipe.onDrain = () => {
    for (const connection of paused) connection.resume();
    paused.clear();
  };
  pipe.onClose = () => {
    const { code, reason } = whenGone();
    close(code, reason);
  };

  /** Messages that arrive together leave together, each way, and with no turn of the event loop in between. */
  function flush(): void {
    pipe.flush();
    if (unflushed.length === 0) return;
    const those = unflushed;
    unflushed = [];
    for (const connection of those) {
      connection.unflushed = false;
      connection.flushSink();
    }
  }

  /** The browser is behind: whoever has more for it waits, so that it is one large message that waits here and not one of each. */
  function pauseAll(): void {
    for (const connection of connections) {
      if (paused.has(connection)) continue;
      paused.add(connection);
      connection.pause();
    }
  }

  function nextId(): number {
    do lastId = lastId === LAST_ID ? FIRST_ID : lastId + 1;
    while (pending.has(lastId) || asked.has(lastId));
    return lastId;
  }

  /** `done` is called once: with the answer, or with nothing when none came in time. Never, once the pipe is closed. */
  function ask(method: string, params?: object, sessionId?: string, done: (answer?: Answer) => void = () => {}): void {
    const id = nextId();
    const late = setTimeout(() => asked.delete(id) && done(), answerMs);
    asked.set(id, { answer: done, late });
    pipe.send(JSON.stringify({ id, method, params, sessionId }));
    pipe.flush();
  }

  /** From Chromium. Answers begin with their id, events with their method, and both end with their session's id. */
  function route(message: Message): void {
    const head = message[0];
    if (secrets.making > 0 && isHeld(message)) return;
    if (head[2] === LETTER_I && head.toString('latin1', 0, ANSWER.length) === ANSWER) routeAnswer(message);
    else routeEvent(message);
  }

  function routeAnswer(message: Message): void {
    const head = message[0];
    const { id, end } = answerId(head);
    const entry = pending.get(id);
    if (!entry) {
      const question = asked.get(id);
      if (!question) return;
      asked.delete(id);
      clearTimeout(question.late);
      question.answer(readAnswer(message));
      return; // or the answer comes too late: whoever asked is gone
    }
    pending.delete(id);
    const { owner, session } = entry;
    owner.inFlight -= 1;
    const original = `${ANSWER}${entry.id}`;
    if (original.length <= end) {
      head.write(original, end - original.length, 'latin1');
      message[0] = head.subarray(end - original.length);
    } else {
      message.splice(0, 1, Buffer.from(original), head.subarray(end)); // only a negative id is longer than ours
    }
    if (session === owner.root) stripSession(message, session.id);
    if (entry.method !== undefined && !mayPass(entry, message)) return;
    owner.deliver(message, byteLength(message));
  }

  /** The answers that tell of targets: who makes secret ones learns their ids by this, and others do not. */
  function mayPass({ owner, method }: Pending, message: Message): boolean {
    if (method !== 'Target.createTarget') return owner.secretive || withoutTargets(message, (id) => secrets.has(id));
    secrets.made(readCreated(message));
    if (secrets.making === 0) letGo();
    return true;
  }

  /** While a secret target is made: whoever is told of a target now waits, with everything after it in its order. */
  function isHeld(message: Message): boolean {
    const head = message[0];
    const isAnswer = head[2] === LETTER_I;
    const owner = isAnswer ? pending.get(answerId(head).id)?.owner : sessions.get(sessionOf(message) ?? '')?.owner;
    if (!owner || owner.secretive) return false;
    if (!owner.held && (isAnswer || !isTargetEvent(head))) return false;
    (owner.held ??= []).push(message);
    if (owner.held.length > MOST_HELD) owner.end(1011, 'The browser does not say which page it made.');
    return true;
  }

  function letGo(): void {
    for (const connection of connections) {
      const held = connection.held;
      connection.held = undefined;
      for (const message of held ?? []) route(message);
    }
  }

  /** Whether an event is about a target that its client may not see. What was attached to it is let go of. */
  function isSecret(message: Message, session: Session): boolean {
    const event = readTargetEvent(message);
    if (!event) return true; // it may be about one
    const { method, targetId, sessionId, type } = event;
    if (session.owner.secretive) {
      if (method === 'Target.targetCreated' && targetId !== undefined) secrets.created({ targetId, type });
      return false;
    }
    if (targetId === undefined || !secrets.has(targetId)) return false;
    if (method === 'Target.attachedToTarget' && sessionId !== undefined && asked.size < MOST_ASKED) {
      ask('Runtime.runIfWaitingForDebugger', {}, sessionId); // it was stopped for a client that must not know
      ask('Target.detachFromTarget', { sessionId }, session.id);
    }
    return true;
  }

  function routeEvent(message: Message): void {
    const head = message[0];
    const sessionId = sessionOf(message);
    const session = sessionId === undefined ? undefined : sessions.get(sessionId);
    if (head[METHOD_AT] === LETTER_T) {
      if (session && secrets.any && isTargetEvent(head) && isSecret(message, session)) return;
      if (head.toString('latin1', 0, ATTACHED.length) === ATTACHED) {
        const attached = session && readTargetEvent(message)?.sessionId;
        if (session && attached !== undefined) adopt(attached, session);
      } else if (head.toString('latin1', 0, DETACHED.length) === DETACHED) {
        const gone = sessions.get(readTargetEvent(message)?.sessionId ?? '');
        if (gone?.owner.root === gone && gone) gone.owner.end(1011, 'The browser ended this connection.');
        else if (gone && gone.owner === session?.owner) forget(gone);
      }
    }
    if (!session) return; // the pipe's own session, or a client that has left
    if (session === session.owner.root) stripSession(message, session.id);
    session.owner.deliver(message, byteLength(message));
  }

  function adopt(id: string, parent: Session): void {
    if (sessions.get(id)?.owner.root?.id === id || parent.owner.sessions.size >= MOST_SESSIONS) {
      return parent.owner.end(1011, 'The browser attached this connection to more than there can be.');
    }
    const session: Session = { id, owner: parent.owner, parent, children: new Set(), detachedAt: 0 };
    sessions.set(id, session);
    parent.children.add(session);
    parent.owner.sessions.add(session);
  }

  function forget(session: Session): void {
    for (const child of session.children) forget(child);
    sessions.delete(session.id);
    session.owner.sessions.delete(session);
    session.parent?.children.delete(session);
    session.detachedAt = Date.now();
  }

  function attach(sink: Sink, { secretive = false, local = false } = {}): Client {
    if (secretive) secrets.any = true;
    const connection: Connection = {
      secretive,
      held: undefined,
      sessions: new Set(),
      inFlight: 0,
      root: undefined,
      receive,
      closed: leave,
      deliver,
      end,
      pause: () => sink.pause(),
      resume: () => sink.resume(),
      flush,
      unflushed: false,
      flushSink: () => sink.flush(),
    };
    /** Messages that came before Chromium has given us a session for this client. */
    let early: Buffer[] | undefined = [];
    const backlog = new Backlog(options);
    let sweepAt = 1000;
    let left = false;
    let tookDownloads = false;

    if (closed) {
      left = true;
      const { code, reason } = whenGone();
      sink.close(code, reason);
      return connection;
    }
    connections.add(connection);
    connect();
    return connection;

    function connect(): void {
      ask('Target.attachToBrowserTarget', undefined, undefined, open);
    }

    function open(answer?: Answer): void {
      if (!answer) {
        if (left) return;
        // Our own clients outlive a browser that stands still for a while: each of their commands has a deadline.
        return local ? connect() : end(1011, new Overdue('The browser', answerMs).message);
      }
      const { sessionId } = answer;
      if (sessionId === undefined || sessions.has(sessionId)) return end(1011, 'The browser refused a new connection.');
      if (left) return ask('Target.detachFromTarget', { sessionId });
      const root = { id: sessionId, owner: connection, parent: undefined, children: new Set<Session>() };
      connection.root = { ...root, detachedAt: 0 };
      sessions.set(root.id, connection.root);
      connection.sessions.add(connection.root);
      const waiting = early!;
      early = undefined;
      if (waiting.length > 0) sink.resume();
      for (const data of waiting) receive(data);
      flush();
    }

    function receive(data: Buffer): void {
      if (left) return;
      if (early) {
        early.push(data);
        sink.pause();
        return;
      }
      if (data.length > MAX_TO_CHROMIUM) return refuse(tooLarge(data));
      const command = readCommand(data);
      if (!('method' in command)) return refuse(command);
      const session = command.sessionId === undefined ? connection.root! : sessions.get(command.sessionId);
      if (session?.owner !== connection) {
        return refuse({ id: command.id, code: -32001, message: 'Session with given id not found.' });
      }
      if (command.method === 'Browser.close') {
        answer({ id: command.id, result: {}, sessionId: command.sessionId });
        return end(1000, 'Browser.close');
      }
      const why = REFUSED.get(command.method);
      if (why) return refuse({ id: command.id, code: -32000, message: why }, command.sessionId);
      if (connection.inFlight >= sweepAt) sweep();
      if (connection.inFlight >= maxInFlight) {
        const message = `More than ${maxInFlight} commands of this connection wait for an answer.`;
        return refuse({ id: command.id, code: -32000, message }, command.sessionId);
      }
      forward(command, session);
    }

    /** Which answers are to be looked at on their way, once there are secrets. */
    function looksAt(method: string): Pick<Pending, 'method'> {
      if (!secretive) return method === 'Target.getTargets' ? { method } : {};
      if (method !== 'Target.createTarget') return {};
      secrets.making += 1;
      return { method };
    }

    function forward(command: Command, session: Session): void {
      const id = nextId();
      const { method } = command;
      const params = method === SET_DOWNLOADS ? aboutDownloads(command.params) : command.params;
      pending.set(id, { owner: connection, session, id: command.id, ...(secrets.any && looksAt(method)) });
      connection.inFlight += 1;
      if (Buffer.isBuffer(params)) {
        const head = `${ANSWER}${id},"method":${JSON.stringify(method)},"params":`;
        pipe.send([Buffer.from(head), params, Buffer.from(`${SESSION}${session.id}"}`)]);
      } else pipe.send(JSON.stringify({ id, method, params, sessionId: session.id }));
      if (pipe.isFull) pauseAll();
    }

    function aboutDownloads(params: Command['params']): Command['params'] {
      tookDownloads = true;
      return params === undefined || Buffer.isBuffer(params) ? params : meantDownloads(params);
    }

    function refuse({ id, code, message }: Fault, sessionId?: string): void {
      answer({ id, error: { code, message }, sessionId });
    }

    function answer(body: object): void {
      const bytes = Buffer.from(JSON.stringify(body));
      deliver([bytes], bytes.length);
    }

    function deliver(pieces: readonly Buffer[], bytes: number): void {
      if (left) return;
      if (!backlog.takes(bytes, sink.bufferedAmount)) {
        return end(1008, 'Dropped: this connection does not read what the browser sends.');
      }
      sink.send(pieces);
      if (connection.unflushed) return;
      connection.unflushed = true;
      unflushed.push(connection);
    }

    /** Commands to sessions that have since been detached are not always answered: forget them in the end. */
    function sweep(): void {
      const longAgo = Date.now() - 30_000;
      for (const [id, { owner, session }] of pending) {
        if (owner !== connection || session.detachedAt === 0 || session.detachedAt > longAgo) continue;
        pending.delete(id);
        connection.inFlight -= 1;
      }
      sweepAt = Math.max(1000, connection.inFlight * 2);
    }

    function end(code: number, reason: string): void {
      if (left) return;
      leave();
      sink.close(code, reason);
    }

    /** Chromium undoes with the session what was done through it; we forget what belonged to it. */
    function leave(): void {
      if (left) return;
      left = true;
      early = early && [];
      connections.delete(connection);
      paused.delete(connection);
      for (const session of connection.sessions) sessions.delete(session.id);
      for (const [id, { owner, method }] of pending) {
        if (owner !== connection) continue;
        pending.delete(id);
        if (method === 'Target.createTarget') secrets.made(undefined);
      }
      if (secretive && secrets.making === 0) letGo();
      connection.held = undefined;
      connection.sessions.clear();
      if (connection.root && !closed) ask('Target.detachFromTarget', { sessionId: connection.root.id });
      if (tookDownloads && !closed) options.onDownloadsLeft?.();
    }
  }

  function close(code: number, reason: string): void {
    if (closed) return;
    closed = true;
    for (const connection of connections) connection.end(code, reason);
    pending.clear();
    for (const { late } of asked.values()) clearTimeout(late);
    asked.clear();
    pipe.close();
  }

  return {
    attach: (sink) => attach(sink),
    attachLocal: ({ secretive = false } = {}) =>
      localClient((sink) => attach(sink, { secretive, local: true }), answerMs),
    close,
    get clientCount() {
      return connections.size;
    },
    get isClosed() {
      return closed;
    },
  };
}

const SET_DOWNLOADS = 'Browser.setDownloadBehavior';

/** A message too large for Chromium, and for us to scan. Its id, if it comes first as all known clients write it. */
function tooLarge(data: Buffer): Fault {
  const id = /^\s*\{\s*"id"\s*:\s*(-?\d{1,10})\s*,/.exec(data.toString('latin1', 0, 64))?.[1];
  const message = `Message of ${data.length} bytes exceeds the ${MAX_TO_CHROMIUM} that Chromium can take.`;
  return { ...(id !== undefined && { id: Number(id) }), code: -32600, message };
}
