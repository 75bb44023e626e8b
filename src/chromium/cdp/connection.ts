import { memory } from '../../lib/byte-budget.ts';
import { Overdue } from '../../lib/deadline.ts';
import { isLight } from '../../lib/json-weight.ts';
import { nextTurn, turns } from '../../lib/turns.ts';
import { Backlog, type BacklogBounds } from './backlog.ts';
import type { Sink } from './client.ts';
import { readCommand, type Command, type Fault, type Reading } from './command.ts';
import { CREATE_CONTEXT, DISPOSE_CONTEXT, type ContextLanes, type TakenLane } from './context-lanes.ts';
import { meantDownloads } from './downloads.ts';
import { ANSWER, SESSION, type Answer } from './message.ts';
import { newSession, type Connection, type Held, type Pending, type Session } from './session.ts';
import type { Switchboard } from './switchboard.ts';
import { RESUME } from './watcher-isolation.ts';

interface ConnectionOptions extends BacklogBounds {
  /** The most unanswered commands of all clients of the browser. */
  maxInFlight: number;
  secretive: boolean;
  watching: boolean;
  /** The target that the connection is for, instead of the browser. */
  targetId?: string | undefined;
  /** The client is a part of this service. */
  local: boolean;
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
const NAVIGATE = 'Page.navigate' as const;
const SET_FILES = 'DOM.setFileInputFiles';
/** Each path is looked up in the session's files. The live view offers as many files at once. */
const MOST_FILES = 1000;
const MOST_FILES_BYTES = 1024 * 1024;
/** Of the params that set where downloads go, and of the path among them: to normalise a path of 250 KB took 1.7 s. */
const MOST_DOWNLOADS_BYTES = 64 * 1024;
const LONGEST_PATH = 4096;
/** No browser has as many contexts at once. */
const MOST_CONTEXTS = 1000;
const LONGEST_ID = 128;

/** Takes one client's messages to Chromium, and delivers Chromium's messages to the client. */
export class ClientConnection implements Connection {
  readonly secretive: boolean;
  readonly watching: boolean;
  readonly sessions = new Set<Session>();
  root: Session | undefined;
  readonly unanswered = new Set<number>();
  unflushed = false;
  held: Held | undefined;

  readonly #board: Switchboard;
  readonly #sink: Sink;
  readonly #options: ConnectionOptions;
  readonly #backlog: Backlog;
  /** Messages that arrived before Chromium has created a session for this client, or after a message that is still being read. */
  #waiting: Buffer[] | undefined = [];
  /** Files of a command are looked up; the messages after it wait. */
  #checking = false;
  #sweepAt = 1000;
  #left = false;
  /** The contexts for which it has set the download behaviour; undefined is the default one. */
  readonly #tookDownloads = new Set<string | undefined>();

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

  /** Used instead of `open` when the browser has exited. */
  refuseAtOnce({ code, reason }: { code: number; reason: string }): void {
    this.#left = true;
    this.#sink.close(code, reason);
  }

  #connect(): void {
    const { targetId } = this.#options;
    const opened = (answer?: Answer) => this.#opened(answer);
    if (targetId === undefined) this.#board.ask('Target.attachToBrowserTarget', undefined, undefined, opened);
    else this.#board.ask('Target.attachToTarget', { targetId, flatten: true }, undefined, opened);
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
    this.root = newSession(sessionId, this, undefined, this.#options.targetId);
    board.sessions.set(sessionId, this.root);
    this.sessions.add(this.root);
    void this.#goOn();
  }

