import type { IncomingMessage } from 'node:http';
import { bearer, selectorOf, type Gatekeeper } from '../api/caller.ts';
import { errors, ServiceError } from '../errors.ts';
import type { Caller, Passenger } from '../lib/caller.ts';
import type { KeyParameter } from '../lib/key-places.ts';
import type { Log } from '../lib/log.ts';
import type { PoolService } from '../pools/service.ts';
import type { RateLimit } from '../sessions/rate-limit.ts';
import type { Session } from '../sessions/schema.ts';
import type { SessionService } from '../sessions/service.ts';
import type { Arrival, Entrance, Visitor } from '../sessions/sockets.ts';
import { wishOfBrowserless } from './browserless/connect-schema.ts';
import { wishOf, type Wish } from './query-schema.ts';
import { wishOfSteel } from './steel/connect-schema.ts';

/** The entry of the audit log for an accepted or refused client: the path has no query, so it has no key. */
interface Entry {
  caller: Caller;
  projectId: string;
  service: string;
  status: number;
  method: string;
  path: string;
  route: string;
  domain: string;
  durationMs: number;
  clientIp: string;
  userAgent: string;
}

/** An address: the protocol that its clients speak, where they put their key, and how their options are read. */
interface Place {
  protocol: 'cdp' | 'bidi';
  keyIn: readonly KeyParameter[];
  read: (search: URLSearchParams) => Wish;
  /** Distinguishes the place from others at its path. It is sent to another node instead of the key. */
  mark?: string;
}

const connect: Place = { protocol: 'cdp', keyIn: ['key'], read: wishOf };
const browserless: Place = { protocol: 'cdp', keyIn: ['token', 'apiKey'], read: browserlessWish };
const steel: Place = { protocol: 'cdp', keyIn: ['apiKey'], read: wishOfSteel, mark: '&apiKey=' };
const places: Record<string, Place> = {
  '/connect': connect,
  '/connect/bidi': { ...connect, protocol: 'bidi' },
  '/': browserless,
  '/chromium': browserless,
  '/chrome': browserless,
};

/** Two services have their websocket at the root. The name of the key says which one a client means. */
function placeAt(path: string, search: URLSearchParams): Place {
  if (path === '/' && search.has('apiKey') && !search.has('token')) return steel;
  return places[path] ?? connect;
}

/**
 * Websockets without a session: one is made when a client connects, and ends when that client leaves. The client then uses the
 * session's own address (sessions/sockets.ts), with the same rules.
 */
