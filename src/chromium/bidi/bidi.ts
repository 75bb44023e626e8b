import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { isLight, MOST_WEIGHT } from '../../lib/json-weight.ts';
import { silent, type Log } from '../../lib/log.ts';
import { nextTurn, turns } from '../../lib/turns.ts';
import type { WebSocketReceiver, WebSocketSink } from '../../lib/ws-sink.ts';
import { Backlog, type BacklogBounds } from '../cdp/backlog.ts';
import type { Client } from '../cdp/client.ts';
import { LARGE } from '../cdp/large-messages.ts';
import type { Mux } from '../cdp/mux.ts';
import { InFlight } from './in-flight.ts';
import { jsonPieces } from './large-text.ts';
import type { Mapper } from './mapper.ts';

export { isMapperFault } from './fault.ts';

/** A client with a backlog beyond these bounds is dropped. */
export interface BidiOptions extends BacklogBounds {
  log?: Log;
  /** The most unanswered commands of one client. */
  maxInFlight?: number;
  /** The session was begun elsewhere, like this: the first command opens it here, without `session.new`. */
  begun?: Begun | undefined;
  /** How long `session.new` may take. */
  newSessionMs?: number;
}

export interface Begun {
  /** What becomes of dialogs, by their kind, as `session.new` takes it. */
  unhandledPromptBehavior: Record<string, string>;
}

/** A command is parsed, checked, and written again as a command of CDP at once: this much takes some tens of milliseconds. */
export const MAX_BIDI_MESSAGE = 4 * 1024 * 1024;
/** Of all commands that the mapper has not answered: it keeps their params until then. A single command may have any size. */
const MOST_UNANSWERED = 4 * MAX_BIDI_MESSAGE;

interface Command {
  id: number;
  method: string;
  params: Record<string, unknown>;
  'goog:channel'?: string;
}

interface Refusal {
  id: number | null;
  error: 'invalid argument' | 'invalid session id' | 'session not created' | 'unknown error';
  message: string;
}

type Message = { type: 'success' | 'error' | 'event'; id?: number; result?: Record<string, unknown> };

/**
 * One WebDriver BiDi client on a shared browser, translated to CDP in this process by the mapper that Puppeteer and
 * chromedriver use. The session begins with `session.new` and ends with the connection: `session.end` and
 * `browser.close` end both, and never the browser.
 */
export function attachBidi(mux: Mux, sink: WebSocketSink, options: BidiOptions = {}): WebSocketReceiver {
  return new BidiConnection(mux, sink, options);
}

class BidiConnection implements WebSocketReceiver {
  readonly #mux: Mux;
  readonly #sink: WebSocketSink;
  readonly #log: Log;
  readonly #maxInFlight: number;
  readonly #options: BidiOptions;
  readonly #backlog: Backlog;
  /** Opens the session of a client that does not ask for it. Compared by identity: no client can send it. */
  readonly #beginning: Command | undefined;
  #session: 'none' | 'starting' | 'open' = 'none';
  /** Commands that arrive while the session is starting, and after them until they are performed. */
  #early: { command: Command; bytes: number }[] = [];
  #earlyBytes = 0;
  #isPerformingEarly = false;
  /** Messages that arrive behind a large command, until that is passed on. */
  #behind: Buffer[] | undefined;
  /** The browser does not keep up with the commands. */
  #isFull = false;
  /** The commands that the mapper has not answered. */
  readonly #inFlight = new InFlight();
  #mapper: Mapper | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #over = false;
  #cdp: Client | undefined;

  constructor(mux: Mux, sink: WebSocketSink, options: BidiOptions) {
    this.#mux = mux;
    this.#sink = sink;
    this.#log = options.log ?? silent;
    this.#maxInFlight = options.maxInFlight ?? 10_000;
    this.#options = options;
    this.#backlog = new Backlog(options);
    const { begun } = options;
    this.#beginning = begun && { id: 0, method: 'session.new', params: { capabilities: { alwaysMatch: begun } } };
    this.#connect();
  }

  flush(): void {}

