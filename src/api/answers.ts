import type { RouteOptions } from 'fastify';
import type { ErrorCode } from '../errors.ts';
import type { Access } from './caller.ts';
import { refusals, refusedWith } from './schema.ts';

const anyRoute: ErrorCode[] = ['bad_request', 'internal'];
const anyKey: ErrorCode[] = ['unauthorized', 'forbidden', 'too_many_bad_keys', 'store_unavailable'];

/** Refusals by the hooks before the route's handler runs, by the route's access rule. */
const byAccess: Record<Access, ErrorCode[]> = {
  public: [],
  org: anyKey,
  project: [...anyKey, 'project_not_found'],
  token: ['unauthorized', 'forbidden', 'store_unavailable'],
  node: [],
};

/** Refusals while a body of this type is read. */
const byBody: Record<string, ErrorCode[]> = {
  'application/json': ['invalid_input', 'payload_too_large', 'unsupported_media_type', 'body_timeout'],
  'multipart/form-data': ['invalid_input', 'unsupported_media_type', 'body_timeout'],
  'application/octet-stream': ['body_timeout'],
};

type Described = Pick<RouteOptions, 'config' | 'schema'>;

/** Every code that a route refuses with: by its access rule, by the body it reads, and by its own list. */
export function codesOf({ config, schema }: Described): ErrorCode[] {
  const body = schema?.body as { content?: object } | undefined;
  const bodyTypes = body ? Object.keys(body.content ?? { 'application/json': {} }) : [];
  const query: ErrorCode[] = schema?.querystring ? ['invalid_input'] : [];
  return [
    ...refusedWith(schema?.response),
    ...byAccess[config?.access ?? 'project'],
    ...bodyTypes.flatMap((type) => byBody[type] ?? []),
    ...query,
    ...anyRoute,
  ];
}

/** All responses of a route for the reference: its own, and every refusal by its code. */
export function answersOf(route: Described): Record<string, unknown> {
  const own = (route.schema?.response ?? {}) as Record<string, object>;
  const described = Object.entries<object>({ ...refusals(...codesOf(route)) });
  // A refusal with a shape of its own keeps that shape. A refusal without a code (of /ready) stays unchanged.
  return { ...own, ...Object.fromEntries(described.map(([status, answer]) => [status, keeping(own[status], answer)])) };
}

const keeping = (own: object | undefined, described: object) =>
  own && 'content' in own ? { ...described, content: own.content } : (own ?? described);
