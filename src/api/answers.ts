import type { RouteOptions } from 'fastify';
import type { ErrorCode } from '../errors.ts';
import type { Access } from './caller.ts';
import { mayBeElsewhere } from '../lib/forwarded-routes.ts';
import { refusals, refusedWith } from './schema.ts';

const anyRoute: ErrorCode[] = ['bad_request', 'internal'];
const anyKey: ErrorCode[] = ['unauthorized', 'forbidden', 'too_many_bad_keys', 'store_unavailable'];

/** Refusals by the hooks before the route's handler runs, by the route's access rule. */
const byAccess: Record<Access, ErrorCode[]> = {
  public: [],
  org: anyKey,
  project: [...anyKey, 'project_not_found'],
  token: ['unauthorized', 'forbidden', 'store_unavailable'],
  session: ['unauthorized', 'forbidden', 'store_unavailable', 'project_not_found'],
  node: [],
};

/** Refusals while a body of this type is read. */
const byBody: Record<string, ErrorCode[]> = {
  'application/json': ['invalid_input', 'payload_too_large', 'unsupported_media_type', 'body_timeout'],
  'multipart/form-data': ['invalid_input', 'unsupported_media_type', 'body_timeout'],
  'application/octet-stream': ['body_timeout'],
};

/** Refusals of a request that another node may have to answer. */
const whenForwarded: ErrorCode[] = ['node_unreachable', 'store_unavailable'];

/** Refusals that no client reads, and those of bodies, which a client may also send where the reference has none. */
const unnamed = new Set<ErrorCode>(['client_hung_up', 'body_timeout', 'payload_too_large', 'unsupported_media_type']);

type Described = Partial<Pick<RouteOptions, 'config' | 'schema' | 'method' | 'url'>>;

/** Every code that a route refuses with: by its access rule, by the body it reads, and by its own list. */
function codesOf({ config, schema, method = [], url = '' }: Described): ErrorCode[] {
  const body = schema?.body as { content?: object } | undefined;
  const bodyTypes = body ? Object.keys(body.content ?? { 'application/json': {} }) : [];
  const query: ErrorCode[] = schema?.querystring || isBounded(schema?.params) ? ['invalid_input'] : [];
  const isForwarded = [method].flat().some((one) => mayBeElsewhere(one, url));
  return [
    ...refusedWith(schema?.response),
    ...(isForwarded ? whenForwarded : []),
    ...byAccess[config?.access ?? 'project'],
    ...bodyTypes.flatMap((type) => byBody[type] ?? []),
    ...query,
    ...anyRoute,
  ];
}

/** Whether a parameter of the path may be of the wrong form. */
const isBounded = (params: unknown) =>
  /"(?:maxLength|minLength|pattern|format|enum|minimum|maximum)":/.test(JSON.stringify(params ?? {}));

/** Whether a route refuses with a code that the reference does not name. Routes without an operation are not in the reference. */
export function isUndeclared(route: Described, code: ErrorCode): boolean {
  if (!route.schema?.operationId || unnamed.has(code)) return false;
  let codes = known.get(route.schema);
  if (!codes) known.set(route.schema, (codes = new Set(codesOf(route))));
  return !codes.has(code);
}
const known = new WeakMap<object, Set<ErrorCode>>();

/** All responses of a route for the reference: its own, and every refusal by its code. */
export function answersOf(route: Described): Record<string, unknown> {
  const own = (route.schema?.response ?? {}) as Record<string, object>;
  const described = Object.entries<object>({ ...refusals(...codesOf(route)) });
  // A refusal with a shape of its own keeps that shape. A refusal without a code (of /ready) stays unchanged.
  return { ...own, ...Object.fromEntries(described.map(([status, answer]) => [status, keeping(own[status], answer)])) };
}

const keeping = (own: object | undefined, described: object) =>
  own && 'content' in own ? { ...described, content: own.content } : (own ?? described);