  /** Attaches this client's own CDP client from the start: it closes when the browser exits. */
  #connect(): void {
    this.#cdp = this.#mux.attach({
      bufferedAmount: 0,
      send: (pieces) => {
        try {
          this.#mapper?.fromBrowser(pieces);
        } catch (error) {
          this.#log.debug({ error }, 'bidi.message_unread'); // a compromised browser may send anything
        }
      },
      flush() {},
      close: (code, reason) => this.#end(code, reason),
      pause: () => {
        // Not before the session is open: a paused websocket does not notice that its client disconnects, and a start may have to be aborted.
        this.#isFull = this.#session === 'open';
        this.#steer();
      },
      resume: () => {
        this.#isFull = false;
        this.#steer();
      },
    });
  }

  #steer(): void {
    if (this.#isFull || this.#isPerformingEarly || this.#behind) this.#sink.pause();
    else this.#sink.resume();
  }

  receive(data: Buffer): void {
    if (this.#over) return;
    if (this.#behind) return void this.#behind.push(data);
    const command = read(data);
    if ('error' in command) return this.#refuse(command);
    if (data.length <= LARGE) return this.#take(command, data.length);
    void this.#takeWithOthers(command, data.length);
  }

  /** Takes a large command and the messages behind it, in pieces. */
  async #takeWithOthers(first: Command, firstBytes: number): Promise<void> {
    const behind: Buffer[] = (this.#behind = []);
    this.#steer();
    await socketsRead();
    if (!this.#over) this.#take(first, firstBytes);
    const turn = turns();
    for (let data = behind.shift(); data && !this.#over; data = behind.shift()) {
      const command = read(data);
      if (data.length > LARGE) await socketsRead();
      if ('error' in command) this.#refuse(command);
      else if (!this.#over) this.#take(command, data.length);
      await turn();
    }
    this.#behind = undefined;
    if (!this.#over) this.#steer();
  }

  #take(command: Command, bytes: number): void {
    if (command.method === 'session.status') {
      const taken = this.#session !== 'none';
      return this.#answer(command, { ready: !taken, message: taken ? 'This connection has its session.' : '' });
    }
    if (this.#inFlight.count + this.#early.length >= this.#maxInFlight) {
      const message = `${this.#maxInFlight} commands of this connection are unanswered, which is the most. Wait for an answer first.`;
      return this.#refuse({ id: command.id, error: 'unknown error', message }, command);
    }
    if (this.#inFlight.count > 0 && this.#inFlight.bytes + bytes > MOST_UNANSWERED) {
      const message = `The unanswered commands of this connection have more than ${MOST_UNANSWERED} bytes. Wait for an answer first.`;
      return this.#refuse({ id: command.id, error: 'unknown error', message }, command);
    }
    if (this.#session !== 'starting' && !this.#isPerformingEarly) return this.#perform(command, bytes);
    if (this.#session === 'starting' && this.#earlyBytes + bytes > MAX_BIDI_MESSAGE) {
      const message = 'The session is still starting. Wait for the answer to session.new.';
      return this.#refuse({ id: command.id, error: 'unknown error', message }, command);
    }
    this.#earlyBytes += bytes;
    this.#early.push({ command, bytes });
  }

  #perform(command: Command, bytes: number): void {
    const { id, method } = command;
    if (method === 'session.new') {
      const refusal = this.#session === 'none' ? unfit(command) : hasSession(id);
      return refusal ? this.#refuse(refusal, command) : void this.#open(command);
    }
    if (this.#session !== 'open' && this.#beginning) {
      this.#early.push({ command, bytes: 0 });
      return void this.#open(this.#beginning);
    }
    if (this.#session !== 'open') {
      const message = 'This connection has no session. Send session.new first.';
      return this.#refuse({ id, error: 'invalid session id', message }, command);
    }
    if (method === 'session.end' || method === 'browser.close') {
      this.#answer(command, {});
      return this.#end(1000, method);
    }
    this.#inFlight.add(id, bytes);
    this.#mapper!.fromClient(command);
  }

  async #open(command: Command): Promise<void> {
    this.#session = 'starting';
    const { newSessionMs = 30_000 } = this.#options;
    this.#deadline = setTimeout(() => {
      const message = `The browser did not answer within ${newSessionMs / 1000} s.`;
      this.#giveUp({ id: command.id, error: 'session not created', message }, command);
    }, newSessionMs);
    const attempt = this.#deadline;
    try {
      const { openMapper } = await import('./mapper.ts');
      if (this.#over || this.#deadline !== attempt) return;
      this.#mapper = openMapper({
        toClient: (message) => this.#opened(message as Message, command),
        toBrowser: (message) => {
          this.#cdp?.receive(message);
          this.#cdp?.flush();
        },
        log: this.#log,
      });
      await this.#mapper.start();
      this.#mapper.fromClient(command);
    } catch (error) {
      this.#log.error({ error }, 'bidi.did_not_start');
      const message = error instanceof Error ? error.message : String(error);
      if (!this.#over && this.#deadline === attempt)
        this.#giveUp({ id: command.id, error: 'session not created', message }, command);
    }
  }

  /** Handles messages of the mapper. Its first answer is the one to `session.new`; events may come before it. */
  #opened(message: Message, command: Command): void {
    if (this.#session === 'open') return this.#deliver(message);
    if (message.type === 'event') return this.#send(message);
    if (message.type === 'error') return this.#giveUp(message, command);
    clearTimeout(this.#deadline);
    this.#session = 'open';
    if (command !== this.#beginning) this.#send({ ...message, result: introduced(message.result!) });
    void this.#performEarly();
  }

  #deliver(message: Message): void {
    if (message.type !== 'event' && message.id !== undefined) this.#inFlight.answered(message.id);
    this.#send(message);
  }

  /** The session could not be created: undoes the completed steps, so that the client may try again. */
  #giveUp(refusal: object, command: Command): void {
    clearTimeout(this.#deadline);
    this.#deadline = undefined;
    this.#mapper?.close();
    this.#mapper = undefined;
    this.#cdp?.closed();
    this.#session = 'none';
    if (command === this.#beginning) return this.#end(1011, 'The browser did not open a BiDi session.');
    this.#refuse(refusal, command);
    this.#connect();
    void this.#performEarly();
  }

  /** Performs them in pieces, until one of them starts a session again. */
  async #performEarly(): Promise<void> {
    if (this.#isPerformingEarly) return;
    this.#isPerformingEarly = true;
    const turn = turns();
    while (!this.#over && this.#session !== 'starting') {
      const next = this.#early.shift();
      if (!next) break;
      this.#earlyBytes -= next.bytes;
      this.#perform(next.command, next.bytes);
      const later = turn();
      if (!later) continue;
      this.#steer();
      await later;
    }
    this.#isPerformingEarly = false;
    if (!this.#over) this.#steer();
  }

  #answer(command: Command, result: object): void {
    this.#send({ type: 'success', id: command.id, result, ...channelOf(command) });
  }

  #refuse(refusal: object, command?: Command): void {
    this.#send({ ...refusal, type: 'error', ...(command && channelOf(command)) });
  }

  #send(message: object): void {
    if (this.#over) return;
    // The mapper's stack traces name the service's own files.
    const pieces = jsonPieces({ ...message, stacktrace: undefined });
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    if (!this.#backlog.takes(bytes, this.#sink.bufferedAmount)) {
      return this.#end(1008, 'Dropped: this connection does not read the messages of the browser.');
    }
    this.#sink.send(pieces);
    this.#sink.flush();
  }

  #end(code: number, reason: string): void {
    if (this.#over) return;
    this.closed();
    this.#sink.close(code, reason);
  }

  /** Chromium undoes the effects of a CDP session when that session ends. */
  closed(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#deadline);
    this.#early = [];
    this.#mapper?.close();
    this.#mapper = undefined;
    this.#cdp?.closed();
  }
}

/** To read a large command and to pass it on may each take half of a tenth of a second: other sockets are read between the two. */
async function socketsRead(): Promise<void> {
  await nextTurn(); // in the turn that has read the command
  await nextTurn();
}

/** The mapper keeps the channel of each subscription, and writes it into each event for it. */
const LONGEST_CHANNEL = 256;

/** A client's message, checked as far as the protocol's envelope goes. The mapper checks the params of each method. */
function read(data: Buffer): Command | Refusal {
  if (data.length > MAX_BIDI_MESSAGE) {
    const id = /^\s*\{\s*"id"\s*:\s*(\d{1,15})\s*,/.exec(data.toString('latin1', 0, 64))?.[1];
    const message = `Message of ${data.length} bytes exceeds the ${MAX_BIDI_MESSAGE} that are taken.`;
    return { id: id === undefined ? null : Number(id), error: 'invalid argument', message };
  }
  if (!isLight(data))
    return {
      id: null,
      error: 'invalid argument',
      message: `The message has more than ${MOST_WEIGHT} names and values.`,
    };
  let value: unknown;
  try {
    value = isUtf8(data) ? JSON.parse(data.toString()) : undefined;
  } catch {
    value = undefined;
  }
  const fault = (message: string, id: number | null = null): Refusal => ({ id, error: 'invalid argument', message });
  if (value === undefined) return fault('The message is not JSON.');
  if (!isObject(value)) return fault('The message is not a JSON object.');
  const { id, method, params, 'goog:channel': channel } = value;
  if (typeof id !== 'number' || !Number.isSafeInteger(id) || id < 0) {
    return fault("The message has no 'id' that is an integer of 0 or more.");
  }
  if (typeof method !== 'string') return fault("The message has no 'method' that is a string.", id);
  if (!isObject(params)) return fault("The message has no 'params' that are an object.", id);
  if (channel !== undefined && typeof channel !== 'string') return fault("'goog:channel' is not a string.", id);
  if (channel !== undefined && channel.length > LONGEST_CHANNEL)
    return fault(`'goog:channel' has more than ${LONGEST_CHANNEL} characters.`, id);
  return { id, method, params, ...(channel && { 'goog:channel': channel }) };
}

/** The error in the capabilities that a client requests, if any. */
function unfit({ id, params }: Command): Refusal | undefined {
  const { capabilities } = params;
  const fault = (message: string): Refusal => ({ id, error: 'invalid argument', message });
  if (!isObject(capabilities)) return fault("'capabilities' is not an object.");
  const { alwaysMatch = {}, firstMatch = [{}] } = capabilities;
  if (!isObject(alwaysMatch)) return fault("'capabilities.alwaysMatch' is not an object.");
  if (!Array.isArray(firstMatch) || firstMatch.length === 0 || !firstMatch.every(isObject)) {
    return fault("'capabilities.firstMatch' is not a list of one or more objects.");
  }
  if (firstMatch.length > MOST_MATCHES || [alwaysMatch, ...firstMatch].some((match) => hasMoreNames(match, MOST_NAMES)))
    return fault(
      `'capabilities.firstMatch' takes at most ${MOST_MATCHES} objects, and each object of the capabilities ${MOST_NAMES} names.`,
    );
  const wanted = firstMatch.map((first) => first['browserName'] ?? alwaysMatch['browserName'] ?? BROWSER_NAMES[0]);
  if (!wanted.every((name) => typeof name === 'string')) return fault("'browserName' is not a string.");
  if (wanted.some((name) => BROWSER_NAMES.includes(name.toLowerCase()))) return undefined;
  const message = `This browser is ${BROWSER_NAMES[0]}, not ${wanted.join(' or ')}.`;
  return { id, error: 'session not created', message };
}

/** The mapper joins each object of `firstMatch` with a copy of `alwaysMatch`: 3000 times 3000 names took 7 s and 700 MB. */
const MOST_MATCHES = 50;
const MOST_NAMES = 100;

function hasMoreNames(match: object, most: number): boolean {
  return Object.keys(match).length > most;
}

/** The first name is the browser's own. */
const BROWSER_NAMES = ['chrome', 'chromium', 'chrome-headless-shell'];

const PLATFORMS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'mac', win32: 'windows' };

/** The mapper leaves these capabilities to chromedriver, which is not used here. */
function introduced(result: Record<string, unknown>): Record<string, unknown> {
  const capabilities = isObject(result['capabilities']) ? result['capabilities'] : {};
  const product = String(capabilities['browserName']); // HeadlessChrome/140.0.7339.80
  return {
    sessionId: randomUUID(),
    capabilities: {
      ...capabilities,
      browserName: BROWSER_NAMES[0],
      browserVersion: product.slice(product.indexOf('/') + 1),
      platformName: PLATFORMS[process.platform] ?? process.platform,
    },
  };
}

function hasSession(id: number): Refusal {
  return { id, error: 'session not created', message: 'This connection has its session already.' };
}

function channelOf(command: Command): { 'goog:channel'?: string } {
  const channel = command['goog:channel'];
  return channel === undefined ? {} : { 'goog:channel': channel };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
