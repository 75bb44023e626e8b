import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import type { Caller, Invitee, Passenger } from '../lib/caller.ts';
import type { KeyHeader, KeyParameter } from '../lib/key-places.ts';

/**
 * `public`: no key. `org`: a key, for the organisation. `project`: a key and the project it works in. `token`: the route
 * checks a signed token of its own (or a key). `session`: the token of a session's `base_url`, which represents the key it was created with.
 * `node`: only another node, with its credential.
 */
export type Access = 'public' | 'org' | 'project' | 'token' | 'session' | 'node';

/** The part of the room for keys and projects that the HTTP server needs. */
export interface Gatekeeper {
  /** `from` is the address of the client: an address that sends many unknown keys has to wait. */
  authenticate(key: string, from: string): Promise<Caller>;
  /** The project of a request. `selector` has the values of its headers, if any. */
  resolveProject(caller: Caller, selector: { id?: string; idOrName?: string }): Promise<{ id: string; name: string }>;
}

/** The part of the room that invites people without a key that the HTTP server needs. */
export interface Invitations {
  /** Whether this is a token of that room rather than a key. */
  isOne(given: string): boolean;
  /** Refuses a token that is not for the resource of the path. */
  admit(token: string, params: Record<string, string>): Promise<Invitee>;
}

/** The part of the room for addresses of sessions that the HTTP server needs. */
export interface SessionTokens {
  admit(
    token: string,
    purpose: 'base' | 'webdriver',
  ): Promise<{ sessionId: string; minter: { keyId: string; projectId: string } }>;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access;
    /**
     * Whether the key of a deployment may call the route. An app works with the resources of its project, so it may call routes with
     * access `project` and not those with access `org`, unless a route overrides it.
     */
    apps?: boolean;
    /** Where clients of other services send their key, the header first; the Authorization header is accepted too. */
    keyIn?: { query?: KeyParameter; header?: KeyHeader };
    /**
     * The route also admits invitees, by their token. It answers pages of any origin: it goes by the Authorization header, which
     * no page can make a browser send for it.
     */
    invitees?: boolean;
    /**
     * For clients of WebDriver: the key may be the password of HTTP Basic, as in `http://corral:KEY@host`. Without a header the body of a
     * `new` session has it, and the route authenticates; the id of that session (`ID.TOKEN`) then has a token for its commands.
     */
    webdriver?: 'new' | 'command';
    /** What a client does in a page, hundreds of times in a session, is not in the audit log; what begins and ends the session is. */
    unaudited?: boolean;
  }
  interface FastifyRequest {
    caller: Caller | null;
    project: { id: string; name: string } | null;
    /** Set instead of the caller when an invitee sent the request. */
    invitee: Invitee | null;
    /** Read when the request arrives: a closed socket no longer knows its remote address, and the audit log needs it then. */
    clientIp: string;
    /** The caller, when another node authenticated the request and forwarded it. */
    passenger: Passenger | null;
  }
}

/** Runs before the body is read, so that unauthorised clients cannot upload megabytes. */
export async function admit(
  request: FastifyRequest,
  gate: Gatekeeper,
  { invitations, sessionTokens }: { invitations?: Invitations | undefined; sessionTokens?: SessionTokens | undefined },
): Promise<void> {
  const access = accessOf(request);
  // Before the passenger: only the session's own node knows whether its token is still good.
  if (access === 'session') return admitToSession(request, gate, sessionTokens);
  const { webdriver } = request.routeOptions.config;
  if (webdriver === 'command' && isWithToken(request)) return admitDriver(request, gate, sessionTokens);
  if (request.passenger) {
    request.caller = request.passenger.caller;
    request.project = request.passenger.project;
    return;
  }
  if (access === 'node')
    throw errors.not_found({ detail: 'Nothing is served here for clients. /docs lists the paths.' });
  if (access === 'public' || access === 'token') return;
  if (webdriver === 'new' && request.headers.authorization === undefined) return;
  const given = webdriver === undefined ? keyOf(request) : (basic(request) ?? bearer(request));
  if (request.routeOptions.config.invitees && invitations?.isOne(given)) {
    request.invitee = await invitations.admit(given, request.params as Record<string, string>);
    const { keyId, projectId } = request.invitee;
    request.project = await gate.resolveProject({ keyId, keyName: '', projectId }, {});
    return;
  }
  request.caller = await gate.authenticate(given, request.clientIp);
  const { apps = access === 'project' } = request.routeOptions.config;
  if (request.caller.deployed && !apps)
    throw errors.forbidden({
      detail:
        'The key of a deployment gives access to browsers and stored data of its project. Keys, projects, limits, providers, deployments and the audit log need another key.',
    });
  if (access === 'project') request.project = await gate.resolveProject(request.caller, selectorOf(request));
}