  /** Takes the messages that waited, in pieces. One of them may make the rest wait again. */
  async #goOn(): Promise<void> {
    const waiting = this.#waiting!;
    const turn = turns();
    for (let data = waiting.shift(); data && !this.#left; data = waiting.shift()) {
      if (!this.#pass(data)) return this.#board.flush();
      const next = turn();
      if (!next) continue;
      this.#board.flush();
      await next;
    }
    if (this.#left) return;
    this.#waiting = undefined;
    if (!this.#board.paused.has(this)) this.resume();
    this.#board.flush();
  }

  // ---- to Chromium

  receive(data: Buffer): void {
    if (this.#left) return;
    if (this.#waiting) {
      this.#waiting.push(data);
      this.#sink.pause();
      return;
    }
    this.#pass(data);
  }

  /** Answers whether the messages after it can be taken as well. */
  #pass(data: Buffer): boolean {
    const command = data.length > MAX_TO_CHROMIUM ? tooLarge(data) : readCommand(data);
    const isReading = 'next' in command;
    if (isReading) void this.#readOn(command, data.length);
    else this.#take(command);
    return !isReading && !this.#checking;
  }

  /** Reads the rest of a message of many values, in pieces. The messages after it wait. */
  async #readOn(reading: Reading, bytes: number): Promise<void> {
    this.#waiting ??= [];
    this.#sink.pause();
    const share = memory.share(this.#board.pipe.group, 'reader', () => {});
    share.hold(true);
    share.set(bytes);
    try {
      await nextTurn();
      const turn = turns();
      while (!this.#left) {
        const { done, value } = reading.next();
        if (done) {
          this.#take(value);
          if (!this.#checking) void this.#goOn();
          return;
        }
        await turn();
      }
    } finally {
      share.close();
    }
  }

  #take(command: Command | Fault): void {
    if (!('method' in command)) return this.#refuse(command);
    try {
      this.#takeCommand(command);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      const message = `The params of ${command.method} are not JSON: ${error.message}`;
      this.#refuse({ id: command.id, code: -32600, message }, command.sessionId);
    }
  }

  #takeCommand(command: Command): void {
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
    if (this.unanswered.size >= this.#sweepAt) this.#sweep();
    if (this.#board.pending.size >= maxInFlight && !this.#options.local) {
      const message = `${maxInFlight} commands to this browser are unanswered, which is the most. Wait for an answer first.`;
      return this.#refuse({ id: command.id, code: -32000, message }, command.sessionId);
    }
    if (command.method === RESUME) return this.#board.watching.resume(session, () => this.#resume(command, session));
    if (command.method === SET_FILES && this.#board.missingFile) return this.#takeFiles(command, session);
    if (command.method === CREATE_CONTEXT) return this.#createContext(command, session);
    if (command.method === SET_DOWNLOADS && this.#board.downloads) return this.#setDownloads(command, session);
    if (command.method === DISPOSE_CONTEXT) this.#disposed(command.params);
    if (command.method === 'Page.enable') session.answersDialogs = true;
    else if (command.method === 'Page.disable') session.answersDialogs = false;
    if (!this.#options.local) this.#noteForViewers(command, session);
    this.#forward(command, session);
  }

  /**
   * The live view shows the page that a client brings to the front, and leaves a page's requests for files to a client that takes them.
   * The service's own clients are not counted.
   */
  #noteForViewers({ method, params }: Command, session: Session): void {
    const { targetId } = session;
    if (method === 'Page.setInterceptFileChooserDialog' && params !== undefined && !Buffer.isBuffer(params))
      session.choosesFiles = 'enabled' in params && params.enabled === true;
    else if (method === 'Page.bringToFront' && targetId !== undefined) this.#board.broughtToFront(targetId);
    else if (method === 'Target.createTarget') this.#board.front = undefined;
    else if (method === 'Target.activateTarget' && params !== undefined && !Buffer.isBuffer(params)) {
      const { targetId: chosen } = params as { targetId?: unknown };
      if (typeof chosen === 'string') this.#board.broughtToFront(chosen);
    }
  }

  #resume(command: Command, session: Session): void {
    if (this.#left) return;
    this.#forward(command, session);
    this.#board.flush();
  }

  #takeFiles(command: Command, session: Session): void {
    const value = command.params === undefined ? {} : valueOf(command.params, MOST_FILES_BYTES);
    const { files } = (value ?? {}) as { files?: unknown };
    const paths = Array.isArray(files) ? files.filter((path) => typeof path === 'string') : [];
    if (value && paths.length <= MOST_FILES) return void this.#checkFiles(paths, command, session);
    const message =
      `${SET_FILES} takes at most ${MOST_FILES} files and ${MOST_FILES_BYTES} bytes of params. ` +
      `Put the files into a directory of the session and name the directory, if the page asks for one.`;
    this.#refuse({ id: command.id, code: -32000, message }, command.sessionId);
  }

  /** Chromium accepts any path, and uploads an empty file if it does not exist. The messages after the command wait. */
  async #checkFiles(paths: readonly string[], command: Command, session: Session): Promise<void> {
    this.#checking = true;
    this.#waiting ??= [];
    this.#sink.pause();
    const missing = await this.#board.inTurn(async () => (this.#left ? undefined : this.#board.missingFile!(paths)));
    if (this.#left) return;
    this.#checking = false;
    if (missing === undefined) this.#forward(command, session);
    else {
      const message =
        `There is no file ${missing.slice(0, 1000)} in the session. The browser does not run on the client's machine: upload the file ` +
        `to the session first, by the fs API (PUT /browsers/{id}/fs/write_file?path=...), and name its path there.`;
      this.#refuse({ id: command.id, code: -32000, message }, command.sessionId);
    }
    void this.#goOn();
  }

  flush(): void {
    this.#board.flush();
  }

  #createContext(command: Command, session: Session): void {
    let prepared: ReturnType<ContextLanes['prepare']>;
    try {
      prepared = this.#board.lanes.prepare(command.params, this);
    } catch (error) {
      return this.#refuse({ id: command.id, code: -32000, message: (error as Error).message }, command.sessionId);
    }
    const { params, taken } = prepared;
    this.#forward({ ...command, params }, session, taken);
  }

  #forward(command: Command, session: Session, taken?: TakenLane): void {
    const { pipe, pending } = this.#board;
    const id = this.#board.nextId();
    const { method } = command;
    const { params } = command;
    const inspected = method === NAVIGATE ? { method: NAVIGATE, url: urlOf(params) } : this.#looksAt(method);
    pending.set(id, {
      owner: this,
      session,
      id: command.id,
      ...inspected,
      ...(taken && { method: CREATE_CONTEXT, taken }),
    });
    this.unanswered.add(id);
    if (Buffer.isBuffer(params)) {
      const head = `${ANSWER}${id},"method":${JSON.stringify(method)},"params":`;
      pipe.send([Buffer.from(head), params, Buffer.from(`${SESSION}${session.id}"}`)]);
    } else pipe.send(JSON.stringify({ id, method, params, sessionId: session.id }));
    if (pipe.isFull) this.#board.pauseAll();
  }

  /** Which answers have to be inspected: of new contexts for their downloads, and of targets once some are hidden. */
  #looksAt(method: string): Pick<Pending, 'method'> | undefined {
    if (!method.startsWith('Target.')) return undefined;
    if (method === 'Target.createBrowserContext') return this.#board.downloads && { method };
    if (!this.#board.secrets.any) return undefined;
    if (!this.secretive) return method === 'Target.getTargets' ? { method } : {};
    if (method !== 'Target.createTarget') return {};
    this.#board.secrets.making += 1;
    return { method };
  }

  #setDownloads(command: Command, session: Session): void {
    if (command.params === undefined) return this.#forward(command, session);
    const value = valueOf(command.params, MOST_DOWNLOADS_BYTES);
    const { browserContextId, downloadPath } = (value ?? {}) as { browserContextId?: unknown; downloadPath?: unknown };
    if (!value || (typeof downloadPath === 'string' && downloadPath.length > LONGEST_PATH)) {
      const message = `${SET_DOWNLOADS} takes a downloadPath of at most ${LONGEST_PATH} characters, and ${MOST_DOWNLOADS_BYTES} bytes of params.`;
      return this.#refuse({ id: command.id, code: -32000, message }, command.sessionId);
    }
    const context = typeof browserContextId === 'string' ? browserContextId : undefined;
    if (this.#tookDownloads.size < MOST_CONTEXTS && (context === undefined || context.length <= LONGEST_ID))
      this.#tookDownloads.add(context);
    this.#forward({ ...command, params: meantDownloads(value) }, session);
  }

  #disposed(params: Command['params']): void {
    this.#board.lanes.disposed(params);
    const { browserContextId } = (Buffer.isBuffer(params) ? {} : (params ?? {})) as { browserContextId?: unknown };
    if (typeof browserContextId === 'string') this.#tookDownloads.delete(browserContextId);
  }

