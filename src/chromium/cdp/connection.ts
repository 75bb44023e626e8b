import { Overdue } from '../../lib/deadline.ts';
import { Backlog, type BacklogBounds } from './backlog.ts';
import type { Sink } from './client.ts';
import { readCommand, type Command, type Fault } from './command.ts';
import { meantDownloads } from './downloads.ts';
import { ANSWER, SESSION, type Answer } from './message.ts';
import type { Message } from './pipe.ts';
import { newSession, type Connection, type Pending, type Session, type Switchboard } from './switchboard.ts';
import { RESUME } from './watching.ts';

export interface ConnectionOptions extends BacklogBounds {
  /** The most unanswered commands. */
  maxInFlight: number;
  secretive: boolean;
  watching: boolean;
  /** The client is a part of this service. */
  local: boolean;
  /** A client that had set the download behaviour has left. Chromium has now also forgotten all earlier settings. */
  onDownloadsLeft?: (() => void) | undefined;
}

/**
 * Chromium closes its pipe, and with it every client's connection, when a message exceeds 100 MiB in its read buffer
 * (kReceiveBufferSizeForDevtools). So larger messages are answered here. On a raw websocket such a message closes only that websocket.
 */
export const MAX_TO_CHROMIUM = 100 * 1024 * 1024 - 1024;

/** Commands that would affect other clients, and the error that is answered instead. */
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

const SET_DOWNLOADS = 'Browser.setDownloadBehavior';

/** Takes one client's messages to Chromium, and delivers Chromium's messages to the client. */
export class ClientConnection implements Connection {
  readonly secretive: boolean;
  readonly watching: boolean;
  readonly sessions = new Set<Session>();
  root: Session | undefined;
  inFlight = 0;
  unflushed = false;
  held: Message[] | undefined;

  readonly #board: Switchboard;
  readonly #sink: Sink;
  readonly #options: ConnectionOptions;
  readonly #backlog: Backlog;
  /** Messages that arrived before Chromium has created a session for this client. */
  #early: Buffer[] | undefined = [];
  #sweepAt = 1000;
  #left = false;
  #tookDownloads = false;

  constructor(board: Switchboard, sink: Sink, options: ConnectionOptions) {
    this.#board = board;
    this.#sink = sink;
    this.#options = options;
    this.#backlog = new Backlog(options);
    this.secretive = options.secretive;
    this.watching = options.watching;
  }

  /** Requests a CDP session for this client from Chromium. */
  open(): void {
    this.#board.connections.add(this);
    this.#connect();
  }

  /** Used instead of `open` when the browser is gone. */
  refuseAtOnce({ code, reason }: { code: number; reason: string }): void {
    this.#left = true;
    this.#sink.close(code, reason);
  }

