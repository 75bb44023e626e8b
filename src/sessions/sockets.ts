import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { declineUpgrade } from '../api/declined-upgrade.ts';
import type { ClientAddress } from '../api/client-address.ts';
import type { Elsewhere } from '../api/elsewhere.ts';
import { attachBidi, type Begun } from '../chromium/bidi/bidi.ts';
import { attachDisplay } from '../chromium/display/display-view.ts';
import { besideDisplay } from '../chromium/pages/beside-display.ts';
import { attachScreencast } from '../chromium/pages/screencast.ts';
import { errors, ServiceError } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import { withoutEnd } from '../lib/text.ts';
import { loopPace, nextTurn } from '../lib/turns.ts';
import { answerHandshake, wantsWebSocket } from '../lib/ws-handshake.ts';
import { newId } from '../lib/ids.ts';
import { nosniff } from '../lib/nosniff.ts';
import { onBehalfOf, ownEvents } from '../lib/scope.ts';
import type { Heartbeat } from '../lib/heartbeat.ts';
import { serveWebSocket, type Upgrade, type WebSocketReceiver, type WebSocketSink } from '../lib/ws-sink.ts';
import type { Addresses, LapseOf, Minter, Purpose } from './addresses.ts';
import type { ClientKind } from './clients.ts';
import type { Hold } from './holds.ts';
import { targetsOf } from './browser/targets.ts';
import { filesForViewer } from './live-view/session-files.ts';
import { attachProcess } from './process/attach.ts';
import type { SessionRef } from './session-lookup.ts';
import type { SessionService } from './service.ts';
import { liveViewHeartbeat } from './live-view/beat.ts';
import { followFrames } from './live-view/follow-frame.ts';
import { openAuthorities } from './authorities.ts';
import { socketPlaces } from './socket-places.ts';
import { ownEndpointOnly, ownEndpoints } from './own-endpoint.ts';
import type { LiveSession } from './live-session.ts';
import type { Whereabouts } from './whereabouts.ts';
import type { Passenger } from '../lib/caller.ts';

/** The websockets of a session, each with the purpose its token must have and what it is attached to. */
interface Endpoint {
  purpose: Purpose;
  kind: ClientKind;
  /** The size limit of one message. */
  maxPayload: number;
  heartbeat?: Heartbeat;
  use: (held: Hold, sink: WebSocketSink, how: How) => WebSocketReceiver;
  /** Refuses before the handshake is answered. */
  check?: (held: Hold) => Promise<void>;
}

/** A client on its way to a session's websocket. */
interface Visit {
  endpoint: Endpoint;
  /** The session, by token or by project and id or name. */
  ref: SessionRef;
  passenger: Pick<Passenger, 'caller' | 'project'>;
  /** The key and the project of the client. The websocket is closed when either ends. */
  minter: Minter;
  watchOnly: boolean;
}

/** Where a websocket comes from: from another node, on behalf of its client; or from inside the session of this id. */
interface Origin {
  sentOn?: Passenger | undefined;
  inside?: string;
  /** Read when the websocket arrives: a closed connection no longer knows it. */
  clientIp: string;
}

interface How {
  /** A BiDi client of a session created by WebDriver's New Session, which therefore sends no `session.new`. */
  begun: Begun | undefined;
  readOnly: boolean;
  /** The code and reason with which the websocket is closed when the browser exits. */
  whenGone: () => { code: number; reason: string };
  /** Where viewers search for words that they type into the address bar; empty for nowhere. */
  searchUrl: string;
  /** Gives the session's viewport the size of the viewer's window. */
  fit: (size: { width: number; height: number }) => void;
  log: Log;
}

/** The other nodes: a websocket may belong to one of them. */
interface Nodes extends Pick<Elsewhere, 'ready' | 'passengerOf'> {
  splice(
    nodeId: string,
    upgrade: { request: IncomingMessage; socket: Duplex; head: Buffer },
    passenger: Passenger,
  ): Promise<void>;
}

/** A client at an address of no session: a session is found or made for it. */
export interface Visitor {
  request: IncomingMessage;
  path: string;
  search: URLSearchParams;
  clientIp: string;
  /** Set when another node has authenticated the client and chosen this one. */
  sentOn: Passenger | undefined;
  /** Aborts when the client disconnects before it is let in. */
  hungUp: AbortSignal;
}

/** The session's own address (path and query), for the connection; or the node that has to let the client in, at `url`. */
export type Arrival =
  | { url: string; left(how: { connected: boolean }): void; gone?: (error: Error) => never }
  | { url: string; elsewhere: string; passenger: Pick<Passenger, 'caller' | 'project'> };

/** The addresses that belong to no session. */
export interface Entrance {
  serves(path: string): boolean;
  arrive(visitor: Visitor): Promise<Arrival>;
}

