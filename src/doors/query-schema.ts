import { Type } from 'typebox';
import { parseBody } from '../api/body.ts';
import { validatorCompiler } from '../api/validation.ts';
import { errors } from '../errors.ts';
import { nearest } from '../lib/nearest.ts';
import { Acquire } from '../pools/schema.ts';
import { CreateSession } from '../sessions/schema.ts';

/** What the address of a websocket asks for. */
export type Wish =
  | {
      kind: 'session';
      session: string;
      /** Created when there is no such session. */
      otherwise?: NewSession;
    }
  | { kind: 'pool'; pool: string; request: Acquire; keepAlive: boolean }
  | NewSession;

interface NewSession {
  kind: 'new';
  request: CreateSession;
  keepAlive: boolean;
  /** The longest time that the session lasts. */
  mostMs?: number;
}

/** The parts of a schema that say how a value in a query is read. */
interface Shape {
  type?: string;
  properties?: Record<string, Shape>;
  items?: Shape;
  anyOf?: Shape[];
}

type Fields = Record<string, unknown>;

/** Options of the door itself. `key` and `project` are taken out before the query is read. */
const doorFields = { session: Type.String(), pool: Type.String(), keep_alive: Type.Boolean() };
const createFields = shapesOf(CreateSession);
const acquireFields = shapesOf(Acquire);

const compile = validatorCompiler();
const checkCreate = compile({ schema: CreateSession, httpPart: 'body', method: '', url: '' });
const checkAcquire = compile({ schema: Acquire, httpPart: 'body', method: '', url: '' });

/**
 * Reads the options of a websocket's address: the fields of `POST /browsers` by their names, and of an acquire with `pool`. Every name
 * that is not known is refused, since the client would never see a warning. No refusal repeats a value: it may be a key in the wrong place.
 */
export function wishOf(search: Iterable<[string, string]>): Wish {
  const given = [...search].filter(([, value]) => value !== '');
  const own = (name: string) => given.find(([one]) => one === name)?.[1];
  const [session, pool] = [own('session'), own('pool')];
  if (session !== undefined) {
    const other = given.find(([name]) => name !== 'session');
    if (other) throw refuse(`${shown(other[0])} cannot be combined with session: it only applies to a new session.`);
    return { kind: 'session', session };
  }
  const fields = pool === undefined ? createFields : acquireFields;
  const { keep_alive: keepAlive, ...request } = readFields(given, { ...doorFields, ...fields }, pool);
  delete request['pool'];
  const checked = (pool === undefined ? checkCreate : checkAcquire)(request) as { error?: Error };
  if (checked.error) throw refuse(checked.error.message);
  const kept = keepAlive === true;
  if (pool !== undefined) return { kind: 'pool', pool, request, keepAlive: kept };
  return { kind: 'new', request, keepAlive: kept };
}

function readFields(given: [string, string][], shapes: Record<string, Shape>, pool: string | undefined): Fields {
  const fields: Fields = {};
  const seen = new Set<string>();
  for (const [name, value] of given) {
    if (seen.has(name)) throw refuse(`${shown(name)} is there twice. Send it once; lists are JSON.`);
    seen.add(name);
    const [first = '', ...inner] = name.split('.');
    if (!Object.hasOwn(shapes, first)) throw unknown(first, shapes, pool);
    place(fields, { first, inner, name }, value, shapes[first]!);
  }
  return fields;
}

