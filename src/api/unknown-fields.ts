import type { FastifyReply, FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import { nearest } from '../lib/nearest.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Fields of the body that the route does not have. */
    ignored: readonly string[] | null;
  }
}

/** More of them are not listed: a body may have thousands. */
const most = 20;
/** Names of one object that are looked at. */
const mostNames = 1000;

/**
 * Fields that a route does not have are ignored, as clients of newer versions expect. They are reported in a header and
 * in the answer's `warnings`, since a misspelt field changes the result. `Prefer: handling=strict` (RFC 7240) refuses them.
 */
export function lookForUnknownFields(request: FastifyRequest, reply: FastifyReply): void {
  const unknown = unknownFields(request.body, request.routeOptions.schema?.body);
  if (prefersStrict(request)) {
    void reply.header('Preference-Applied', 'handling=strict');
    if (unknown.length > 0) throw errors.invalid_input({ detail: unknown.map(({ sentence }) => sentence).join(' ') });
  }
  if (unknown.length === 0) return;
  request.ignored = unknown.map(({ sentence }) => sentence.replace('here', 'here and was ignored'));
  void reply.header('X-Ignored-Fields', unknown.map(({ field }) => field).join(', '));
}

/** Adds `warnings` to an answer that is one JSON object. */
export function withWarnings(request: FastifyRequest, reply: FastifyReply, payload: unknown): unknown {
  if (!request.ignored || reply.statusCode >= 400 || typeof payload !== 'string') return payload;
  if (!String(reply.getHeader('content-type')).startsWith('application/json') || !/^\{".*\}$/s.test(payload))
    return payload;
  return `${payload.slice(0, -1)},"warnings":${JSON.stringify(request.ignored)}}`;
}

function prefersStrict({ headers: { prefer } }: FastifyRequest): boolean {
  return [prefer ?? []].flat().some((value) => /(^|[,;])\s*handling\s*=\s*"?strict"?\s*($|[,;])/i.test(value));
}

interface Shape {
  properties?: Record<string, Shape>;
  additionalProperties?: unknown;
}

/** The fields of a value that its shape does not have, each with a sentence. */
export function unknownFields(value: unknown, shape: unknown, path = ''): { field: string; sentence: string }[] {
  const { properties, additionalProperties = false } = (shape ?? {}) as Shape;
  // Without a list of its properties, a shape is a map or a union of shapes: any name may be right.
  if (!properties || additionalProperties || typeof value !== 'object' || value === null || Array.isArray(value))
    return [];
  const found = [];
  for (const name of Object.keys(value).slice(0, mostNames)) {
    const inner = (value as Record<string, unknown>)[name];
    if (found.length >= most) break;
    if (Object.hasOwn(properties, name)) found.push(...unknownFields(inner, properties[name], `${path}${name}.`));
    else if (/^[\w.-]{1,64}$/.test(name)) {
      const meant = nearest(name, Object.keys(properties));
      const hint = meant === undefined ? '' : ` Did you mean ${path}${meant}?`;
      found.push({ field: path + name, sentence: `${path}${name} is not a field here.${hint}` });
    }
  }
  return found.slice(0, most);
}