/** Limit per session. Each websocket may occupy a few hundred kilobytes of the service's memory without sending a request. */
const mostSockets = 100;
/** A BiDi client has a translator in the service's memory, and its commands may have 4 MiB. */
const mostOfKind = { webdriver: 16 };

const MIB = 1024 * 1024;

/** The address that a session may reach from inside. */
const OWN_ENDPOINT = '/browser/cdp';

const endpoints: Record<string, Endpoint> = {
  [OWN_ENDPOINT]: {
    purpose: 'cdp',
    kind: 'cdp',
    maxPayload: 256 * MIB,
    use: ({ engine }, sink) => engine.mux.attach(sink),
  },
  '/browser/webdriver/session': {
    purpose: 'webdriver',
    kind: 'webdriver',
    maxPayload: 256 * MIB,
    use: ({ engine }, sink, { log, begun }) => attachBidi(engine.mux, sink, { log, begun }),
  },
  // Headful: the session's own display. Headless: a screencast of one tab, and the list of tabs.
  '/browser/live/socket': {
    purpose: 'live',
    kind: 'viewer',
    maxPayload: 2 * MIB,
    heartbeat: liveViewHeartbeat,
    use(held, sink, { readOnly, log, whenGone, searchUrl, ...how }) {
      const { browser, mux, casts } = held.engine;
      const files = readOnly ? undefined : filesForViewer(held);
      const fit = readOnly ? undefined : how.fit;
      if (!browser.connectDisplay) return attachScreencast(mux, sink, { readOnly, files, fit, log, searchUrl, casts });
      return besideDisplay(mux, sink, attachDisplay(browser.connectDisplay, sink, { readOnly, whenGone }), {
        files,
        fit,
        log,
      });
    },
  },
};

/** A process of the session, reachable by the session's base_url and by key. */
const terminal = (processId: string): Endpoint => ({
  purpose: 'base',
  kind: 'terminal',
  maxPayload: MIB,
  use: (held, sink, { log }) => attachProcess(held, processId, sink, log),
});
/** The websocket of the browser beside those of its pages. */
const wholeBrowser: Endpoint = { ...endpoints[OWN_ENDPOINT]!, purpose: 'base' };
/** The websocket of a page, or of another target, as Chromium has one for each. */
const pageEndpoint = (targetId: string): Endpoint => ({
  purpose: 'base',
  kind: 'cdp',
  maxPayload: 256 * MIB,
  use: ({ engine }, sink) => engine.mux.attach(sink, targetId),
  async check({ engine }) {
    if (!(await targetsOf(engine)).some((target) => target.targetId === targetId))
      throw errors.not_found({ detail: `No such target id: ${targetId}` });
  },
});
const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const BY_TOKEN = new RegExp(`^/browser/kernel/([^/]+)/process/(${UUID})/attach$`);
const BY_PAGE = /^\/browser\/kernel\/([^/]+)\/devtools\/(page|browser)\/([\w-]{1,128})$/;
/** The CDP address of a WebDriver session, where clients of Selenium expect it. */
const BY_SELENIUM = /^\/session\/[^/]+\/se\/cdp$/;
const BY_KEY = new RegExp(`^/browsers/([^/]+)/process/(${UUID})/attach$`);
const noCaller = { caller: null, project: null };

interface SocketDeps {
  sessions: SessionService;
  addresses: Addresses;
  /** The caller and the project of a request's key. */
  who: (request: IncomingMessage, clientIp: string) => Promise<Pick<Passenger, 'caller' | 'project'>>;
  /** The address of a client, which may be behind a proxy. */
  clientAddress: ClientAddress;
  /** Which of the key and the project is no longer valid; undefined while both are. */
  lapseOf: LapseOf;
  where: Pick<Whereabouts, 'ofSession'>;
  nodes: Nodes;
  entrance: Entrance;
  searchUrl: string;
  log: Log;
}

/**
 * Takes every websocket upgrade of the server. Refusals are answered in HTTP, with the same body as everywhere, before the connection
 * becomes a websocket: clients show that text.
 */
