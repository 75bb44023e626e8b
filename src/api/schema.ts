import { Type, type TSchema } from 'typebox';
import { meaningOf, statusOf, type ErrorCode } from '../errors.ts';
import { named } from '../lib/schema.ts';

export { named, nullable, oneOf } from '../lib/schema.ts';

/** Conventions that every room's schemas share: names, times, paging and refusals. */

export const Timestamp = Type.String({ format: 'date-time' });

/** No control characters: PostgreSQL refuses NUL, and the others cannot be typed. */
const printable = '^[^\\u0000-\\u001f\\u007f]*$';

/** A free-form name. */
export const FreeName = Type.String({ minLength: 1, maxLength: 255, pattern: printable });

/** A name that is also used in paths. */
export const SlugName = Type.String({ minLength: 1, maxLength: 255, pattern: '^[a-zA-Z0-9._-]{1,255}$' });

export const Paging = {
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'The maximum number of entries.' }),
  offset: Type.Integer({
    minimum: 0,
    maximum: 2_147_483_647,
    default: 0,
    description: 'The number of entries to skip.',
  }),
};

export const Search = {
  query: Type.Optional(
    Type.String({ maxLength: 1024, description: 'Case-insensitive part of the name, or a whole id.' }),
  ),
  name: Type.Optional(Type.String({ maxLength: 1024, description: 'The whole name; case and accents do not count.' })),
};

const Detail = Type.Object({ code: Type.Optional(Type.String()), message: Type.Optional(Type.String()) });

export const ErrorBody = named(
  'Error',
  Type.Object(
    {
      code: Type.String({ description: 'The error code; docs/errors.md lists all.' }),
      message: Type.String({ description: 'The error and its remedy.' }),
      details: Type.Optional(Type.Array(Detail)),
      inner_error: Type.Optional(Detail),
    },
    { additionalProperties: true },
  ),
);

/** The `response` part of a route for the codes it refuses with. Codes that all routes of its kind share are added in the reference. */
export const refusals = (...codes: ErrorCode[]): object => refusedAs(ErrorBody, ...codes);

/** The same, for refusals with a shape of their own. Handlers throw refusals and never send them, so response types contain none. */
export function refusedAs(shape: TSchema, ...codes: ErrorCode[]): object {
  const answers: Record<number, object> = {};
  for (const status of new Set(codes.map(statusOf))) {
    const same = [...new Set(codes)].filter((code) => statusOf(code) === status);
    const content = { 'application/json': { schema: shape } };
    answers[status] = { description: same.map(inWords).join('\n'), content, [codesKey]: same };
  }
  return answers;
}

const codesKey = 'x-codes';
const inWords = (code: ErrorCode) => `\`${code}\`: ${meaningOf(code)}`;

/** The codes that were passed to `refusals`. */
export const refusedWith = (responses: unknown): ErrorCode[] =>
  Object.values((responses ?? {}) as Record<string, { [codesKey]?: ErrorCode[] }>).flatMap(
    (response) => response[codesKey] ?? [],
  );

/** A page of a list: a bare array; the position of the next page is in the headers. */
export function listOf<T extends TSchema>(item: T, description: string) {
  return {
    ...Type.Array(item),
    description,
    headers: {
      'X-Has-More': Type.Boolean({ description: 'Whether there is another page.' }),
      'X-Next-Offset': Type.Integer({ description: 'The `offset` of the next page; 0 when there is none.' }),
      'X-Limit': Type.Integer(),
      'X-Offset': Type.Integer(),
    },
  } as ReturnType<typeof Type.Array<T>>;
}

/** A response without a body. */
export const empty = (description: string) => Type.Null({ description });

/** A response that is a stream of events, each of this shape. */
export const eventsOf = (event: TSchema, description: string) =>
  Type.Unsafe<unknown>({
    description,
    headers: { 'X-SSE-Content-Type': { type: 'string', const: 'application/json' } },
    content: { 'text/event-stream': { schema: event } },
  });

/** A binary body or response. */
export const bytesAs = (type: string, description: string) =>
  Type.Unsafe<unknown>({ description, content: { [type]: { schema: { type: 'string', format: 'binary' } } } });