  /** Commands to detached sessions are not always answered: forgets them after a while. */
  #sweep(): void {
    const { pending } = this.#board;
    const longAgo = Date.now() - 30_000;
    for (const id of this.unanswered) {
      const { session, taken } = pending.get(id)!;
      if (session.detachedAt === 0 || session.detachedAt > longAgo) continue;
      pending.delete(id);
      this.unanswered.delete(id);
      taken?.lane.close();
    }
    this.#sweepAt = Math.max(1000, this.unanswered.size * 2);
  }

  // ---- to the client

  wants(head: Buffer): boolean {
    return this.#sink.wants?.(head) ?? true;
  }

  deliver(pieces: readonly Buffer[], bytes: number): void {
    if (this.#left) return;
    if (!this.#backlog.takes(bytes, this.#sink.bufferedAmount)) {
      return this.end(1008, 'Dropped: this connection does not read the messages of the browser.');
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
    if (!this.#waiting) this.#sink.resume();
  }

  // ---- the end

  end(code: number, reason: string): void {
    if (this.#left) return;
    this.closed();
    this.#sink.close(code, reason);
  }

  /** Chromium undoes the effects of the session; the multiplexer removes its state. */
  closed(): void {
    if (this.#left) return;
    this.#left = true;
    this.#waiting &&= [];
    const board = this.#board;
    const { secrets, pending } = board;
    board.connections.delete(this);
    board.paused.delete(this);
    for (const session of this.sessions) {
      board.sessions.delete(session.id);
      board.watching.forget(session);
    }
    board.lanes.left(this);
    for (const id of this.unanswered) {
      const { method, taken } = pending.get(id)!;
      pending.delete(id);
      taken?.lane.close();
      if (method === 'Target.createTarget') secrets.made(undefined);
    }
    this.unanswered.clear();
    if (this.secretive && secrets.making === 0) board.onSecretsKnown();
    board.drop(this);
    this.sessions.clear();
    if (board.closed) return;
    if (this.root) board.ask('Target.detachFromTarget', { sessionId: this.root.id });
    // Chromium drops the settings of clients and of the service for these contexts.
    for (const context of this.#tookDownloads) board.downloads?.take(context);
  }
}

function urlOf(params: Command['params']): string | undefined {
  return params && 'url' in params && typeof params.url === 'string' ? params.url : undefined;
}

/** A message that is too large for Chromium, and for the scan. Its id is known if it comes first, as all known clients write it. */
function tooLarge(data: Buffer): Fault {
  const id = /^\s*\{\s*"id"\s*:\s*(-?\d{1,10})\s*,/.exec(data.toString('latin1', 0, 64))?.[1];
  const message = `Message of ${data.length} bytes exceeds the ${MAX_TO_CHROMIUM} that Chromium can take.`;
  return { ...(id !== undefined && { id: Number(id) }), code: -32600, message };
}

/** The value of params; undefined if it is missing or too large. Throws a SyntaxError: Chromium's JSON may have control characters in texts. */
function valueOf(params: Command['params'], most: number): object | undefined {
  if (!Buffer.isBuffer(params)) return params;
  if (params.length > most || !isLight(params)) return undefined;
  return JSON.parse(params.toString()) as object; // the scan has checked that it is an object
}
