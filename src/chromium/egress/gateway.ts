import { setMaxListeners } from 'node:events';
import http from 'node:http';
import { Socket, type Server } from 'node:net';
import { pipeline, type Duplex } from 'node:stream';
import { silent, type Log } from '../../lib/log.ts';
import type { Destinations, Target } from './destinations.ts';
import { directDial, type Dial, type DialOptions, type Reading } from './dial.ts';
import { endToEnd, hasBody, parseAbsolute, parseAuthority, rawHead, refuseTrace } from './http-words.ts';
import { loginRefused } from './proxy-handshake.ts';
import { passOn, plainReader, type PlainReader } from './plain-body.ts';
import { proxyWay, type Proxy, type ProxyWay } from './proxy.ts';
import { EgressError, refusalPage } from './refusals.ts';
import { splice, wayDown } from './splice.ts';

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
  limits?: Partial<typeof defaultLimits>;
}

const defaultLimits = {
  /** Connections from inside the session at a time: many times what Chromium opens to one proxy. */
  clients: 512,
  /** Idle connections kept for plain http, over all origins. */
  idleUpstreams: 64,
  requestHeaderBytes: 64 * 1024,
  /** What Chromium itself would take. */
  responseHeaderBytes: 256 * 1024,
  /** For the headers of a request to arrive, all of them: an idle or dripping client goes. */
  headersMs: 60_000,
  /** Between requests. Longer than Chromium keeps an idle connection, so that it is never we who hang up on a request. */
  keepAliveMs: 330_000,
  /** For a tunnel of which one side has said its last word, without a byte from the other. Whole tunnels have no limit. */
  halfOpenMs: 60_000,
  /** For a proxy to say that a connection through it stands: it has to make one itself. */
  handshakeMs: 30_000,
  /** For a proxy to begin its answer to a plain request once it has all of it. */
  proxyAnswerMs: 120_000,
};

/** The way out: straight, or through a proxy. Its signal ends what is being opened when another takes its place. */
interface Way {
  proxy: ProxyWay | undefined;
  left: AbortController;
  /** Connections for plain http, kept for the next request: to origins, and to the proxy. */
  origins: http.Agent;
  toProxy: { agent: http.Agent; connect: CreateConnection } | undefined;
}

type Created = (error: Error | null, socket: Duplex) => void;
type CreateConnection = (args: http.ClientRequestArgs, created: Created) => undefined;

/** What a request was written for is no longer the way out. It can be written anew. */
class WayLeft extends Error {
  override readonly name = 'WayLeft';
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
  const { allow, log = silent, onConnect, onRefuse } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const closing = new AbortController();
  setMaxListeners(0, closing.signal); // one for each connection being made
  const clients = new Set<Socket>();
  const upstreams = new Set<Socket>();
  const idle = new Set<Socket>(); // those of the upstreams that wait for the next plain request
  const settled = { up: 0, down: 0, refused: 0 };
  const logLine = sparingly(log);
  const dial = options.dial ?? directDial();
  const readers = new WeakMap<Socket, PlainReader>(); // of connections for plain http
  const ways = new WeakMap<Socket, Way>(); // the one each connection took
  const tunnels = new Set<Socket>(); // those of the upstreams that are joined to a client
  let way = newWay(options.proxy);

