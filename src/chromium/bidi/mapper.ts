import {
  BidiServer,
  EventEmitter,
  type BidiTransport,
  type CdpClient,
} from 'chromium-bidi/out/Default/gen/src/bidiMapper/BidiMapper.js';
import type { CdpEvents } from 'chromium-bidi/out/Default/gen/src/cdp/CdpClient.js';
import type { Log } from '../../lib/log.ts';
import { integer, object, optional, record, text, type Checked } from '../../lib/shape.ts';
import { LARGE, MOST_PARSED, readMessage } from '../cdp/large-messages.ts';
import { ANSWER, answerId, byteLength, eventIn } from '../cdp/message.ts';
import { replaceOddIds, withFewHeaders } from './bounds.ts';
import { MapperCdpError, MapperCloseError } from './fault.ts';
import { Holdings, type ClientCommand } from './holdings.ts';
import { boundInput } from './input-bounds.ts';
import { parseAddressesOnce } from './intercepts.ts';
import { noteListener, removeListenersOfFrames } from './listeners.ts';
import { parseNoLongHosts } from './long-hosts.ts';
import { isLogEvent, withNotes } from './log-entries.ts';
import { shortenOldNavigations } from './navigations.ts';
import { parseParams } from './params.ts';
import { OTHER_ERROR, PendingCommands, type CdpAnswer } from './pending-commands.ts';
import { addScriptsInPieces } from './preload-scripts.ts';
import { forgetHandlesAtOnce } from './realms.ts';
import { boundRequests } from './requests.ts';
import { Misfit } from './schema.ts';
import { boundSettings } from './settings.ts';

// Loading this file loads the mapper: 85 ms and 13 MB. bidi.ts does it with the first BiDi session.

/** One BiDi session: BiDi on one side, CDP on the other. */
export interface Mapper {
  /** Await it before the first command. Never settles if the mapper is closed first. */
  start(): Promise<void>;
  fromClient(command: ClientCommand): void;
  /** One CDP message, in pieces. An answer that is too large to be translated fails its command; such an event is left out. */
  fromBrowser(pieces: readonly Buffer[]): void;
  /** From here on nothing is sent, and pending CDP commands never settle: the mapper is left to the garbage collector. */
  close(): void;
}

interface MapperPorts {
  /** The message may have a `LargeText`. */
  toClient(message: object): void;
  toBrowser(message: Buffer): void;
  log: Log;
}

const word = text(10_000);
/** A message of the browser, as far as it is read here. The mapper reads the rest. */
const isIncoming = object({
  id: optional(integer(0, Number.MAX_SAFE_INTEGER)),
  method: optional(word),
  params: optional(record),
  result: optional(record),
  error: optional(object({ code: integer(-(2 ** 31), 2 ** 31), message: text(1_000_000) })),
  sessionId: optional(word),
});
const isAttachment = object({
  sessionId: word,
  targetInfo: object({ targetId: word, browserContextId: optional(word) }),
});
const MOST_SESSIONS = 20_000;
/** No browser has as many contexts at once. */
const MOST_CONTEXTS = 1000;
const LONGEST_ID = 128;

addScriptsInPieces();
boundInput();
boundRequests();
boundSettings();
forgetHandlesAtOnce();
parseAddressesOnce();
parseNoLongHosts();
removeListenersOfFrames();
shortenOldNavigations();

/** The params are parsed before the mapper gets them: its own parser takes exponential time. */
const NO_PARSER = undefined;

type TargetInfo = Checked<typeof isAttachment>['targetInfo'];

type Send = (client: CdpSession, method: string, params: object | undefined) => Promise<never>;

/**
 * Commands that the mapper sends from an event listener without awaiting them. Such a command may fail with no harm (the tab is closed,
 * another client closed the dialog first), but the unhandled rejection would end the service.
 */
const UNATTENDED = new Set([
  'Target.setAutoAttach',
  'Fetch.continueRequest',
  'Fetch.continueResponse',
  'Fetch.continueWithAuth',
  'Page.handleJavaScriptDialog',
  'BluetoothEmulation.simulateGATTOperationResponse',
]);

