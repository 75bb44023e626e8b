import { setMaxListeners } from 'node:events';
import type http from 'node:http';
import type { Socket } from 'node:net';
import { nextTurn } from '../../lib/turns.ts';
import type { Destinations, Target } from './destinations.ts';
import type { Dial, DialOptions, Reading } from './dial.ts';
import type { Limits } from './limits.ts';
import type { Opening } from './opening-bound.ts';
import type { PlainReader } from './plain-body.ts';
import { plainConnections, type CreateConnection } from './plain-connections.ts';
import { proxyWay, type Proxy, type ProxyWay } from './proxy.ts';
import { splice } from './splice.ts';

/** A way out: direct, or through a proxy. Its signal aborts connections being opened when another way replaces it. */
interface Way {
  readonly proxy: ProxyWay | undefined;
  readonly left: AbortController;
  /** Kept-alive connections for plain http: to origins, and to the proxy. */
  readonly origins: Connections;
  readonly toProxy: Connections | undefined;
}

/** How Node's HTTP client gets a connection: a kept one from the agent, or a new one. */
interface Connections {
  readonly agent: http.Agent;
  readonly createConnection: CreateConnection;
}

/** The way out that a request was written for has been replaced. The request can be written again for the new one. */
export class WayLeft extends Error {
  override readonly name = 'WayLeft';
}

/** Connections to the network by the current way out. */
export interface WaysOut {
  /** The way that new requests take. */
  readonly current: Way;
  /** Opens a connection to the client's target. If the way out changes before it is open, the new one is used. */
  open(host: string, port: number, options: DialOptions): Promise<Socket>;
  /** Joins a client to an upstream. The tunnel ends when its way out is replaced. */
  join(client: Socket, upstream: Socket): void;
  /** The reader of a connection for plain http. */
  readerOf(socket: Socket): PlainReader | undefined;
  /** Routes all new traffic through this proxy, or through none. Open tunnels are closed. */
  set(proxy: Proxy | undefined): void;
  readonly sockets: ReadonlySet<Socket>;
  /** Bytes sent to and received from the network so far. */
  traffic(): { up: number; down: number };
}

export interface WaysOutOptions {
  allow: Destinations;
  dial: Dial;
  proxy: Proxy | undefined;
  limits: Limits;
  onConnect: ((destination: Target, socket: Socket) => void) | undefined;
  /** Called for every connection to a client's target, with the host as the client wrote it; without a socket if a proxy made the connection. */
  onReach?: ((host: string, port: number, socket: Socket | undefined) => void) | undefined;
  opening: Opening;
  /** Aborted when the gateway closes. */
  closing: AbortSignal;
}

export function waysOut({ allow, dial, proxy, limits, onConnect, onReach, opening, closing }: WaysOutOptions): WaysOut {
  const upstreams = new Set<Socket>();
  const tunnels = new Set<Socket>(); // the upstreams that are joined to a client
  const ways = new WeakMap<Socket, Way>(); // the way of each connection
  const settled = { up: 0, down: 0 };
  const plain = plainConnections({ mostIdle: limits.idleUpstreams });
  let current = newWay(proxy);
  closing.addEventListener('abort', () => current.left.abort(), { once: true });

  function newWay(proxy: Proxy | undefined): Way {
    const through = proxy && proxyWay(proxy, { allow, dial, handshakeMs: limits.handshakeMs });
    const left = new AbortController();
    setMaxListeners(0, left.signal);
    return {
      proxy: through,
      left,
      origins: connections(openForHttp),
      toProxy: through?.forward && connections(openToProxy(through.forward.connect, left.signal)),
    };
  }

  function connections(createConnection: CreateConnection): Connections {
    const isCurrent = (agent: http.Agent) =>
      !closing.aborted && (agent === current.origins.agent || agent === current.toProxy?.agent);
    return { createConnection, agent: plain.agent(createConnection, isCurrent) };
  }

  function open(host: string, port: number, options: DialOptions): Promise<Socket> {
    const byWay = async ({ proxy }: Way, options: DialOptions) => {
      const target = proxy && allow.checkUnresolved(host, port);
      if (proxy && target && !proxy.bypasses(target.host)) {
        const socket = admitted(await proxy.tunnel(target, options), target);
        onReach?.(host, port, undefined);
        return socket;
      }
      const destination = await allow.check(host, port);
      options.signal.throwIfAborted();
      const socket = admitted(await dial(destination, options), destination);
      onReach?.(host, port, socket);
      return socket;
    };
    return opening(() => byThisWay(options, byWay));
  }

  async function byThisWay(
    options: DialOptions,
    connect: (way: Way, options: DialOptions) => Promise<Socket>,
  ): Promise<Socket> {
    const { signal } = options;
    for (;;) {
      signal.throwIfAborted();
      closing.throwIfAborted(); // the proxy was not replaced, so there is no other to try
      const taken = current;
      const attempt = new AbortController();
      const abort = () => attempt.abort();
      signal.addEventListener('abort', abort, { once: true });
      taken.left.signal.addEventListener('abort', abort, { once: true });
      try {
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
      await nextTurn(upstreams); // a change of the proxy opens all of them again
    }
  }

  function admitted(socket: Socket, target: Target): Socket {
    socket.on('error', () => {});
    upstreams.add(socket);
    socket.once('close', () => {
      upstreams.delete(socket);
      tunnels.delete(socket);
      settled.up += socket.bytesWritten;
      settled.down += socket.bytesRead;
    });
    onConnect?.(target, socket);
    return socket;
  }

  function openForHttp({ host, port }: http.ClientRequestArgs, created: Parameters<CreateConnection>[1]): undefined {
    return plain.handOver((onread) => open(host ?? '', Number(port), { signal: closing, onread }), created);
  }

  /**
   * The same for a proxy, and only for this one: the request carries its password. The request's own target was checked when it
   * arrived.
   */
  function openToProxy(connect: (options: DialOptions) => Promise<Socket>, left: AbortSignal): CreateConnection {
    // A request that is written again when the gateway closes would meet the same way, and be written again, for ever.
    const noMore = () => (closing.aborted ? closing.reason : new WayLeft());
    return ({ host, port }, created) => {
      const opened = (onread: Reading) =>
        opening(() => connect({ signal: left, onread })).then(
          (socket) => {
            if (!left.aborted) return admitted(socket, { host: host ?? '', port: Number(port) });
            socket.destroy();
            throw noMore();
          },
          (error: unknown) => {
            throw left.aborted ? noMore() : error;
          },
        );
      return plain.handOver(opened, created);
    };
  }

  return {
    get current() {
      return current;
    },
    open,
    readerOf: plain.readerOf,
    sockets: upstreams,

    join(client, upstream) {
      tunnels.add(upstream);
      if (ways.get(upstream) !== current) upstream.destroy(); // the way was replaced just now
      splice(client, upstream, limits.halfOpenMs);
    },

    set(proxy) {
      const before = current;
      current = newWay(proxy);
      before.left.abort();
      for (const kept of [before.origins, before.toProxy]) {
        for (const free of Object.values(kept?.agent.freeSockets ?? {})) {
          for (const socket of free ?? []) socket.destroy();
        }
      }
      for (const upstream of tunnels) upstream.destroy();
    },

    traffic() {
      let { up, down } = settled;
      for (const socket of upstreams) {
        up += socket.bytesWritten;
        down += socket.bytesRead;
      }
      return { up, down };
    },
  };
}
