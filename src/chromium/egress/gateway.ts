import { setMaxListeners } from 'node:events';
import http from 'node:http';
import { Socket, type Server } from 'node:net';
import { CountedResponse } from '../../lib/counted-response.ts';
import { pacedRequests } from '../../lib/paced-requests.ts';
import { silent, type Log } from '../../lib/log.ts';
import { ownEvents, sameOwner } from '../../lib/scope.ts';
import { loopPace, nextTurn } from '../../lib/turns.ts';
import { answers } from './answers.ts';
import type { Destinations, Target } from './destinations.ts';
import { directDial, type Dial } from './dial.ts';
import { findings, type Findings } from './findings.ts';
import { parseAuthority } from './http-words.ts';
import { defaultLimits, type Limits } from './limits.ts';
import { lanes, type Lane, type Route } from './lanes.ts';
import { openingBound } from './opening-bound.ts';
import { plainRequests } from './plain-requests.ts';
import type { Proxy } from './proxy.ts';
import { EgressError } from './refusals.ts';
import { wayDown } from './splice.ts';
import { waysOut } from './ways-out.ts';

/** A session's only way to the network. */
export interface Gateway {
  readonly counters: Counters;
  /** What it knows about destinations, which Chromium cannot know. */
  readonly findings: Findings;
  /**
   * Routes all new traffic through this proxy, or through none. Open tunnels are closed: the next request
   * has to take the new way, and Chromium would send it down an open tunnel. Plain http requests in progress
   * may finish, since no other request can follow on their connections.
   */
  setProxy(proxy: Proxy | undefined): void;
  /**
   * Gives a part of the browser a way out by a proxy of its own: what arrives at the lane's address takes it. Undefined for `direct://`.
   * Throws an `EgressError` if the proxy cannot be named like that, may not be reached, or is one too many.
   */
  openLane(proxyServer: string, bypassList: string | undefined): Lane | undefined;
  /** Destroys every connection at once, and resolves when nothing is open. Closing twice is fine. */
  close(): Promise<void>;
}

interface Counters {
  /** Bytes sent to and received from the network, headers included. */
  readonly up: number;
  readonly down: number;
  /** Connections open right now: from the browser, and to the network. */
  readonly clients: number;
  readonly upstreams: number;
  /** Requests and tunnels that were answered with an error of the gateway. */
  readonly refused: number;
}

export interface GatewayOptions {
  allow: Destinations;
  /** How connections to destinations and proxies are opened. */
  dial?: Dial;
  proxy?: Proxy | undefined;
  log?: Log;
  /** Called for every connection to the network, once it is open. */
  onConnect?: (destination: Target, socket: Socket) => void;
  /** Called for every request that the gateway refused or failed to serve. */
  onRefuse?: (error: EgressError, target: string) => void;
  /** The only address of the service that a session can reach. Without it there is none. */
  ownEndpoint?: OwnEndpoint | undefined;
  limits?: Partial<Limits>;
}

/** Takes tunnels to the service that runs the browser, which are refused as a destination. */
export interface OwnEndpoint {
  /** Whether this is its address, by plain http: within TLS a request could not be judged. */
  isAt(host: string, port: number): boolean;
  /** Takes the connection, with the bytes that were read from it. */
  enter(socket: Socket, head: Buffer): void;
}

/**
 * Runs the egress gateway of a session on a server that already listens, inside the session's network namespace. It is
 * an HTTP/1.1 proxy: CONNECT for https and websockets, absolute-form requests for plain http. Every client
 * is treated as hostile: every destination goes through `allow`, and nothing a client sends decides how its request is
 * framed upstream, since Node's parser reads it and Node's client writes a new one.
 *
 * What its rules refuse is answered with a page that has the reason. For https that is impossible: Chromium
 * discards a proxy's answer to CONNECT, since it does not come from the site, and shows
 * ERR_TUNNEL_CONNECTION_FAILED (a test covers this). Only intercepting TLS with a certificate of the service would change that,
 * which is too high a price for an error page. The same answer is sent anyway, for other clients; the log has the code.
 *
 * There is no error page for an unreachable destination: plain http requests end without an answer, and CONNECT is answered with 502.
 * Chromium has one error for each of the two; the multiplexer replaces it for clients by the error in `findings`.
 */