/** `viewport.width=800` is `{ viewport: { width: 800 } }`; below a map such as tags, the rest of the name is one key. */
function place(
  fields: Fields,
  { first, inner, name }: { first: string; inner: string[]; name: string },
  value: string,
  given: Shape,
): void {
  const shape = plain(given);
  if (inner.length === 0) {
    const read = readValue(name, value, shape);
    const there = fields[first];
    if (isFields(there) && isFields(read)) Object.assign(there, read);
    else if (there === undefined) fields[first] = read;
    else throw refuse(`${shown(name)} is there twice. Send it once; lists are JSON.`);
    return;
  }
  if (shape.type !== 'object') throw refuse(`${shown(name)} is not an option: ${first} has no parts.`);
  const there = fields[first] ?? {};
  if (!isFields(there)) throw refuse(`${shown(name)} does not fit what ${first} is given as.`);
  fields[first] = there;
  const { properties } = shape;
  if (!properties) {
    const key = inner.join('.');
    if (key === '__proto__') throw refuse(`${shown(name)} is not an option.`);
    there[key] = value;
    return;
  }
  const [next = '', ...rest] = inner;
  if (!Object.hasOwn(properties, next)) throw unknownPart(first, next, properties);
  place(there, { first: next, inner: rest, name }, value, properties[next]!);
}

/** Text is converted to the type of the schema. Invalid text is not changed, so that the validation names the field. */
function readValue(name: string, value: string, shape: Shape): unknown {
  const { type, properties, items } = shape;
  if (type === 'string') return value;
  if (type === 'boolean') {
    if (value !== 'true' && value !== 'false') throw refuse(`${shown(name)} must be true or false.`);
    return value === 'true';
  }
  if (type === 'integer' || type === 'number') return /^-?\d{1,15}(\.\d{1,6})?$/.test(value) ? Number(value) : value;
  if (/^\s*[[{]/.test(value)) {
    const read = jsonOf(name, value);
    refuseUnknownParts(read, shape, name);
    return read;
  }
  // A value that is selected by name may be the name alone.
  if (properties?.['name']) return { name: value };
  if (type === 'array' && items && plain(items).properties?.['name'])
    return value.split(',').map((one) => ({ name: one }));
  throw refuse(`${shown(name)} must be JSON, or its parts with a dot: ${name}.part=…`);
}

function jsonOf(name: string, value: string): unknown {
  try {
    return parseBody(value);
  } catch {
    throw refuse(`${shown(name)} is not JSON that can be read.`);
  }
}

function refuseUnknownParts(value: unknown, given: Shape, path: string): void {
  const shape = plain(given);
  if (Array.isArray(value)) {
    for (const one of value) if (shape.items) refuseUnknownParts(one, shape.items, path);
    return;
  }
  if (!isFields(value) || !shape.properties) return;
  for (const [name, inner] of Object.entries(value)) {
    if (!Object.hasOwn(shape.properties, name)) throw unknownPart(path, name, shape.properties);
    refuseUnknownParts(inner, shape.properties[name]!, `${path}.${name}`);
  }
}

function unknown(name: string, shapes: Record<string, Shape>, pool: string | undefined) {
  if (pool !== undefined && Object.hasOwn(createFields, name))
    return refuse(`${name} is a setting of the pool, and its browsers are made already. Leave out ${name} or pool.`);
  if (pool === undefined && Object.hasOwn(acquireFields, name)) return refuse(`${name} needs pool.`);
  return refuse(
    `${shown(name)} is not an option here.${hint(name, shapes)} The options are the fields of POST /browsers.`,
  );
}

const unknownPart = (path: string, name: string, shapes: Record<string, Shape>) =>
  refuse(`${shown(`${path}.${name}`)} is not an option here.${hint(name, shapes, `${path}.`)}`);

function hint(name: string, shapes: Record<string, Shape>, before = ''): string {
  const meant = nearest(name.slice(0, 64), Object.keys(shapes));
  return meant === undefined ? '' : ` Did you mean ${before}${meant}?`;
}

/** Names come from outside, too: cut, and without characters that cannot be shown. */
const shown = (name: string) => name.slice(0, 64).replace(/[^\x20-\x7e]/g, '?');

const refuse = (detail: string) => errors.invalid_input({ detail });

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A field that may be null is a union; the query has no way to write null. */
const plain = (shape: Shape): Shape => shape.anyOf?.find(({ type }) => type !== 'null') ?? shape;

function shapesOf(schema: object): Record<string, Shape> {
  return (schema as { properties: Record<string, Shape> }).properties;
}
