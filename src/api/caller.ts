import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import type { Caller, Passenger } from '../lib/caller.ts';

/**
 * `public`: no key. `org`: a key, for the organisation. `project`: a key and the project it works in. `token`: the route
 * checks a signed token of its own (or a key). `node`: only another node, with its credential.
 */
export type Access = 'public' | 'org' | 'project' | 'token' | 'node';

/** What the HTTP server needs from the room that knows keys and projects. */
export interface Gatekeeper {
  /** `from` is the address of the client: an address that sends many unknown keys has to wait. */
  authenticate(key: string, from: string): Promise<Caller>;
  /** The project of a request. `selector` is what its headers name, if anything. */
  resolveProject(caller: Caller, selector: { id?: string; idOrName?: string }): Promise<{ id: string; name: string }>;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access;
  }
  interface FastifyRequest {
    caller: Caller | null;
    project: { id: string; name: string } | null;
    /** Read when the request arrives: a closed socket no longer knows its remote address, and the audit log needs it then. */
    clientIp: string;
    /** The caller, when another node authenticated the request and forwarded it. */
    passenger: Passenger | null;
  }
}

/** Runs before the body is read, so that unauthorised clients cannot upload megabytes. */
export async function admit(request: FastifyRequest, gate: Gatekeeper): Promise<void> {
  const access = accessOf(request);
  if (request.passenger) {
    request.caller = request.passenger.caller;
    request.project = request.passenger.project;
    return;
  }
  if (access === 'node') throw errors.not_found({ detail: 'Nothing is served here for clients. /docs lists what is.' });
  if (access === 'public' || access === 'token') return;
  request.caller = await gate.authenticate(bearer(request), request.clientIp);
  if (access === 'project') request.project = await gate.resolveProject(request.caller, selectorOf(request));
}

/** Authenticates a request outside of the routes: its caller by key, and its project. */
export async function callerByKey(request: IncomingMessage, gate: Gatekeeper) {
  const caller = await gate.authenticate(bearer(request), request.socket.remoteAddress ?? '');
  return { caller, project: await gate.resolveProject(caller, selectorOf(request)) };
}

export const accessOf = (request: FastifyRequest): Access =>
  request.routeOptions.config.access ?? (isReference(request) ? 'public' : 'project');

/** The pages of /docs come from a plugin that cannot declare them public. */
const isReference = ({ routeOptions }: FastifyRequest) => /^\/docs(\/|$)/.test(routeOptions.url ?? '');

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