export function serveSessionSockets(
  server: Server,
  { sessions, addresses, who, clientAddress, lapseOf, where, nodes, entrance, searchUrl, log }: SocketDeps,
) {
  const authorities = openAuthorities(lapseOf, log);
  const frames = followFrames(log);
  const places = socketPlaces(mostSockets, mostOfKind);

  async function upgrade(
    { request, socket, head }: Upgrade,
    { requestId, ...origin }: Origin & { requestId: string },
  ): Promise<void> {
    const { sentOn, inside, clientIp } = origin;
    if (loopPace.isOver()) await nextTurn(clientIp); // handshakes of many connections may arrive in one turn
    request.url = addresses.pathAt(request.headers.host, request.url ?? ''); // as HTTP requests are read
    const [path = '', query] = request.url.split('?', 2);
    const search = new URLSearchParams(query);
    refuseHandshake(request);
    const place = withoutEnd(path, '/');
    await nodes.ready();
    const entry = path === '/' ? path : place;
    if (inside === undefined && entrance.serves(entry)) {
      const visitor = { request, path: entry, search, clientIp, sentOn, hungUp: disconnected(socket) };
      return enter({ request, socket, head }, await entrance.arrive(visitor), { requestId, clientIp });
    }
    const visiting = await visitOf({ addresses, who }, request, place, search, origin);
    const { ref, passenger } = visiting;
    const session = await sessions.here(ref);
    if (!session) {
      const owner = sentOn || inside !== undefined ? undefined : await where.ofSession(ref);
      if (owner === undefined) throw errors.session_not_found({ session: 'id' in ref ? ref.id : ref.idOrName });
      return nodes.splice(owner, { request, socket, head }, { requestId, clientIp, ...passenger });
    }
    const arrived = places.take(session, visiting.endpoint.kind);
    try {
      await open({ request, socket, head }, session, visiting, { requestId, inside, search });
    } finally {
      arrived();
    }
  }

  async function open(
    { request, socket, head }: Upgrade,
    session: LiveSession,
    { endpoint, minter, watchOnly }: Visit,
    { requestId, inside, search }: { requestId: string; inside: string | undefined; search: URLSearchParams },
  ): Promise<void> {
    const held = await sessions.hold(session.id); // awake before the handshake is answered
    if (socket.destroyed) return held.release(); // the client disconnected while the browser woke
    try {
      await endpoint.check?.(held);
      if (socket.destroyed) return held.release();
    } catch (error) {
      held.release();
      throw error;
    }
    const readOnly = watchOnly || search.get('readOnly') === 'true';
    const { fit, left } = frames.join(session, {
      change: (size) =>
        sessions.update(minter.projectId, minter.keyId, session.id, { viewport: { ...size, force: true } }),
      isRecorded: () => session.recordings.size > 0,
    });
    socket.once('close', left);
    const how = { begun: begunOf(search), readOnly, whenGone: session.whenGone, searchUrl, fit, log };
    // What runs inside goes to sleep with its session, and must not keep it from ending: only clients outside use it.
    const holding = inside === undefined ? held : undefined;
    const attach = session.attach(holding, (sink) => endpoint.use(held, sink, how), endpoint.kind);
    sessions.workFor(session.id, () =>
      serveWebSocket({ request, socket: ownEvents(socket), head }, authorities.during(minter, attach), {
        maxPayload: endpoint.maxPayload,
        ...(endpoint.heartbeat && { heartbeat: endpoint.heartbeat }),
        group: held.engine.memory,
        requestId,
        failed: (code, reason) => log.info({ requestId, session: session.id, code, reason }, 'socket.closed'),
      }),
    );
    if (inside !== undefined) held.release();
  }

  /** Connects a client to its session. `left` is called once, at any end of the connection. */
  async function enter(
    given: Upgrade,
    arrival: Arrival,
    from: Pick<Passenger, 'requestId' | 'clientIp'>,
  ): Promise<void> {
    const { request, socket } = given;
    request.url = arrival.url;
    if ('elsewhere' in arrival) return nodes.splice(arrival.elsewhere, given, { ...from, ...arrival.passenger });
    const left = leftOnce(arrival);
    socket.once('close', () => left(true));
    try {
      if (socket.destroyed || socket.readableEnded) throw errors.client_hung_up();
      await upgrade(given, from);
    } catch (error) {
      left(false);
      arrival.gone?.(error as Error);
      throw error;
    }
    if (socket.readableEnded) socket.destroy(); // it was not attached yet when the client left
  }

  function take({ request, socket, head }: Upgrade, origin: Origin) {
    // The listener comes first: a client that resets the connection now must not crash the service.
    socket.on('error', () => socket.destroy());
    const requestId = origin.sentOn?.requestId || newId('req_'); // the same on both nodes
    const end = (error: Error) => refuse(socket, error, requestId, log);
    onBehalfOf({ kind: 'request', id: requestId, end }, () =>
      upgrade({ request, socket, head }, { requestId, ...origin }),
    ).catch(end);
  }

  server.on('upgrade', (request, socket, head) => {
    if (!wantsWebSocket(request.headers)) return declineUpgrade(server, request, socket, head);
    const sentOn = nodes.passengerOf(request); // once: it takes the credential away
    take({ request, socket, head }, { sentOn, clientIp: sentOn?.clientIp ?? clientAddress(request) });
  });
  // What claims to come from another node is not believed from inside a session.
  const inner = ownEndpoints(({ sessionId, ...given }) => take(given, { inside: sessionId, clientIp: '' }));

  return {
    recheck: authorities.recheck,
    /** Takes a connection of a session to the service that runs it. */
    fromInside: inner.enter,
    close() {
      inner.close();
      authorities.close();
    },
  };
}