  // ---- the way in

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
  proxy.on('request', (request, response) => forward(request, response));
  proxy.on('checkContinue', (request, response) => forward(request, response));
  proxy.on('upgrade', (request, _socket, head) => upgrade(request, request.socket, head));
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
    answerByHand(socket, new EgressError('bad_request', `The request is not well-formed HTTP/1.1. ${why}`.trim()), '');
  });
  // Node watches over slow headers from the moment its server listens. This one never does: its connections are handed to it.
  proxy.emit('listening');
  server.on('connection', admit);
  server.on('error', (error) => log.error({ error }, 'egress.server_failed'));

  function admit(socket: Socket) {
    socket.on('error', ignore);
    if (closing.signal.aborted) {
      socket.destroy();
      return;
    }
    clients.add(socket);
    socket.once('close', () => clients.delete(socket));
    socket.allowHalfOpen = true; // who has sent everything may still listen
    socket.setNoDelay(true);
    if (clients.size > limits.clients) {
      const message = `This session has ${limits.clients} connections open, and that is the limit.`;
      answerByHand(socket, new EgressError('too_many_connections', message), '');
      socket.destroySoon();
      return;
    }
    proxy.emit('connection', socket);
  }

  // ---- the way out

  function newWay(proxy: Proxy | undefined): Way {
    const through = proxy && proxyWay(proxy, { allow, dial, handshakeMs: limits.handshakeMs });
    const left = new AbortController();
    setMaxListeners(0, left.signal);
    const connect = through?.forward && openToProxy(through.forward.connect, left.signal);
    return {
      proxy: through,
      left,
      origins: newAgent(openForHttp),
      toProxy: connect && { agent: newAgent(connect), connect },
    };
  }

  /** A connection to where the client asked for, by the way that is now. If that changes meanwhile, by the next one. */
  function open(host: string, port: number, options: DialOptions): Promise<Socket> {
    return byThisWay(options, async ({ proxy }, options) => {
      const target = proxy && allow.checkUnresolved(host, port);
      if (proxy && target && !proxy.bypasses(target.host)) {
        return admitted(await proxy.tunnel(target, options), target);
      }
      const destination = await allow.check(host, port);
      options.signal.throwIfAborted();
      return admitted(await dial(destination, options), destination);
    });
  }

  async function byThisWay(
    options: DialOptions,
    connect: (way: Way, options: DialOptions) => Promise<Socket>,
  ): Promise<Socket> {
    const { signal } = options;
    for (;;) {
      const taken = way;
      const attempt = new AbortController();
      const abort = () => attempt.abort();
      signal.addEventListener('abort', abort, { once: true });
      taken.left.signal.addEventListener('abort', abort, { once: true });
      try {
        signal.throwIfAborted();
        const socket = await connect(taken, { ...options, signal: attempt.signal });
        ways.set(socket, taken);
        if (!attempt.signal.aborted) return socket;
        socket.destroy();
      } catch (error) {
        if (signal.aborted || !attempt.signal.aborted) throw error;
      } finally {
        signal.removeEventListener('abort', abort);
        taken.left.signal.removeEventListener('abort', abort);
      }
      signal.throwIfAborted();
    }
  }

  function admitted(socket: Socket, target: Target): Socket {
    socket.on('error', ignore);
    upstreams.add(socket);
    socket.once('close', () => {
      upstreams.delete(socket);
      tunnels.delete(socket);
      idle.delete(socket);
      settled.up += socket.bytesWritten;
      settled.down += socket.bytesRead;
    });
    onConnect?.(target, socket);
    return socket;
  }

  /** Node's `createConnection`, for plain http. Here the peer's last word is the end, or an idle connection would outlive it. */
  function openForHttp({ host, port }: http.ClientRequestArgs, created: Created): undefined {
    return handOver((onread) => open(host ?? '', Number(port), { signal: closing.signal, onread }), created);
  }

  /**
   * The same, to a proxy, and only to this one: the request carries its password. The request's own target was checked when it
   * came in.
   */
  function openToProxy(connect: (options: DialOptions) => Promise<Socket>, left: AbortSignal): CreateConnection {
    return ({ host, port }, created) => {
      const opened = (onread: Reading) =>
        connect({ signal: left, onread }).then(
          (socket) => {
            if (!left.aborted) return admitted(socket, { host: host ?? '', port: Number(port) });
            socket.destroy();
            throw new WayLeft();
          },
          (error: unknown) => {
            throw left.aborted ? new WayLeft() : error;
          },
        );
      return handOver(opened, created);
    };
  }

  function handOver(opened: (onread: Reading) => Promise<Socket>, created: Created): undefined {
    const reader = plainReader();
    opened(reader)
      .then((socket) => {
        if (reader.spoiled) {
          socket.destroy();
          throw new EgressError('bad_answer', 'The server spoke before it was asked, which is not HTTP.');
        }
        reader.socket = socket;
        readers.set(socket, reader);
        socket.allowHalfOpen = false;
        return created(null, socket);
      })
      .catch((error: Error) => created(error, new Socket())); // the type wants a socket; nobody looks at it
  }

  /** Keeps connections for plain http for the next request to the same place, until there is another way out. */
  function newAgent(createConnection: CreateConnection): http.Agent {
    const agent = new (class extends http.Agent {
      override createConnection = createConnection;

      override keepSocketAlive(socket: Socket) {
        const current = agent === way.origins || agent === way.toProxy?.agent;
        if (idle.size >= limits.idleUpstreams || !current || closing.signal.aborted) return false;
        const kept: unknown = super.keepSocketAlive(socket); // a boolean, whatever its type says
        if (kept) idle.add(socket);
        return kept;
      }

      override reuseSocket(socket: Socket, request: http.ClientRequest) {
        super.reuseSocket(socket, request);
        idle.delete(socket);
      }
    })({ keepAlive: true, maxFreeSockets: limits.idleUpstreams, timeout: 30_000 }); // of idleness, or less if the server says so
    return agent;
  }

  // ---- the three things a client can ask for

  async function tunnel(request: http.IncomingMessage, socket: Socket, head: Buffer) {
    socket.on('error', ignore);
    const target = request.url ?? '';
    const gone = new AbortController();
    socket.once('close', () => gone.abort());
    try {
      const { host, port } = parseAuthority(target);
      const down = wayDown(socket);
      const upstream = await open(host, port, { signal: gone.signal, onread: down });
      down.resume = () => upstream.resume();
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      if (down.head) socket.write(down.head);
      if (head.length > 0) upstream.write(head);
      join(socket, upstream);
    } catch (error) {
      answerByHand(socket, error, target);
    }
  }

  /** A tunnel stands from here on, and ends with the way out that it took. */
  function join(client: Socket, upstream: Socket) {
    tunnels.add(upstream);
    if (ways.get(upstream) !== way) upstream.destroy(); // left in the very moment
    splice(client, upstream, limits.halfOpenMs);
  }

  function forward(request: http.IncomingMessage, response: http.ServerResponse, retried = false): void {
    const target = request.url ?? '';
    let outgoing: http.ClientRequest;
    let late: NodeJS.Timeout | undefined;
    let toProxy = false;
    try {
      const asked = outgoingRequest(request, target, { fresh: retried });
      toProxy = asked.toProxy;
      outgoing = http.request(asked);
    } catch (error) {
      return answer(request, response, error, target);
    }
    const hangUp = () => outgoing.destroy();
    const fail = (error: unknown): void => {
      clearTimeout(late);
      response.off('close', hangUp);
      if (error instanceof WayLeft && !hasBody(request) && !response.destroyed) return forward(request, response);
      // A kept connection may have been closed by the other side just now. Without a body, asking again is safe.
      if (outgoing.reusedSocket && !retried && !response.destroyed && isHangUp(error))
        return forward(request, response, true);
      answer(request, response, outgoingError(error), target);
    };
    response.once('close', hangUp);
    if (toProxy) {
      outgoing.once('finish', () => {
        const message = `The proxy did not answer within ${limits.proxyAnswerMs / 1000} s.`;
        late = setTimeout(() => outgoing.destroy(new EgressError('proxy_timeout', message)), limits.proxyAnswerMs);
      });
      outgoing.once('close', () => clearTimeout(late));
    }
    outgoing.once('continue', () => response.writeContinue());
    outgoing.once('response', (incoming): void => {
      clearTimeout(late);
      outgoing.off('error', fail).on('error', ignore);
      try {
        if (toProxy && incoming.statusCode === 407) throw loginRefused(rawHead(incoming, incoming.rawHeaders));
        if (incoming.statusCode! < 200) throw new Error('nobody asked to switch protocols');
        response.sendDate = false;
        response.writeHead(incoming.statusCode!, incoming.statusMessage, endToEnd(incoming.rawHeaders));
      } catch (error) {
        outgoing.destroy();
        return answer(request, response, outgoingError(error), target);
      }
      passOn(incoming, response, readers.get(incoming.socket));
    });
    outgoing.once('error', fail);
    outgoing.once('upgrade', (incoming) => {
      incoming.socket.destroy();
      fail(new Error('nobody asked to switch protocols'));
    });
    if (request.headers.expect) outgoing.flushHeaders();
    request.pipe(outgoing);
  }

  /** A websocket over plain http without a tunnel. Chromium uses CONNECT for those; other clients may not. */
  function upgrade(request: http.IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', ignore);
    const target = request.url ?? '';
    let outgoing: http.ClientRequest;
    try {
      if (hasBody(request)) throw new EgressError('bad_request', 'A request to upgrade the connection has no body.');
      const { headers, ...rest } = outgoingRequest(request, target, { fresh: true, tunnel: true });
      headers.push('Connection', 'Upgrade', 'Upgrade', request.headers.upgrade ?? '');
      outgoing = http.request({ ...rest, headers });
    } catch (error) {
      return answerByHand(socket, error, target);
    }
    socket.once('close', () => outgoing.destroy());
    outgoing.on('error', (error) => answerByHand(socket, outgoingError(error), target));
    outgoing.once('upgrade', (incoming, _socket, upstreamHead) => {
      const upstream = incoming.socket;
      socket.write(rawHead(incoming, incoming.rawHeaders), 'latin1');
      if (upstreamHead.length > 0) socket.write(upstreamHead);
      if (head.length > 0) upstream.write(head);
      join(socket, upstream);
    });
    outgoing.once('response', (incoming) => {
      // Not switched: an ordinary answer, and its end is the end of the connection.
      socket.write(rawHead(incoming, [...endToEnd(incoming.rawHeaders), 'Connection', 'close']), 'latin1');
      pipeline(incoming, socket, () => leave(socket));
    });
    outgoing.end();
  }

  /**
   * The request as it goes out: the target's host, the end-to-end headers, and framing that is ours alone. To the server
   * itself; or, where there is an http proxy, in absolute form to that.
   */
  function outgoingRequest(
    request: http.IncomingMessage,
    asked: string,
    { fresh, tunnel = false }: { fresh: boolean; tunnel?: boolean },
  ) {
    refuseTrace(request.method);
    const { host, port, authority, path } = parseAbsolute(asked);
    const { proxy, origins, toProxy } = way;
    const target = proxy && allow.checkUnresolved(host, port);
    const via = !tunnel && target && !proxy.bypasses(target.host) ? proxy.forward : undefined;
    const headers = ['Host', authority, ...endToEnd(request.rawHeaders, ['host', 'content-length'])];
    const length = request.headers['content-length'];
    if (request.headers['transfer-encoding'] !== undefined) headers.push('Transfer-Encoding', 'chunked');
    else if (length !== undefined) headers.push('Content-Length', length);
    if (via) headers.push(...via.headers);
    const [agent, createConnection] = via && toProxy ? [toProxy.agent, toProxy.connect] : [origins, openForHttp];
    return {
      toProxy: via !== undefined,
      // All that goes to the proxy is one place to the agent.
      ...(via ? { host: 'proxy', port: 0, path: `http://${authority}${path}` } : { host, port, path }),
      method: request.method,
      headers,
      setHost: false,
      maxHeaderSize: limits.responseHeaderBytes,
      // A body cannot be sent twice, so it never goes over a kept connection that may be closing.
      ...(fresh || hasBody(request) ? { createConnection } : { agent }),
    };
  }

  // ---- saying no

  function answer(request: http.IncomingMessage, response: http.ServerResponse, thrown: unknown, target: string): void {
    const error = refused(thrown, target);
    if (!error || response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    const { headers, body } = refusalPage(error);
    // Whoever was told to expect a word before sending the body will not send it: the next request starts elsewhere.
    if (request.headers.expect) response.shouldKeepAlive = false;
    response.writeHead(error.status, headers).end(request.method === 'HEAD' ? undefined : body);
  }

  function answerByHand(socket: Socket, thrown: unknown, target: string): void {
    const error = refused(thrown, target);
    if (!error || !socket.writable) {
      socket.destroy();
      return;
    }
    const { headers, body } = refusalPage(error);
    const lines = Object.entries({ ...headers, Connection: 'close' }).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`HTTP/1.1 ${error.status} ${http.STATUS_CODES[error.status]}\r\n${lines.join('')}\r\n`);
    socket.end(body);
    leave(socket);
  }

  /** Undefined when nobody is left to be told. */
  function refused(thrown: unknown, target: string): EgressError | undefined {
    if (closing.signal.aborted || (thrown instanceof Error && thrown.name === 'AbortError')) return undefined;
    const error =
      thrown instanceof EgressError
        ? thrown
        : new EgressError('bad_request', 'This request cannot be passed on.', { cause: thrown });
    settled.refused += 1;
    logLine(
      { code: error.code, target: target.slice(0, 200), reason: error.message, ...error.facts },
      'egress.refused',
    );
    onRefuse?.(error, target);
    return error;
  }

  async function close() {
    closing.abort();
    way.left.abort();
    const closed = new Promise((resolve) => server.close(resolve));
    const open = [...clients, ...upstreams];
    const ended = open.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    proxy.close();
    for (const socket of open) socket.destroy();
    await Promise.all([closed, ...ended]);
  }

  return {
    get counters() {
      let { up, down } = settled;
      for (const socket of upstreams) {
        up += socket.bytesWritten;
        down += socket.bytesRead;
      }
      return { up, down, clients: clients.size, upstreams: upstreams.size, refused: settled.refused };
    },
    setProxy(proxy) {
      const before = way;
      way = newWay(proxy);
      before.left.abort();
      for (const agent of [before.origins, before.toProxy?.agent]) {
        for (const free of Object.values(agent?.freeSockets ?? {})) for (const socket of free ?? []) socket.destroy();
      }
      for (const upstream of tunnels) upstream.destroy();
    },
    close,
  };
}