export function doorSockets({
  sessions,
  pools,
  gate,
  limit,
  placeElsewhere,
  record,
  log,
}: {
  sessions: Pick<SessionService, 'create' | 'get' | 'idOf' | 'stop'>;
  pools: Pick<PoolService, 'acquire' | 'release'>;
  gate: Gatekeeper;
  limit: RateLimit;
  /** Another node for a new session; undefined when it is best made here. */
  placeElsewhere: () => string | undefined;
  record: (entry: Entry) => Promise<void>;
  log: Log;
}): Entrance {
  async function arrive(visitor: Visitor, place: Place): Promise<Arrival> {
    const started = performance.now();
    const { request, path, search, clientIp, sentOn, hungUp } = visitor;
    if ([...search.values()].some((value) => value.includes('\0')))
      throw errors.bad_request({ detail: 'The address has a NUL character (%00); no option takes one.' });
    const { caller, project } = sentOn ?? (await authenticate(request, search, clientIp, place));
    if (!caller || !project) throw errors.unauthorized({ detail: 'The request has no key.' });
    const record = (status: number) => note(visitor, { caller, project }, status, performance.now() - started);
    try {
      const options = withoutKey(search, place);
      const wish = await settled(place.read(options), project.id);
      if (wish.kind === 'new' && !sentOn) {
        const elsewhere = placeElsewhere();
        if (elsewhere !== undefined)
          return { url: `${path}?${options.toString()}${place.mark ?? ''}`, elsewhere, passenger: { caller, project } };
      }
      const arrival = await sessionFor(wish, { projectId: project.id, keyId: caller.keyId }, place.protocol, hungUp);
      await record(101);
      return arrival;
    } catch (error) {
      await record(error instanceof ServiceError ? error.status : 500);
      throw error;
    }
  }

  async function authenticate(request: IncomingMessage, search: URLSearchParams, clientIp: string, { keyIn }: Place) {
    const key = keyIn.map((name) => search.get(name)).find((given) => given) ?? bearer(request);
    const caller = await gate.authenticate(key, clientIp);
    const named = search.get('project');
    const selector = named === null ? selectorOf(request) : { idOrName: named };
    return { caller, project: await gate.resolveProject(caller, selector) };
  }

  /** A session that was there once keeps its id: a client that asks for it again gets the answer that it has ended. */
  async function settled(wish: Wish, projectId: string): Promise<Wish> {
    if (wish.kind !== 'session' || !wish.otherwise) return wish;
    const { session, otherwise } = wish;
    const found = await sessions.idOf(projectId, session, true).catch((error: Error) => {
      if (error instanceof ServiceError && error.code === 'session_not_found') return undefined;
      throw error;
    });
    return found === undefined ? otherwise : wish;
  }

  async function sessionFor(
    wish: Wish,
    { projectId, keyId }: { projectId: string; keyId: string },
    protocol: 'cdp' | 'bidi',
    hungUp: AbortSignal,
  ): Promise<Arrival> {
    if (wish.kind === 'session') {
      const url = addressIn(await sessions.get(projectId, keyId, wish.session, false), protocol);
      return { url, left() {} };
    }
    if (wish.kind === 'pool') {
      const turn = await pools.acquire(projectId, keyId, wish.pool, wish.request, hungUp);
      if ('ahead' in turn) throw errors.pool_busy({ pool: wish.pool, ahead: turn.ahead });
      const { session, undelivered } = turn;
      const release = () => pools.release(projectId, session.pool?.id ?? wish.pool, session.session_id, true);
      return {
        url: addressIn(session, protocol),
        left({ connected }) {
          if (!connected) undelivered();
          else if (!wish.keepAlive) quietly(release(), session);
        },
      };
    }
    if (limit) await limit.take();
    const session = await sessions.create(projectId, keyId, wish.request, hungUp).catch(orStopping);
    const end = () => quietly(sessions.stop(session.session_id, 'deleted'), session);
    const late = wish.mostMs && setTimeout(end, wish.mostMs);
    return {
      url: addressIn(session, protocol),
      gone: orStopping,
      left({ connected }) {
        clearTimeout(late);
        if (!connected || !wish.keepAlive) end();
      },
    };
  }

  /** A session or a lease that has ended already is no error. Other errors are logged; the session then ends by its timeout. */
  function quietly(end: Promise<void>, { session_id: session }: Session): void {
    end.catch((error: Error) => {
      const over = error instanceof ServiceError && ['not_leased', 'pool_not_found'].includes(error.code);
      if (!over) log.warn({ session, error: error.message }, 'door.session_not_ended');
    });
  }

  async function note(
    { request, path, clientIp }: Visitor,
    { caller, project }: { caller: Caller; project: NonNullable<Passenger['project']> },
    status: number,
    durationMs: number,
  ): Promise<void> {
    await record({
      caller,
      projectId: project.id,
      service: 'browsers',
      status,
      method: request.method ?? 'GET',
      path,
      route: path,
      domain: request.headers.host ?? '',
      durationMs: Math.round(durationMs),
      clientIp,
      userAgent: request.headers['user-agent'] ?? '',
    });
  }

  return {
    serves: (path) => Object.hasOwn(places, path),
    arrive: (visitor) => arrive(visitor, placeAt(visitor.path, visitor.search)),
  };
}

/** A session that ends while it is made, before any client knows of it, ends with its node. */
function orStopping(error: Error): never {
  if (!(error instanceof ServiceError) || error.code !== 'session_not_found') throw error;
  throw errors.shutting_down(undefined, { headers: { 'Retry-After': '5' } });
}

/** The query of the wishes alone, which may be sent to another node. */
function withoutKey(search: URLSearchParams, { keyIn }: Place): URLSearchParams {
  const rest = new URLSearchParams(search);
  for (const name of [...keyIn, 'project']) rest.delete(name);
  return rest;
}

/** The path and the token of a session's address. The public URL in front of it may have a path of its own. */
function addressIn({ cdp_ws_url, webdriver_ws_url }: Session, protocol: 'cdp' | 'bidi'): string {
  const address = protocol === 'cdp' ? cdp_ws_url : webdriver_ws_url;
  return address.slice(address.lastIndexOf('/browser/'));
}

/** At these addresses `sessionId` names a session that runs already; without it one is made. */
function browserlessWish(search: URLSearchParams): Wish {
  const session = search.get('sessionId');
  if (session !== null && session !== '')
    return wishOf([...search].map(([name, value]) => [name === 'sessionId' ? 'session' : name, value]));
  return { kind: 'new', keepAlive: false, ...wishOfBrowserless(search) };
}