  #connect(): void {
    this.#board.ask('Target.attachToBrowserTarget', undefined, undefined, (answer) => this.#opened(answer));
  }

  #opened(answer?: Answer): void {
    const board = this.#board;
    if (!answer) {
      if (this.#left) return;
      // Local clients outlive a browser that stalls for a while: each of their commands has a deadline.
      if (this.#options.local) return this.#connect();
      return this.end(1011, new Overdue('The browser', board.answerMs).message);
    }
    const { sessionId } = answer;
    if (sessionId === undefined || board.sessions.has(sessionId)) {
      return this.end(1011, 'The browser refused a new connection.');
    }
    if (this.#left) return board.ask('Target.detachFromTarget', { sessionId });
    this.root = newSession(sessionId, this);
    board.sessions.set(sessionId, this.root);
    this.sessions.add(this.root);
    const waiting = this.#early!;
    this.#early = undefined;
    if (waiting.length > 0) this.#sink.resume();
    for (const data of waiting) this.receive(data);
    board.flush();
  }

  // ---- to Chromium

  receive(data: Buffer): void {
    if (this.#left) return;
    if (this.#early) {
      this.#early.push(data);
      this.#sink.pause();
      return;
    }
    if (data.length > MAX_TO_CHROMIUM) return this.#refuse(tooLarge(data));
    const command = readCommand(data);
    if (!('method' in command)) return this.#refuse(command);
    const session = command.sessionId === undefined ? this.root! : this.#board.sessions.get(command.sessionId);
    if (session?.owner !== this) {
      return this.#refuse({ id: command.id, code: -32001, message: 'Session with given id not found.' });
    }
    if (command.method === 'Browser.close') {
      this.#answer({ id: command.id, result: {}, sessionId: command.sessionId });
      return this.end(1000, 'Browser.close');
    }
    const why = REFUSED.get(command.method);
    if (why) return this.#refuse({ id: command.id, code: -32000, message: why }, command.sessionId);
    const { maxInFlight } = this.#options;
    if (this.inFlight >= this.#sweepAt) this.#sweep();
    if (this.inFlight >= maxInFlight) {
      const message = `More than ${maxInFlight} commands of this connection wait for an answer.`;
      return this.#refuse({ id: command.id, code: -32000, message }, command.sessionId);
    }
    if (command.method === RESUME) return this.#board.watching.resume(session, () => this.#resume(command, session));
    if (command.method === 'Page.enable') session.answersDialogs = true;
    else if (command.method === 'Page.disable') session.answersDialogs = false;
    this.#forward(command, session);
  }

  #resume(command: Command, session: Session): void {
    if (this.#left) return;
    this.#forward(command, session);
    this.#board.flush();
  }

  flush(): void {
    this.#board.flush();
  }

  #forward(command: Command, session: Session): void {
    const { pipe, pending, secrets } = this.#board;
    const id = this.#board.nextId();
    const { method } = command;
    const params = method === SET_DOWNLOADS ? this.#aboutDownloads(command.params) : command.params;
    pending.set(id, { owner: this, session, id: command.id, ...(secrets.any && this.#looksAt(method)) });
    this.inFlight += 1;
    if (Buffer.isBuffer(params)) {
      const head = `${ANSWER}${id},"method":${JSON.stringify(method)},"params":`;
      pipe.send([Buffer.from(head), params, Buffer.from(`${SESSION}${session.id}"}`)]);
    } else pipe.send(JSON.stringify({ id, method, params, sessionId: session.id }));
    if (pipe.isFull) this.#board.pauseAll();
  }

  /** Which answers have to be inspected, once there are hidden targets. */
  #looksAt(method: string): Pick<Pending, 'method'> {
    if (!this.secretive) return method === 'Target.getTargets' ? { method } : {};
    if (method !== 'Target.createTarget') return {};
    this.#board.secrets.making += 1;
    return { method };
  }

  #aboutDownloads(params: Command['params']): Command['params'] {
    this.#tookDownloads = true;
    return params === undefined || Buffer.isBuffer(params) ? params : meantDownloads(params);
  }

  /** Commands to detached sessions are not always answered: forgets them after a while. */
  #sweep(): void {
    const { pending } = this.#board;
    const longAgo = Date.now() - 30_000;
    for (const [id, { owner, session }] of pending) {
      if (owner !== this || session.detachedAt === 0 || session.detachedAt > longAgo) continue;
      pending.delete(id);
      this.inFlight -= 1;
    }
    this.#sweepAt = Math.max(1000, this.inFlight * 2);
  }

  // ---- to the client

  deliver(pieces: readonly Buffer[], bytes: number): void {
    if (this.#left) return;
    if (!this.#backlog.takes(bytes, this.#sink.bufferedAmount)) {
      return this.end(1008, 'Dropped: this connection does not read what the browser sends.');
    }
    this.#sink.send(pieces);
    this.#board.flushLater(this);
  }

  #refuse({ id, code, message }: Fault, sessionId?: string): void {
    this.#answer({ id, error: { code, message }, sessionId });
  }

  #answer(body: object): void {
    const bytes = Buffer.from(JSON.stringify(body));
    this.deliver([bytes], bytes.length);
  }

  flushSink(): void {
    this.#sink.flush();
  }

  pause(): void {
    this.#sink.pause();
  }

  resume(): void {
    this.#sink.resume();
  }

  // ---- the end

  end(code: number, reason: string): void {
    if (this.#left) return;
    this.closed();
    this.#sink.close(code, reason);
  }

  /** Chromium undoes what was done through the session; the multiplexer forgets what belonged to it. */
  closed(): void {
    if (this.#left) return;
    this.#left = true;
    this.#early &&= [];
    const board = this.#board;
    const { secrets, pending } = board;
    board.connections.delete(this);
    board.paused.delete(this);
    for (const session of this.sessions) {
      board.sessions.delete(session.id);
      board.watching.forget(session);
    }
    for (const [id, { owner, method }] of pending) {
      if (owner !== this) continue;
      pending.delete(id);
      if (method === 'Target.createTarget') secrets.made(undefined);
    }
    if (this.secretive && secrets.making === 0) board.onSecretsKnown();
    this.held = undefined;
    this.sessions.clear();
    if (board.closed) return;
    if (this.root) board.ask('Target.detachFromTarget', { sessionId: this.root.id });
    if (this.#tookDownloads) this.#options.onDownloadsLeft?.();
  }
}

/** A message that is too large for Chromium, and for the scan. Its id is known if it comes first, as all known clients write it. */
function tooLarge(data: Buffer): Fault {
  const id = /^\s*\{\s*"id"\s*:\s*(-?\d{1,10})\s*,/.exec(data.toString('latin1', 0, 64))?.[1];
  const message = `Message of ${data.length} bytes exceeds the ${MAX_TO_CHROMIUM} that Chromium can take.`;
  return { ...(id !== undefined && { id: Number(id) }), code: -32600, message };
}
