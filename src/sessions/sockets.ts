import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { declineUpgrade } from '../api/declined-upgrade.ts';
import type { Elsewhere } from '../api/elsewhere.ts';
import { attachBidi } from '../chromium/bidi/bidi.ts';
import { attachDisplay } from '../chromium/display/display-view.ts';
import { attachScreencast } from '../chromium/pages/screencast.ts';
import { errors, ServiceError } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import { answerHandshake, wantsWebSocket } from '../lib/ws-handshake.ts';
import { newId } from '../lib/ids.ts';
import { serveWebSocket, type Upgrade, type WebSocketReceiver, type WebSocketSink } from '../lib/ws-sink.ts';
import type { Addresses, LapseOf, Minter, Purpose } from './addresses.ts';
import type { ClientKind } from './clients.ts';
import type { Hold } from './holds.ts';
import { attachProcess } from './process/attach.ts';
import type { SessionRef } from './finding.ts';
import type { SessionService } from './service.ts';
import { openAuthorities } from './authorities.ts';
import type { Whereabouts } from './whereabouts.ts';
import type { Passenger } from '../lib/caller.ts';

/** The websockets of a session, each with the purpose its token must have and what it is attached to. */
interface Door {
  purpose: Purpose;
  kind: ClientKind;
  /** The size limit of one message. */
  maxPayload: number;
  use: (held: Hold, sink: WebSocketSink, how: How) => WebSocketReceiver;
}

/** A client on its way to a session's websocket. */
interface Visit {
  door: Door;
  /** The session, by token or by project and id or name. */
  ref: SessionRef;
  passenger: Pick<Passenger, 'caller' | 'project'>;
  /** The key and the project of the client. The websocket is closed when either ends. */
  minter: Minter;
  watchOnly: boolean;
}