export function openMapper({ toClient, toBrowser, log }: MapperPorts): Mapper {
  const pending = new PendingCommands();
  const sessions = new Map<string, CdpSession>();
  const browser = new CdpSession(undefined, undefined, send);
  const transport = new Transport(deliver);
  const holdings = new Holdings();
  /** Contexts for which the mapper has enabled download events; '' is the default context. */
  const downloads = new Set<string>();
  let defaultContext: string | undefined;
  let server: BidiServer | undefined;
  /** The method of the event that the mapper handles. */
  let dispatching: string | undefined;
  let closed = false;

  function deliver(message: object): void {
    const { id, result } = message as { id?: unknown; result?: unknown };
    if (typeof id === 'number') holdings.answered(id, record(result) ? result : undefined);
    toClient(message);
  }

  function send(client: CdpSession, method: string, params: object = {}): Promise<never> {
    return new Promise((resolve, reject) => {
      if (closed) return;
      if (method === 'Browser.setDownloadBehavior') {
        // At its start the mapper resets the browser's download behaviour, for all clients, to get the events. Each page reports them as well:
        // see `dispatch`.
        if (!server) return resolve({} as never);
        noteDownloads((params as { browserContextId?: unknown }).browserContextId ?? '');
      }
      if (method === 'Browser.getWindowForTarget') {
        // Chromium 156 crashes if it gets this on the browser's session for a tab that is closing (a null window in the headless shell). On the
        // tab's own session the command can only fail.
        const { targetId } = params as { targetId?: string };
        if (client === browser) client = sessionOf(targetId) ?? client;
        if (client === browser) return reject(new MapperCdpError('No target with given id found', OTHER_ERROR));
        params = {};
      }
      const mayFail = dispatching !== undefined && UNATTENDED.has(method);
      const id = pending.add({ client, method, resolve, reject, mayFail, isLog: isLogEvent(dispatching) });
      toBrowser(Buffer.from(JSON.stringify({ id, method, params, sessionId: client.sessionId })));
    });
  }

  /** A client may name any context: the oldest are dropped. */
  function noteDownloads(context: unknown): void {
    if (typeof context !== 'string' || context.length > LONGEST_ID) return;
    downloads.add(context);
    for (const oldest of downloads) if (downloads.size > MOST_CONTEXTS) downloads.delete(oldest);
  }

  function note({ result }: CdpAnswer): void {
    if (typeof result?.['defaultBrowserContextId'] === 'string') defaultContext = result['defaultBrowserContextId'];
  }

  function dispatch(method: string, params: Record<string, unknown>, sessionId: string | undefined): void {
    if (method.startsWith('Network.') || method.startsWith('Fetch.')) params = withFewHeaders(params);
    if (method === 'Target.attachedToTarget') {
      if (!isAttachment(params) || sessions.size >= MOST_SESSIONS) return;
      const { sessionId, targetInfo } = params;
      sessions.set(sessionId, new CdpSession(sessionId, targetInfo, send));
    }
    const client = sessionId === undefined ? browser : sessions.get(sessionId);
    if (!client) return;
    const detached = method === 'Target.detachedFromTarget' && sessions.get(String(params['sessionId']));
    // Otherwise commands that wait for a page's first script context would wait for ever: the mapper forgets them with the page.
    if (detached) emit(detached, 'Runtime.executionContextsCleared', {});
    emit(client, method, params);
    if (detached) forget(detached);
    if (method === 'Page.downloadWillBegin' && !hasDownloads(client))
      emit(browser, 'Browser.downloadWillBegin', params);
    if (method === 'Page.downloadProgress' && !hasDownloads(client)) emit(browser, 'Browser.downloadProgress', params);
  }

  function sessionOf(targetId: string | undefined): CdpSession | undefined {
    for (const client of sessions.values()) if (client.target?.targetId === targetId) return client;
  }

  function hasDownloads({ target }: CdpSession): boolean {
    const { browserContextId = '' } = target ?? {};
    return downloads.has(browserContextId) || (browserContextId === defaultContext && downloads.has(''));
  }

  function emit(client: CdpSession, method: string, params: Record<string, unknown>): void {
    dispatching = method;
    try {
      client.emit(method as keyof CdpEvents, params);
    } catch (error) {
      log.debug({ error, method }, 'bidi.listener_failed');
    } finally {
      dispatching = undefined;
    }
  }

  function forget(detached: CdpSession): void {
    sessions.delete(detached.sessionId!);
    detached.removeAllListeners();
    void pending.forget(detached);
  }

  return {
    async start() {
      const connection = {
        getCdpClient(sessionId: string): CdpClient {
          const client = sessions.get(sessionId);
          if (!client) throw new MapperCloseError(`No CDP session has the id ${sessionId}.`);
          return client;
        },
      };
      const logger = (type: string) =>
        type === 'debug:error' ? (...words: unknown[]) => log.debug({ words }, 'bidi.mapper_error') : undefined;
      // There is no mapper tab, so no target is the mapper's own.
      server = await BidiServer.createAndStart(transport, connection, browser, '', NO_PARSER, logger);
    },

    fromClient(command) {
      const params = parseParams(command.method, command.params);
      if (params instanceof Misfit)
        return toClient(refusal(command, 'invalid argument', params.message(command.method)));
      replaceOddIds(params);
      const reason = holdings.refusal({ ...command, params });
      if (reason === undefined) transport.receive({ ...command, params });
      else toClient(refusal(command, 'unknown error', reason));
    },

    fromBrowser(pieces) {
      const [head] = pieces;
      if (closed || !head) return;
      if (head.toString('latin1', 0, ANSWER.length) === ANSWER)
        return pending.answer(answerId(head).id, pieces, isIncoming, note);
      const isLog = isLogEvent(eventIn(head));
      const bytes = byteLength(pieces);
      const { message } = readMessage(pieces, undefined, isLog ? LARGE : MOST_PARSED) ?? {};
      if (!message) return log.debug({ event: eventIn(head), bytes }, 'bidi.event_left_out');
      if (!isIncoming(message) || message.method === undefined) return;
      const { method, params = {}, sessionId } = message;
      const cut = isLog && bytes > LARGE ? bytes : undefined;
      dispatch(method, isLogEvent(method) ? withNotes(params, cut) : params, sessionId);
    },

    close() {
      closed = true;
      server?.close();
      transport.close();
      pending.clear();
      sessions.clear();
      browser.removeAllListeners();
    },
  };
}