/** The session and the endpoint that an address means, and the authority of its client. */
async function visitOf(
  { addresses, who }: Pick<SocketDeps, 'addresses' | 'who'>,
  request: IncomingMessage,
  path: string,
  search: URLSearchParams,
  { sentOn, inside, clientIp }: Origin,
): Promise<Visit> {
  if (inside !== undefined && path !== OWN_ENDPOINT) throw errors.forbidden({ detail: ownEndpointOnly });
  const byToken = async (endpoint: Endpoint, token: string | undefined): Promise<Visit> => {
    const { sessionId, minter, watchOnly } = await addresses.admit(token, endpoint.purpose);
    if (inside !== undefined && sessionId !== inside) throw errors.forbidden({ detail: ownEndpointOnly });
    return { endpoint, ref: { id: sessionId }, passenger: noCaller, minter, watchOnly };
  };
  const endpoint = endpoints[BY_SELENIUM.test(path) ? OWN_ENDPOINT : path];
  if (endpoint) return byToken(endpoint, search.get('jwt') ?? undefined);
  const [, token, ofToken] = BY_TOKEN.exec(path) ?? [];
  if (token !== undefined && ofToken !== undefined) return byToken(terminal(ofToken), token);
  const [, tokenOfPage, kind, targetId] = BY_PAGE.exec(path) ?? [];
  if (tokenOfPage !== undefined && targetId !== undefined)
    return byToken(kind === 'page' ? pageEndpoint(targetId) : wholeBrowser, tokenOfPage);
  const [, idOrName, ofKey] = BY_KEY.exec(path) ?? [];
  if (idOrName === undefined || ofKey === undefined)
    throw errors.not_found({ detail: `No websocket is served at ${path}.` });
  const { caller, project } = sentOn ?? (await who(request, clientIp));
  if (!caller || !project) throw errors.session_not_found({ session: idOrName });
  return {
    endpoint: terminal(ofKey),
    ref: { projectId: project.id, idOrName: decoded(idOrName) },
    passenger: { caller, project },
    minter: { keyId: caller.keyId, projectId: project.id },
    watchOnly: false,
  };
}

/** A part of a path, as Fastify reads it for other requests. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch (cause) {
    throw errors.bad_request(
      { detail: `The address has the part ${part}, which is not percent-encoded text.` },
      { cause },
    );
  }
}

/** How a session began that New Session of WebDriver made: `prompt.default=ignore` and the like, as its answer's address has it. */
function begunOf(search: URLSearchParams): Begun | undefined {
  if (search.get('session') !== 'begun') return undefined;
  const prompts = [...search].flatMap(([name, value]) =>
    name.startsWith(PROMPT) ? [[name.slice(PROMPT.length), value]] : [],
  );
  return { unhandledPromptBehavior: Object.fromEntries(prompts) };
}
const PROMPT = 'prompt.';

function leftOnce(arrival: { left(how: { connected: boolean }): void }) {
  let called = false;
  return (connected: boolean) => {
    if (!called) arrival.left({ connected });
    called = true;
  };
}

/** Aborts when the client disconnects. A connection that waits for its handshake has nothing to send, so its end is the client's. */
function disconnected(socket: Duplex): AbortSignal {
  const controller = new AbortController();
  const abort = () => controller.abort(errors.client_hung_up());
  if (socket.destroyed || socket.readableEnded) abort();
  else socket.once('end', abort).once('close', abort);
  return controller.signal;
}

/** Answers in HTTP: the connection is no websocket yet. */
function refuse(socket: Duplex, error: Error, requestId: string, log: Log): void {
  const answer = error instanceof ServiceError ? error : errors.internal({ requestId }, { cause: error });
  if (answer.status >= 500) log.error({ requestId, code: answer.code, error }, 'socket.failed');
  else log.info({ requestId, code: answer.code }, 'socket.refused');
  const body = JSON.stringify({ code: answer.code, message: answer.message, request_id: requestId });
  const headers = {
    ...answer.extras.headers,
    ...nosniff,
    'X-Request-Id': requestId,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${answer.status} ${answer.code}\r\n${lines.join('')}\r\n${body}`);
}

/** Before anything is made or woken for a client that cannot be answered. */
function refuseHandshake(request: IncomingMessage): void {
  const handshake = answerHandshake(request);
  if (handshake.accept !== undefined) return;
  const refusal = handshake.status === 426 ? errors.websocket_version : errors.bad_request;
  throw refusal({ detail: handshake.why }, { headers: handshake.headers });
}