interface How {
  readOnly: boolean;
  /** The code and reason with which the websocket is closed when the browser exits. */
  whenGone: () => { code: number; reason: string };
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

/** Limit per session. Each websocket may occupy a few hundred kilobytes of the service's memory without sending a request. */
const mostSockets = 100;

const MIB = 1024 * 1024;

const doors: Record<string, Door> = {
  '/browser/cdp': {
    purpose: 'cdp',
    kind: 'cdp',
    maxPayload: 256 * MIB,
    use: ({ engine }, sink) => engine.mux.attach(sink),
  },
  '/browser/webdriver/session': {
    purpose: 'webdriver',
    kind: 'client',
    maxPayload: 256 * MIB,
    use: ({ engine }, sink, { log }) => attachBidi(engine.mux, sink, { log }),
  },
  // Headful: the session's own display. Headless: a screencast of one tab, and the list of tabs.
  '/browser/live/socket': {
    purpose: 'live',
    kind: 'viewer',
    maxPayload: 2 * MIB,
    use: ({ engine: { browser, mux } }, sink, { readOnly, log, whenGone }) =>
      browser.connectDisplay
        ? attachDisplay(browser.connectDisplay, sink, { readOnly, whenGone })
        : attachScreencast(mux, sink, { readOnly, log, refreshRate: browser.refreshRate }),
  },
};

/** A process of the session, reachable by the session's base_url and by key. */
const terminal = (processId: string): Door => ({
  purpose: 'base',
  kind: 'client',
  maxPayload: MIB,
  use: (held, sink, { log }) => attachProcess(held, processId, sink, log),
});
const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const BY_TOKEN = new RegExp(`^/browser/kernel/([^/]+)/process/(${UUID})/attach$`);
const BY_KEY = new RegExp(`^/browsers/([^/]+)/process/(${UUID})/attach$`);
const noCaller = { caller: null, project: null };

/**
 * Takes every websocket upgrade of the server. Refusals are answered in HTTP, with the same body as everywhere, before the connection
 * becomes a websocket: clients show that text.
 */
export function serveSessionSockets(
  server: Server,
  {
    sessions,
    addresses,
    who,
    lapseOf,
    where,
    nodes,
    log,
  }: {
    sessions: SessionService;
    addresses: Addresses;
    /** The caller and the project that a request's key stands for. */
    who: (request: IncomingMessage) => Promise<Pick<Passenger, 'caller' | 'project'>>;
    /** Which of the key and the project is no longer valid; undefined while both are. */
    lapseOf: LapseOf;
    where: Pick<Whereabouts, 'ofSession'>;
    nodes: Nodes;
    log: Log;
  },
) {
  const authorities = openAuthorities(lapseOf, log);

  async function visit(
    request: IncomingMessage,
    path: string,
    search: URLSearchParams,
    sentOn: Passenger | undefined,
  ): Promise<Visit> {
    const byToken = async (door: Door, token: string | undefined): Promise<Visit> => {
      const { sessionId, minter, watchOnly } = await addresses.admit(token, door.purpose);
      return { door, ref: { id: sessionId }, passenger: noCaller, minter, watchOnly };
    };
    const door = doors[path];
    if (door) return byToken(door, search.get('jwt') ?? undefined);
    const [, token, ofToken] = BY_TOKEN.exec(path) ?? [];
    if (token !== undefined && ofToken !== undefined) return byToken(terminal(ofToken), token);
    const [, idOrName, ofKey] = BY_KEY.exec(path) ?? [];
    if (idOrName === undefined || ofKey === undefined)
      throw errors.not_found({ detail: `No websocket is served at ${path}.` });
    const { caller, project } = sentOn ?? (await who(request));
    if (!caller || !project) throw errors.session_not_found({ session: idOrName });
    return {
      door: terminal(ofKey),
      ref: { projectId: project.id, idOrName: decodeURIComponent(idOrName) },
      passenger: { caller, project },
      minter: { keyId: caller.keyId, projectId: project.id },
      watchOnly: false,
    };
  }

  async function upgrade(
    { request, socket, head }: Upgrade,
    { requestId, sentOn }: { requestId: string; sentOn: Passenger | undefined },
  ) {
    const [path = '', query] = (request.url ?? '').split('?', 2);
    const search = new URLSearchParams(query);
    const handshake = answerHandshake(request);
    if (handshake.accept === undefined) {
      const refusal = handshake.status === 426 ? errors.websocket_version : errors.bad_request;
      throw refusal({ detail: handshake.why }, { headers: handshake.headers });
    }
    const { door, ref, passenger, minter, watchOnly } = await visit(request, path.replace(/\/+$/, ''), search, sentOn);
    await nodes.ready();
    const session = await sessions.here(ref);
    if (!session) {
      const owner = sentOn ? undefined : await where.ofSession(ref);
      if (owner === undefined) throw errors.session_not_found({ session: 'id' in ref ? ref.id : ref.idOrName });
      const clientIp = request.socket.remoteAddress ?? '';
      return nodes.splice(owner, { request, socket, head }, { requestId, clientIp, ...passenger });
    }
    const held = await sessions.hold(session.id); // awake before the handshake is answered
    if (socket.destroyed) return held.release(); // the client disconnected while the browser woke
    if (session.clientCount >= mostSockets) {
      held.release();
      throw errors.too_many_connections({ most: mostSockets });
    }
    const readOnly = watchOnly || search.get('readOnly') === 'true';
    const how = { readOnly, whenGone: session.whenGone, log };
    const attach = session.attach(held, (sink) => door.use(held, sink, how), door.kind);
    serveWebSocket({ request, socket, head }, authorities.during(minter, attach), {
      maxPayload: door.maxPayload,
      group: held.engine.memory,
      requestId,
      failed: (code, reason) => log.info({ requestId, session: session.id, code, reason }, 'socket.closed'),
    });
  }

  server.on('upgrade', (request, socket, head) => {
    if (!wantsWebSocket(request.headers)) return declineUpgrade(server, request, socket, head);
    // The listener comes first: a client that resets the connection now must not crash the service.
    socket.on('error', () => socket.destroy());
    const sentOn = nodes.passengerOf(request); // once: it takes the credential away
    const requestId = sentOn?.requestId || newId('req_'); // the same on both nodes
    upgrade({ request, socket, head }, { requestId, sentOn }).catch((error: Error) => {
      const answer = error instanceof ServiceError ? error : errors.internal({ requestId }, { cause: error });
      if (answer.status >= 500) log.error({ requestId, code: answer.code, error }, 'socket.failed');
      else log.info({ requestId, code: answer.code }, 'socket.refused');
      const body = JSON.stringify({ code: answer.code, message: answer.message, request_id: requestId });
      const headers = {
        ...answer.extras.headers,
        'X-Request-Id': requestId,
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(body),
        Connection: 'close',
      };
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.end(`HTTP/1.1 ${answer.status} ${answer.code}\r\n${lines.join('')}\r\n${body}`);
    });
  });

  return authorities;
}