async function admitToSession(request: FastifyRequest, gate: Gatekeeper, sessionTokens: SessionTokens | undefined) {
  const params = request.params as Record<string, string>;
  if (!sessionTokens) throw errors.unauthorized({ detail: 'Sessions have no addresses of their own here.' });
  const { sessionId, minter } = await sessionTokens.admit(params['token'] ?? '', 'base');
  request.caller = { ...minter, keyName: '' };
  request.project = await gate.resolveProject(request.caller, {});
  params[request.routeOptions.config.sessionParam ?? ''] = sessionId;
}

const isWithToken = ({ params }: FastifyRequest) => (params as { id?: string }).id?.includes('.') === true;

/** The token of a WebDriver session's id, which is for that session and no other. */
async function admitDriver(request: FastifyRequest, gate: Gatekeeper, sessionTokens: SessionTokens | undefined) {
  const params = request.params as { id: string };
  const at = params.id.indexOf('.');
  if (!sessionTokens) throw errors.session_not_found({ session: params.id.slice(0, at) });
  const { sessionId, minter } = await sessionTokens.admit(params.id.slice(at + 1), 'webdriver');
  if (sessionId !== params.id.slice(0, at)) throw errors.forbidden({ detail: 'This token is for another session.' });
  request.caller = { ...minter, keyName: '' };
  request.project = await gate.resolveProject(request.caller, {});
  params.id = sessionId;
}

/** The key in a header of HTTP Basic: its password, or its user where that is all. */
function basic({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  const [, given] = /^Basic +([\w+/=-]+) *$/i.exec(headers.authorization ?? '') ?? [];
  if (given === undefined) return undefined;
  const text = Buffer.from(given, 'base64').toString();
  const at = text.indexOf(':');
  return text.slice(at + 1) || text.slice(0, at);
}

/** Authenticates a request outside of the routes: its caller by key, and its project. */
export async function callerByKey(request: IncomingMessage, clientIp: string, gate: Gatekeeper) {
  const caller = await gate.authenticate(bearer(request), clientIp);
  return { caller, project: await gate.resolveProject(caller, selectorOf(request)) };
}

export const accessOf = (request: FastifyRequest): Access =>
  request.routeOptions.config.access ?? (isReference(request) ? 'public' : 'project');

/** The pages of /docs come from a plugin that cannot declare them public. */
const isReference = ({ routeOptions }: FastifyRequest) => /^\/docs(\/|$)/.test(routeOptions.url ?? '');

function keyOf(request: FastifyRequest): string {
  const { header = '', query = '' } = request.routeOptions.config.keyIn ?? {};
  const given = [request.headers[header], (request.query as Record<string, unknown>)[query]];
  return given.find((one): one is string => typeof one === 'string' && one !== '') ?? bearer(request);
}

export function bearer(request: Pick<FastifyRequest, 'headers'>): string {
  const header = request.headers.authorization;
  if (header === undefined) {
    throw errors.unauthorized({ detail: 'The request has no key. Send it as "Authorization: Bearer <key>".' });
  }
  const key = /^Bearer +(\S+) *$/i.exec(header)?.[1];
  if (!key) throw errors.unauthorized({ detail: 'The Authorization header must read "Bearer <key>".' });
  return key;
}

export function selectorOf({ headers }: Pick<FastifyRequest, 'headers'>): { id?: string; idOrName?: string } {
  const id = headers['x-kernel-project-id'];
  const idOrName = headers['x-kernel-project'];
  return {
    ...(typeof id === 'string' && id !== '' ? { id } : {}),
    ...(typeof idOrName === 'string' && idOrName !== '' ? { idOrName } : {}),
  };
}

/** For handlers of routes that need a key: the hook has already set the caller. */
export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller)
    throw new Error(`${request.routeOptions.url} has no caller: its access is not 'org' or 'project'.`);
  return request.caller;
}

export function projectOf(request: FastifyRequest): { id: string; name: string } {
  if (!request.project) throw new Error(`${request.routeOptions.url} has no project: its access is not 'project'.`);
  return request.project;
}
