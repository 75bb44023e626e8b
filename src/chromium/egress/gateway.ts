import { setMaxListeners } from 'node:events';
import http from 'node:http';
import { Socket, type Server } from 'node:net';
import { silent, type Log } from '../../lib/log.ts';
import { answers } from './answers.ts';
import type { Destinations, Target } from './destinations.ts';
import { directDial, type Dial } from './dial.ts';
import { parseAuthority } from './http-words.ts';
import { defaultLimits, type Limits } from './limits.ts';
import { plainRequests } from './plain-requests.ts';
import type { Proxy } from './proxy.ts';
import { EgressError } from './refusals.ts';
import { wayDown } from './splice.ts';
import { waysOut } from './ways-out.ts';

/** A session's only way out. */
export interface Gateway {
  readonly counters: Counters;
  /**
   * Everything leaves by this proxy from now on, or by none. Tunnels that are open are closed: who asks for another way out
   * wants the next request to take it, and Chromium would send that down a tunnel it still has. Requests by plain http that are
   * under way may finish, since nothing else can follow on theirs.
   */
  setProxy(proxy: Proxy | undefined): void;
  /** Destroys every connection at once, and resolves when nothing is open. Closing twice is fine. */
  close(): Promise<void>;
}

export interface Counters {
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
  /** How connections are made, to destinations and to proxies. */
  dial?: Dial;
  proxy?: Proxy | undefined;
  log?: Log;
  /** Told of every connection to the network, once it stands. */
  onConnect?: (destination: Target, socket: Socket) => void;
  /** Told of everything the gateway would not or could not do. */
  onRefuse?: (error: EgressError, target: string) => void;
  limits?: Partial<Limits>;
}

/**
 * Runs the egress gateway of a session on a server that already listens, inside the session's network namespace. It is
 * an HTTP/1.1 proxy: CONNECT for https and websockets, absolute-form requests for plain http. Everything that connects
 * is taken for hostile: every destination goes through `allow`, and nothing a client sends decides how its request is
 * framed on the way out, since Node's parser takes it apart and Node's client writes a new one.
 *
 * What a page can learn: for plain http a refusal is a page that says what and why. For https it cannot be: Chromium
 * throws away whatever a proxy answers to CONNECT, as it comes from someone other than the site, and shows
 * ERR_TUNNEL_CONNECTION_FAILED (a test holds it to that). Only intercepting TLS with a certificate of our own would change that,
 * and that is no trade for an error page. The same answer is sent all the same, for other clients; the log has the code.
 */
export function startGateway(server: Server, options: GatewayOptions): Gateway {
  const { allow, log = silent, dial = directDial(), proxy: firstProxy, onConnect, onRefuse } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const abort = new AbortController();
  const closing = abort.signal;
  setMaxListeners(0, closing); // one for each connection being made
  const clients = new Set<Socket>();
  const ways = waysOut({ allow, dial, proxy: firstProxy, limits, onConnect, closing });
  const no = answers({ log, onRefuse, closing });
  const plain = plainRequests({ allow, ways, answers: no, limits });

  const proxy = http.createServer({
    maxHeaderSize: limits.requestHeaderBytes,
    headersTimeout: limits.headersMs,
    requestTimeout: 0, // an upload takes as long as it takes
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: Math.min(limits.headersMs, 5000),
    requireHostHeader: false, // the request target says where to go
    insecureHTTPParser: false,
  });
  proxy.maxHeadersCount = 0; // none is dropped in silence; their size is bounded
  proxy.on('request', (request, response) => plain.forward(request, response));
  proxy.on('checkContinue', (request, response) => plain.forward(request, response));
  proxy.on('upgrade', (request, _socket, head) => plain.upgrade(request, request.socket, head));
  proxy.on('connect', (request, _socket, head) => void tunnel(request, request.socket, head));
  proxy.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Gone, too slow (or a spare connection that was never used), or in the middle of an answer: there is nothing to say.
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
  // Node watches over slow headers from the moment its server listens. This one never does: its connections are handed to it.
  proxy.emit('listening');
  server.on('connection', admit);
  server.on('error', (error) => log.error({ error }, 'egress.server_failed'));

  function admit(socket: Socket) {
    socket.on('error', ignore);
    if (closing.aborted) {
      socket.destroy();
      return;
    }
    clients.add(socket);
    socket.once('close', () => clients.delete(socket));
    socket.allowHalfOpen = true; // who has sent everything may still listen
    socket.setNoDelay(true);
    if (clients.size > limits.clients) {
      const message = `This session has ${limits.clients} connections open, and that is the limit.`;
      no.answerByHand(socket, new EgressError('too_many_connections', message), '');
      socket.destroySoon();
      return;
    }
    proxy.emit('connection', socket);
  }

  async function tunnel(request: http.IncomingMessage, socket: Socket, head: Buffer) {
    socket.on('error', ignore);
    const target = request.url ?? '';
    const gone = new AbortController();
    socket.once('close', () => gone.abort());
    try {
      const { host, port } = parseAuthority(target);
      const down = wayDown(socket);
      const upstream = await ways.open(host, port, { signal: gone.signal, onread: down });
      down.resume = () => upstream.resume();
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      if (down.head) socket.write(down.head);
      if (head.length > 0) upstream.write(head);
      ways.join(socket, upstream);
    } catch (error) {
      no.answerByHand(socket, error, target);
    }
  }

  async function close() {
    abort.abort();
    const closed = new Promise((resolve) => server.close(resolve));
    const open = [...clients, ...ways.sockets];
    const ended = open.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    proxy.close();
    for (const socket of open) socket.destroy();
    await Promise.all([closed, ...ended]);
  }

  return {
    get counters() {
      return { ...ways.traffic(), clients: clients.size, upstreams: ways.sockets.size, refused: no.count };
    },
    setProxy: ways.set,
    close,
  };
}

function ignore() {}
