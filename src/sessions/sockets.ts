import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { declineUpgrade } from '../api/declined-upgrade.ts';
import type { Elsewhere, Passenger } from '../api/elsewhere.ts';
import { attachBidi } from '../chromium/bidi.ts';
import { attachDisplay } from '../chromium/display-view.ts';
import type { Engine } from '../chromium/engine.ts';
import { attachScreencast } from '../chromium/screencast.ts';
import { errors, ServiceError } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import { asksForWebSocket, serveWebSocket, type WebSocketReceiver, type WebSocketSink } from '../lib/ws-sink.ts';
import type { Addresses, Purpose } from './addresses.ts';
import type { SessionService } from './service.ts';
import type { Whereabouts } from './whereabouts.ts';

/** The websockets of a session, each with the purpose its token must have and what it is attached to. */
interface Door {
  purpose: Purpose;
  kind: 'client' | 'viewer';
  /** The most that one message may have. */
  maxPayload: number;
  use: (engine: Engine, sink: WebSocketSink, how: How) => WebSocketReceiver;
}

interface How {
  readOnly: boolean;
  /** What it is told when the browser goes. */
  whenGone: () => { code: number; reason: string };
  log: Log;
}

/** What the other nodes are to a websocket: the one it may belong to. */
interface Nodes extends Pick<Elsewhere, 'ready' | 'passengerOf'> {
  splice(
    nodeId: string,
    upgrade: { request: IncomingMessage; socket: Duplex; head: Buffer },
    passenger: Passenger,
  ): Promise<void>;
}

const MIB = 1024 * 1024;

const doors: Record<string, Door> = {
  '/browser/cdp': { purpose: 'cdp', kind: 'client', maxPayload: 256 * MIB, use: ({ mux }, sink) => mux.attach(sink) },
  '/browser/webdriver/session': {
    purpose: 'webdriver',
    kind: 'client',
    maxPayload: 256 * MIB,
    use: ({ mux }, sink, { log }) => attachBidi(mux, sink, { log }),
  },
  // Headful: the session's own display. Headless: a screencast of one tab, and the list of them.
  '/browser/live/socket': {
    purpose: 'live',
    kind: 'viewer',
    maxPayload: 2 * MIB,
    use: ({ browser, mux }, sink, { readOnly, log, whenGone }) =>
      browser.rfbPath === undefined
        ? attachScreencast(mux, sink, { readOnly, log })
        : attachDisplay(browser.rfbPath, sink, { readOnly, whenGone }),
  },
};

/**
 * Takes every websocket upgrade of the server. Who may not come in is answered in HTTP, with the same body as everywhere, before
 * the connection becomes a websocket: clients show that text.
 */
export function serveSessionSockets(
  server: Server,
  {
    sessions,
    addresses,
    where,
    nodes,
    log,
  }: { sessions: SessionService; addresses: Addresses; where: Pick<Whereabouts, 'ofSession'>; nodes: Nodes; log: Log },
) {
  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer) {
    const [path = '', query] = (request.url ?? '').split('?', 2);
    const search = new URLSearchParams(query);
    const door = doors[path.replace(/\/+$/, '')];
    if (!door) throw errors.not_found({ detail: `No websocket is served at ${path}.` });
    if (!asksForWebSocket(request))
      throw errors.bad_request({ detail: 'This is not a websocket handshake (RFC 6455).' });
    const id = addresses.admit(search.get('jwt') ?? undefined, door.purpose);
    const sentOn = nodes.passengerOf(request) !== undefined;
    await nodes.ready();
    const session = sessions.running(id);
    if (!session) {
      const owner = sentOn ? undefined : await where.ofSession({ id });
      if (owner === undefined) throw errors.session_not_found({ session: id });
      const clientIp = request.socket.remoteAddress ?? '';
      return nodes.splice(owner, { request, socket, head }, { requestId: '', clientIp, caller: null, project: null });
    }
    const held = await sessions.hold(id); // awake before the first byte is answered
    if (socket.destroyed) return held.release(); // it left while we woke the browser
    const how = { readOnly: search.get('readOnly') === 'true', whenGone: session.whenGone, log };
    const attach = session.attach(held, (engine, sink) => door.use(engine, sink, how), door.kind);
    serveWebSocket({ request, socket, head }, attach, { maxPayload: door.maxPayload });
  }

  server.on('upgrade', (request, socket, head) => {
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') return declineUpgrade(server, request, socket, head);
    // Attached first: a client that resets the connection now must not take the service with it.
    socket.on('error', () => socket.destroy());
    upgrade(request, socket, head).catch((error: Error) => {
      const answer = error instanceof ServiceError ? error : errors.internal({ requestId: 'none' }, { cause: error });
      if (answer.status >= 500) log.error({ error }, 'socket.failed');
      const body = JSON.stringify({ code: answer.code, message: answer.message });
      socket.end(
        `HTTP/1.1 ${answer.status} ${answer.code}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
      );
    });
  });
}
