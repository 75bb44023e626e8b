import type http from 'node:http';
import type { Socket } from 'node:net';
import type { Answers } from './answers.ts';
import type { Destinations } from './destinations.ts';
import { parseAbsolute, parseAuthority } from './http-words.ts';
import { basicLogin, bypassRules, namedProxy, type Asked } from './named-proxy.ts';
import { plainRequests } from './plain-requests.ts';
import type { Proxy } from './proxy.ts';
import { EgressError } from './refusals.ts';
import { waysOut, type WaysOut, type WaysOutOptions } from './ways-out.ts';

/** How a request leaves, and how it is answered when it cannot. */
export interface Route {
  readonly ways: WaysOut;
  readonly plain: ReturnType<typeof plainRequests>;
  readonly answers: Answers;
}

/** A way out for a part of the browser, by a proxy of its own. */
export interface Lane {
  /** The address at which the gateway listens for it, on the gateway's port. */
  readonly address: string;
  /** Ends its connections. Nothing that still arrives at its address is let out. Closing twice is fine. */
  close(): void;
}

interface Lanes {
  /** Undefined for `direct://`. Throws an `EgressError` if the proxy cannot be named like that, may not be reached, or is one too many. */
  open(proxyServer: string, bypassList: string | undefined): Lane | undefined;
  /** Takes in a connection. False if it arrived at the address of no lane. */
  admit(socket: Socket): boolean;
  /** The route of a request on a connection that was taken in; undefined for the session's own. */
  routeOf(request: http.IncomingMessage, connect: boolean): Route | 'closed' | undefined;
  readonly sockets: Socket[];
  traffic(): { up: number; down: number };
}

interface LanesOptions extends Omit<WaysOutOptions, 'proxy' | 'onReach'> {
  allow: Destinations;
  /** These ask the client for the login of a proxy. */
  answers: Answers;
}

/** Contexts of one browser that have a proxy of their own, at the same time. */
const MOST_LANES = 256;
const MAIN = '127.0.0.1';

/**
 * Gives parts of the browser ways out of their own. All arrive at the gateway's one listening socket: the network namespace has a loopback
 * of its own, so each lane has an address there, and the address at which a connection arrives says which lane it takes. No address is
 * used twice, so a connection that outlives its lane gets into no other. A port for each lane would need a process in the namespace each time.
 */
export function lanes({ allow, answers, limits, closing, ...options }: LanesOptions): Lanes {
  const open = new Map<
    string,
    { route: Route; clients: Set<Socket>; takes(request: http.IncomingMessage, connect: boolean): boolean }
  >();
  const byClient = new WeakMap<Socket, string>();
  const past = { up: 0, down: 0 };
  const ending = new Set<WaysOut>();
  let opened = 0;

  function openLane(proxyServer: string, bypassList: string | undefined): Lane | undefined {
    const named = namedProxy(proxyServer);
    if (!named) return undefined;
    const bypasses = bypassRules(bypassList);
    if (open.size >= MOST_LANES) {
      throw new EgressError(
        'too_many_connections',
        `This browser has ${MOST_LANES} contexts with a proxy of their own, and that is the limit.`,
      );
    }
    allow.checkUnresolved(named.host.includes(':') ? `[${named.host}]` : named.host, named.port);
    let proxy: Proxy = { ...named, bypassHosts: [] };
    const ended = new AbortController();
    const end = () => ended.abort();
    closing.addEventListener('abort', end, { once: true });
    const ways = waysOut({ ...options, allow, limits, proxy, closing: ended.signal });
    const route = { ways, answers, plain: plainRequests({ allow, ways, answers, limits }) };
    const clients = new Set<Socket>();
    opened += 1;
    const address = `127.${1 + (opened >> 16)}.${(opened >> 8) & 255}.${opened & 255}`;

    open.set(address, {
      route,
      clients,
      takes(request, connect) {
        const login = basicLogin(request.headers['proxy-authorization']);
        if (login && (login.username !== proxy.login?.username || login.password !== proxy.login.password)) {
          proxy = { ...proxy, login };
          ways.set(proxy);
        }
        const asked = askedBy(request, connect);
        return !asked || !bypasses(asked);
      },
    });

    return {
      address,
      close() {
        if (!open.delete(address)) return;
        closing.removeEventListener('abort', end);
        ended.abort();
        ending.add(ways);
        for (const socket of [...clients, ...ways.sockets]) socket.destroy();
        // Sockets count sent bytes until they are closed.
        const settled = [...ways.sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve)));
        void Promise.all(settled).then(() => {
          const { up, down } = ways.traffic();
          past.up += up;
          past.down += down;
          ending.delete(ways);
        });
      },
    };
  }

  const all = () => [...[...open.values()].map(({ route }) => route.ways), ...ending];

  return {
    open: openLane,

    admit(socket) {
      const address = socket.localAddress?.replace(/^::ffff:/, '');
      if (address === MAIN) return true;
      const lane = address !== undefined && open.get(address);
      if (!lane) return false;
      byClient.set(socket, address);
      lane.clients.add(socket);
      socket.once('close', () => lane.clients.delete(socket));
      return true;
    },

    routeOf(request, connect) {
      const address = byClient.get(request.socket);
      if (address === undefined) return undefined;
      const lane = open.get(address);
      if (!lane) return 'closed';
      return lane.takes(request, connect) ? lane.route : undefined;
    },

    get sockets() {
      return all().flatMap((ways) => [...ways.sockets]);
    },

    traffic() {
      return all().reduce(
        (sum, ways) => {
          const { up, down } = ways.traffic();
          return { up: sum.up + up, down: sum.down + down };
        },
        { ...past },
      );
    },
  };
}

/** Undefined if the request has no valid target; it is refused later, with the reason. */
function askedBy({ url = '' }: http.IncomingMessage, connect: boolean): Asked | undefined {
  try {
    return connect ? { scheme: 'https', ...parseAuthority(url) } : { scheme: 'http', ...parseAbsolute(url) };
  } catch {
    return undefined;
  }
}
