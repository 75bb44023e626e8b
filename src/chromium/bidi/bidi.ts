import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { silent, type Log } from '../../lib/log.ts';
import type { WebSocketReceiver, WebSocketSink } from '../../lib/ws-sink.ts';
import { Backlog, type BacklogBounds } from '../cdp/backlog.ts';
import type { Mapper } from './mapper.ts';
import type { Client } from '../cdp/client.ts';
import type { Mux } from '../cdp/mux.ts';

import { TooLarge } from './fault.ts';

export { isMapperFault } from './fault.ts';

/** A client that is further behind than the bounds is dropped. */
export interface BidiOptions extends BacklogBounds {
  log?: Log;
  /** How many commands of one client may be without an answer. */
  maxInFlight?: number;
  /** How long `session.new` may take. */
  newSessionMs?: number;
}

/** What Chromium takes over its pipe is a little more: a BiDi command becomes a CDP command of about its size. */
export const MAX_BIDI_MESSAGE = 100_000_000;

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
  const { log = silent, maxInFlight = 10_000 } = options;
  const backlog = new Backlog(options);
  let session: 'none' | 'starting' | 'open' = 'none';
  /** Commands that came while the session is starting. */
  let early: Command[] = [];
  let earlyBytes = 0;
  let inFlight = 0;
  let mapper: Mapper | undefined;
  let deadline: NodeJS.Timeout | undefined;
  let over = false;
  let cdp: Client | undefined;
  connect();

  return { receive, flush() {}, closed: leave };

  /** This client's own place on the browser, held from the start: by it the client hears that the browser is gone. */
  function connect(): void {
    cdp = mux.attach({
      bufferedAmount: 0,
      send(pieces) {
        try {
          mapper?.fromBrowser(pieces);
        } catch (error) {
          if (error instanceof TooLarge) return end(1009, error.message);
          log.debug({ error }, 'bidi.message_unread'); // a browser that was taken over says anything
        }
      },
      flush() {},
      close: end,
      pause() {
        // Not before: a paused websocket does not hear that its far end is gone, and a start may have to be given up.
        if (session === 'open') sink.pause();
      },
      resume: () => sink.resume(),
    });
  }

  function receive(data: Buffer): void {
    if (over) return;
    const command = read(data);
    if ('error' in command) return refuse(command);
    if (command.method === 'session.status') {
      const taken = session !== 'none';
      return answer(command, { ready: !taken, message: taken ? 'This connection has its session.' : '' });
    }
    if (inFlight + early.length >= maxInFlight) {
      const message = `More than ${maxInFlight} commands of this connection wait for an answer.`;
      return refuse({ id: command.id, error: 'unknown error', message }, command);
    }
    if (session !== 'starting') return perform(command);
    if (earlyBytes + data.length > MAX_BIDI_MESSAGE) {
      const message = 'The session is still starting. Wait for the answer to session.new.';
      return refuse({ id: command.id, error: 'unknown error', message }, command);
    }
    earlyBytes += data.length;
    early.push(command);
  }

  function perform(command: Command): void {
    const { id, method } = command;
    if (method === 'session.new') {
      const refusal = session === 'none' ? unfit(command) : hasSession(id);
      return refusal ? refuse(refusal, command) : void open(command);
    }
    if (session !== 'open') {
      const message = 'This connection has no session. Send session.new first.';
      return refuse({ id, error: 'invalid session id', message }, command);
    }
    if (method === 'session.end' || method === 'browser.close') {
      answer(command, {});
      return end(1000, method);
    }
    inFlight += 1;
    mapper!.fromClient(command);
  }

  async function open(command: Command): Promise<void> {
    session = 'starting';
    const { newSessionMs = 30_000 } = options;
    deadline = setTimeout(() => {
      const message = `The browser did not answer within ${newSessionMs / 1000} s.`;
      giveUp({ id: command.id, error: 'session not created', message }, command);
    }, newSessionMs);
    const attempt = deadline;
    try {
      const { openMapper } = await import('./mapper.ts');
      if (over || deadline !== attempt) return;
      mapper = openMapper({
        toClient: (message) => opened(message as Message, command),
        toBrowser: (message) => {
          cdp?.receive(message);
          cdp?.flush();
        },
        log,
      });
      await mapper.start();
      mapper.fromClient(command);
    } catch (error) {
      log.error({ error }, 'bidi.did_not_start');
      const message = error instanceof Error ? error.message : String(error);
      if (!over && deadline === attempt) giveUp({ id: command.id, error: 'session not created', message }, command);
    }
  }

  /** From the mapper. Its first answer is the one to `session.new`; there can be events before it. */
  function opened(message: Message, command: Command): void {
    if (session === 'open') return deliver(message);
    if (message.type === 'event') return send(message);
    if (message.type === 'error') return giveUp(message, command);
    clearTimeout(deadline);
    session = 'open';
    send({ ...message, result: introduced(message.result!) });
    performEarly();
  }

  function deliver(message: Message): void {
    if (message.type !== 'event') inFlight -= 1;
    send(message);
  }

  /** The session did not come to be: undo what was begun, so that the client may try again. */
  function giveUp(refusal: object, command: Command): void {
    clearTimeout(deadline);
    deadline = undefined;
    mapper?.close();
    mapper = undefined;
    cdp?.closed();
    session = 'none';
    refuse(refusal, command);
    connect();
    performEarly();
  }

  function performEarly(): void {
    const commands = early;
    early = [];
    earlyBytes = 0;
    for (const command of commands) {
      if (over) return;
      if (isStarting()) early.push(command);
      else perform(command);
    }
  }

  function isStarting(): boolean {
    return session === 'starting';
  }

  function answer(command: Command, result: object): void {
    send({ type: 'success', id: command.id, result, ...channelOf(command) });
  }

  function refuse(refusal: object, command?: Command): void {
    send({ ...refusal, type: 'error', ...(command && channelOf(command)) });
  }

  function send(message: object): void {
    if (over) return;
    const bytes = Buffer.from(JSON.stringify(message));
    if (!backlog.takes(bytes.length, sink.bufferedAmount)) {
      return end(1008, 'Dropped: this connection does not read what the browser sends.');
    }
    sink.send([bytes]);
    sink.flush();
  }

  function end(code: number, reason: string): void {
    if (over) return;
    leave();
    sink.close(code, reason);
  }

  /** Chromium undoes with the CDP session what was done through it. */
  function leave(): void {
    if (over) return;
    over = true;
    clearTimeout(deadline);
    early = [];
    mapper?.close();
    mapper = undefined;
    cdp?.closed();
  }
}