function refusal({ id, 'goog:channel': channel }: ClientCommand, error: string, message: string): object {
  return { type: 'error', id, error, message, ...(channel !== undefined && { 'goog:channel': channel }) };
}

/** A CDP session as the mapper needs it: the browser's own has no id. */
class CdpSession extends EventEmitter<CdpEvents> implements CdpClient {
  readonly sessionId: string | undefined;
  readonly target: TargetInfo | undefined;
  readonly #send: Send;

  constructor(sessionId: string | undefined, target: TargetInfo | undefined, send: Send) {
    super();
    this.sessionId = sessionId;
    this.target = target;
    this.#send = send;
  }

  override on(event: never, handler: never): this {
    noteListener(() => this.off(event, handler));
    return super.on(event, handler);
  }

  sendCommand(method: string, params?: object): Promise<never> {
    return this.#send(this, method, params);
  }

  isCloseError(error: unknown): boolean {
    return error instanceof MapperCloseError;
  }
}

class Transport implements BidiTransport {
  sendMessage: (message: object) => void;
  receive: (command: object) => void = () => {};

  constructor(toClient: (message: object) => void) {
    this.sendMessage = toClient;
  }

  setOnMessage(handler: Parameters<BidiTransport['setOnMessage']>[0]): void {
    this.receive = (command) => void handler(command as Parameters<typeof handler>[0]);
  }

  close(): void {
    this.sendMessage = () => {};
    this.receive = () => {};
  }
}