export function startGateway(server: Server, options: GatewayOptions): Gateway {
  const { allow, log = silent, proxy: firstProxy, onConnect, onRefuse, ownEndpoint } = options;
  const dial = pacedDial(options.dial ?? directDial(), server);
  const limits = { ...defaultLimits, ...options.limits };
  const abort = new AbortController();
  const closing = abort.signal;
  setMaxListeners(0, closing); // one listener for each connection being opened
  const clients = new Set<Socket>();
  const found = findings();
  const opening = openingBound(limits.opening);
  const ways = waysOut({ allow, dial, proxy: firstProxy, limits, onConnect, onReach: found.reached, opening, closing });
  const refused = (error: EgressError, target: string) => {
    found.failed(target, error);
    onRefuse?.(error, target);
  };
  const no = answers({ log, onRefuse: refused, closing });
  const main = { ways, answers: no, plain: plainRequests({ allow, ways, answers: no, limits }) };
  const side = lanes({ allow, dial, limits, onConnect, opening, closing, answers: no.asking });

  const proxy = http.createServer({
    ServerResponse: CountedResponse,
    maxHeaderSize: limits.requestHeaderBytes,
    headersTimeout: limits.headersMs,
    requestTimeout: 0, // an upload may take any time
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: Math.min(limits.headersMs, 5000),
    requireHostHeader: false, // the request target has the destination
    insecureHTTPParser: false,
  });
  proxy.maxHeadersCount = 0; // no header is silently dropped; their size is bounded
  const inTurn = pacedRequests(byItsRoute, () => server); // all connections of a session are one client
  const forward = (request: http.IncomingMessage, response: http.ServerResponse) =>
    inTurn(request, false, ({ plain }) => plain.forward(request, response));
  proxy.on('request', forward);
  proxy.on('checkContinue', forward);
  proxy.on('upgrade', (request, _socket, head) =>
    inTurn(request, false, ({ plain }) => plain.upgrade(request, request.socket, head)),
  );
  proxy.on('connect', (request, _socket, head) =>
    inTurn(request, true, (route) => void tunnel(request, request.socket, head, route)),
  );
  proxy.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // No answer to clients that disconnected, are too slow (or an unused spare connection), or in the middle of an answer.
    const mute = error.code === 'ECONNRESET' || error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
    if (!(socket instanceof Socket) || socket.bytesWritten > 0 || mute) {
      socket.destroy();
      return;
    }
    const why =
      error.code === 'HPE_HEADER_OVERFLOW' ? `Its headers are larger than ${limits.requestHeaderBytes} bytes.` : '';
    no.answerByHand(
      socket,
      new EgressError('bad_request', `The request is not well-formed HTTP/1.1. ${why}`.trim()),
      '',
    );
  });
  // Node checks for slow headers once its server listens. This server never listens: connections are passed to it.
  proxy.emit('listening');
  const onItsBehalf = sameOwner();
  server.on('connection', (socket) => onItsBehalf(() => admit(ownEvents(socket))));
  server.on('error', (error) => log.error({ error }, 'egress.server_failed'));

  function admit(socket: Socket) {
    socket.on('error', ignore);
    if (closing.aborted) {
      socket.destroy();
      return;
    }
    if (!side.admit(socket)) {
      socket.destroy();
      return;
    }
    clients.add(socket);
    socket.once('close', () => clients.delete(socket));
    socket.allowHalfOpen = true; // a client that has ended its side may still read
    socket.setNoDelay(true);
    if (clients.size > limits.clients) {
      const message = `This session has ${limits.clients} connections open, and that is the limit.`;
      no.answerByHand(socket, new EgressError('too_many_connections', message), '');
      socket.destroySoon();
      return;
    }
    proxy.emit('connection', socket);
  }

  /** Requests of a closed lane are not sent. */
  function byItsRoute(request: http.IncomingMessage, connect: boolean, go: (route: Route) => void) {
    const route = side.routeOf(request, connect);
    if (route === 'closed') request.socket.destroy();
    else go(route ?? main);
  }

  async function tunnel(request: http.IncomingMessage, socket: Socket, head: Buffer, { ways, answers: no }: Route) {
    socket.on('error', ignore);
    const target = request.url ?? '';
    const disconnected = new AbortController();
    socket.once('close', () => disconnected.abort());
    const asked = { host: '', port: 0 };
    try {
      const { host, port } = Object.assign(asked, parseAuthority(target));
      const down = wayDown(socket);
      const upstream = await ways.open(host, port, { signal: disconnected.signal, onread: down });
      down.resume = () => upstream.resume();
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      if (down.head) socket.write(down.head);
      if (head.length > 0) upstream.write(head);
      ways.join(socket, upstream);
    } catch (error) {
      const toService = error instanceof EgressError && error.ownService;
      if (!toService || !ownEndpoint?.isAt(asked.host, asked.port) || !socket.writable || closing.aborted)
        return no.answerByHand(socket, error, target);
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      ownEndpoint.enter(socket, head);
    }
  }

  async function close() {
    abort.abort();
    const closed = new Promise((resolve) => server.close(resolve));
    const open = [...clients, ...ways.sockets, ...side.sockets];
    const ended = open.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    proxy.close();
    for (const socket of open) socket.destroy();
    await Promise.all([closed, ...ended]);
  }

  return {
    get counters() {
      const [own, others] = [ways.traffic(), side.traffic()];
      return {
        up: own.up + others.up,
        down: own.down + others.down,
        clients: clients.size,
        upstreams: ways.sockets.size + side.sockets.length,
        refused: no.count,
      };
    },
    findings: found,
    openLane: side.open,
    setProxy(proxy) {
      found.wayChanged();
      ways.set(proxy);
    },
    close,
  };
}

/** Requests arrive together, and a change of the proxy opens all connections again: 500 at once took 0.3 s. */
function pacedDial(dial: Dial, owner: unknown): Dial {
  return async (destination, options) => {
    while (loopPace.isOver()) await nextTurn(owner);
    options.signal.throwIfAborted();
    return dial(destination, options);
  };
}

function ignore() {}