/** A message of the client, checked as far as the protocol's envelope goes. The mapper checks the params of each method. */
function read(data: Buffer): Command | Refusal {
  if (data.length > MAX_BIDI_MESSAGE) {
    const id = /^\s*\{\s*"id"\s*:\s*(\d{1,15})\s*,/.exec(data.toString('latin1', 0, 64))?.[1];
    const message = `Message of ${data.length} bytes exceeds the ${MAX_BIDI_MESSAGE} that are taken.`;
    return { id: id === undefined ? null : Number(id), error: 'invalid argument', message };
  }
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
  return { id, method, params, ...(channel && { 'goog:channel': channel }) };
}

/** What is wrong with the capabilities a client asks for, if anything. */
function unfit({ id, params }: Command): Refusal | undefined {
  const { capabilities } = params;
  const fault = (message: string): Refusal => ({ id, error: 'invalid argument', message });
  if (!isObject(capabilities)) return fault("'capabilities' is not an object.");
  const { alwaysMatch = {}, firstMatch = [{}] } = capabilities;
  if (!isObject(alwaysMatch)) return fault("'capabilities.alwaysMatch' is not an object.");
  if (!Array.isArray(firstMatch) || firstMatch.length === 0 || !firstMatch.every(isObject)) {
    return fault("'capabilities.firstMatch' is not a list of one or more objects.");
  }
  const wanted = firstMatch.map((first) => first['browserName'] ?? alwaysMatch['browserName'] ?? BROWSER_NAMES[0]);
  if (!wanted.every((name) => typeof name === 'string')) return fault("'browserName' is not a string.");
  if (wanted.some((name) => BROWSER_NAMES.includes(name.toLowerCase()))) return undefined;
  const message = `This browser is ${BROWSER_NAMES[0]}, not ${wanted.join(' or ')}.`;
  return { id, error: 'session not created', message };
}

/** The first is what the browser says of itself. */
const BROWSER_NAMES = ['chrome', 'chromium', 'chrome-headless-shell'];

const PLATFORMS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'mac', win32: 'windows' };

/** The mapper leaves the introduction to chromedriver, which is not here. */
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