function isHangUp(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ECONNRESET' || code === 'EPIPE';
}

function outgoingError(error: unknown): unknown {
  if (error instanceof EgressError || (error instanceof Error && error.name === 'AbortError')) return error;
  if (error instanceof WayLeft)
    return new EgressError('proxy_unreachable', 'The proxy was swapped while this was under way. Ask again.');
  if (isHangUp(error))
    return new EgressError('connect_failed', 'The server closed the connection without an answer.', { cause: error });
  return new EgressError('bad_answer', 'The server answered with something that is not HTTP/1.1.', { cause: error });
}

/** After the last word to a client: takes what it still sends, so that our answer is not lost to a reset, but not for long. */
function leave(socket: Socket) {
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), 5000);
  socket.once('close', () => clearTimeout(timer));
}

/** Twenty lines in ten seconds, then one that says how many were left out: a page must not fill the disk with its refusals. */
function sparingly(log: Log): Log['info'] {
  let since = 0;
  let lines = 0;
  return (facts, event) => {
    const now = Date.now();
    const skipped = Math.max(0, lines - 20);
    if (now - since > 10_000) [since, lines] = [now, 0];
    lines += 1;
    if (lines <= 20) log.info(lines === 1 && skipped > 0 ? { ...facts, skipped } : facts, event);
  };
}

function ignore() {}
