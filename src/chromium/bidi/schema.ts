import { record } from '../../lib/shape.ts';

/**
 * The schemas of the standard are those of zod that the mapper has, but zod does not apply them here: it tries every form of a value to the
 * end, so that a value of 400 bytes takes seconds. These parsers leave a form at its first fault, so they take linear time.
 */
export type Parser = (value: unknown, depth: number) => unknown;

/** A schema of zod, as far as it is read here. */
export interface Schema {
  readonly _def: object;
}

type Definition =
  | { typeName: 'ZodLazy'; getter: () => Schema }
  | { typeName: 'ZodObject'; shape: () => Record<string, Schema> }
  | { typeName: 'ZodRecord'; valueType: Schema }
  | { typeName: 'ZodArray'; type: Schema; minLength: { value: number } | null }
  | { typeName: 'ZodTuple'; items: Schema[] }
  | { typeName: 'ZodUnion'; options: Schema[] }
  | { typeName: 'ZodIntersection'; left: Schema; right: Schema }
  | { typeName: 'ZodOptional'; innerType: Schema }
  | { typeName: 'ZodDefault'; innerType: Schema; defaultValue: () => unknown }
  | { typeName: 'ZodLiteral'; value: unknown }
  | { typeName: 'ZodEnum'; values: string[] }
  | { typeName: 'ZodNumber'; checks: NumberCheck[] }
  | { typeName: 'ZodString'; checks: object[] }
  | { typeName: 'ZodBoolean' | 'ZodNull' | 'ZodAny' };

type NumberCheck = { kind: 'int' } | { kind: 'min' | 'max'; value: number; inclusive: boolean };

/** Levels of lists and objects. An object in the value of a script takes three levels. */
const MOST_DEPTH = 300;

/** Why a value does not fit. */
export class Misfit {
  readonly reason: string;
  readonly path: string;
  readonly depth: number;

  constructor(reason: string, path = '', depth = 0) {
    this.reason = reason;
    this.path = path;
    this.depth = depth;
  }

  message(method: string): string {
    return `The params of ${method} are not those of the standard: ${this.path || 'they'} ${this.reason}.`;
  }

  below(name: string | number): Misfit {
    return new Misfit(this.reason, this.path === '' ? `${name}` : `${name}/${this.path}`, this.depth + 1);
  }
}

/** A missing member does not identify the intended form: a union reports any other misfit. */
const MISSING = new Misfit('is missing', '', -1);
const TOO_DEEP = new Misfit(`is below more than ${MOST_DEPTH} lists and objects`);
const OTHER_FORM = new Misfit('has none of the forms of the standard');

// oxlint-disable-next-line no-underscore-dangle -- so it is called in zod
export const definitionOf = (schema: Schema) => schema._def as Definition;

const known = new WeakMap<Schema, Parser>();

/** A parser answers with the value, without the members that the schema does not have, or with a misfit. */
export function parserOf(schema: Schema): Parser {
  const found = known.get(schema);
  if (found) return found;
  // A schema of values with values inside refers to itself.
  let parser: Parser | undefined;
  known.set(schema, (value, depth) => parser!(value, depth));
  parser = compile(definitionOf(schema));
  known.set(schema, parser);
  return parser;
}

function compile(definition: Definition): Parser {
  switch (definition.typeName) {
    case 'ZodLazy':
      return parserOf(definition.getter());
    case 'ZodObject':
      return objectParser(definition.shape());
    case 'ZodRecord':
      return recordParser(definition.valueType);
    case 'ZodArray':
      return listParser(parserOf(definition.type), definition.minLength?.value ?? 0);
    case 'ZodTuple':
      return tupleParser(definition.items.map(parserOf));
    case 'ZodUnion':
      return unionParser(definition.options.map(parserOf));
    case 'ZodIntersection':
      return intersectionParser(parserOf(definition.left), parserOf(definition.right));
    case 'ZodOptional': {
      const parse = parserOf(definition.innerType);
      return (value, depth) => (value === undefined ? undefined : parse(value, depth));
    }
    case 'ZodDefault': {
      const parse = parserOf(definition.innerType);
      return (value, depth) => (value === undefined ? definition.defaultValue() : parse(value, depth));
    }
    case 'ZodLiteral':
      return only((value) => value === definition.value, `is not ${JSON.stringify(definition.value)}`);
    case 'ZodEnum': {
      const values = new Set<unknown>(definition.values);
      return only((value) => values.has(value), `is not one of ${definition.values.join(', ')}`);
    }
    case 'ZodNumber':
      return numberParser(definition.checks);
    case 'ZodString':
      if (definition.checks.length === 0) return only((value) => typeof value === 'string', 'is not a string');
      break;
    case 'ZodBoolean':
      return only((value) => typeof value === 'boolean', 'is not true or false');
    case 'ZodNull':
      return only((value) => value === null, 'is not null');
    case 'ZodAny':
      return (value) => value;
  }
  throw new TypeError(`No parser is known for ${JSON.stringify(definition)}.`);
}

function only(fits: (value: unknown) => boolean, reason: string): Parser {
  const misfit = new Misfit(reason);
  return (value) => (fits(value) ? value : value === undefined ? MISSING : misfit);
}

function numberParser(checks: readonly NumberCheck[]): Parser {
  const tests = checks.map((check): ((value: number) => boolean) => {
    if (check.kind === 'int') return Number.isInteger;
    const { kind, value: bound, inclusive } = check;
    if (kind === 'min') return (value) => value > bound || (inclusive && value === bound);
    if (kind === 'max') return (value) => value < bound || (inclusive && value === bound);
    throw new TypeError(`No check of numbers is known for ${JSON.stringify(check)}.`);
  });
  return only(
    (value) => typeof value === 'number' && tests.every((fits) => fits(value)),
    'is not a number in the range of the standard',
  );
}

function objectParser(shape: Record<string, Schema>): Parser {
  const members = Object.entries(shape).map(([name, schema]) => ({ name, parse: parserOf(schema) }));
  // Literals distinguish the forms of a value, so they come first: no other form goes into its members.
  const literals = Object.entries(shape).flatMap(([name, schema]) => {
    const definition = definitionOf(schema);
    return definition.typeName === 'ZodLiteral' ? [{ name, value: definition.value }] : [];
  });
  const notObject = new Misfit('is not an object');
  return (value, depth) => {
    if (!record(value)) return value === undefined ? MISSING : notObject;
    for (const literal of literals) if (value[literal.name] !== literal.value) return OTHER_FORM;
    if (depth > MOST_DEPTH) return TOO_DEEP;
    const parsed: Record<string, unknown> = {};
    for (const { name, parse } of members) {
      const member = parse(value[name], depth + 1);
      if (member instanceof Misfit) return member.below(name);
      if (member !== undefined) parsed[name] = member;
    }
    return parsed;
  };
}

function recordParser(valueType: Schema): Parser {
  const isAny = definitionOf(valueType).typeName === 'ZodAny';
  const parse = parserOf(valueType);
  const notObject = new Misfit('is not an object');
  return (value, depth) => {
    if (!record(value)) return value === undefined ? MISSING : notObject;
    if (isAny) return value;
    const wrong = Object.keys(value).find((name) => parse(value[name], depth + 1) instanceof Misfit);
    return wrong === undefined ? value : new Misfit('has a member of another kind');
  };
}

function listParser(parse: Parser, least: number): Parser {
  const notList = new Misfit('is not a list');
  const tooShort = new Misfit(`has less than ${least} items`);
  return (value, depth) => {
    if (!Array.isArray(value)) return value === undefined ? MISSING : notList;
    if (value.length < least) return tooShort;
    if (depth > MOST_DEPTH) return TOO_DEEP;
    const parsed: unknown[] = [];
    for (let at = 0; at < value.length; at++) {
      const item = parse(value[at], depth + 1);
      if (item instanceof Misfit) return item.below(at);
      parsed.push(item);
    }
    return parsed;
  };
}

function tupleParser(parsers: readonly Parser[]): Parser {
  const misfit = new Misfit(`is not a list of ${parsers.length} items`);
  return (value, depth) => {
    if (!Array.isArray(value) || value.length !== parsers.length) return misfit;
    if (depth > MOST_DEPTH) return TOO_DEEP;
    const parsed: unknown[] = [];
    for (const [at, parse] of parsers.entries()) {
      const item = parse(value[at], depth + 1);
      if (item instanceof Misfit) return item.below(at);
      parsed.push(item);
    }
    return parsed;
  };
}

/** The first form that fits is the one. Otherwise the misfit of the form that came furthest is the one to report. */
function unionParser(forms: readonly Parser[]): Parser {
  return (value, depth) => {
    let furthest = OTHER_FORM;
    for (const parse of forms) {
      const parsed = parse(value, depth);
      if (!(parsed instanceof Misfit)) return parsed;
      if (parsed.depth > furthest.depth) furthest = parsed;
    }
    return furthest;
  };
}

/** Both are forms of objects: one of them may keep members that the other leaves out. */
function intersectionParser(parseLeft: Parser, parseRight: Parser): Parser {
  return (value, depth) => {
    const left = parseLeft(value, depth);
    if (left instanceof Misfit) return left;
    const right = parseRight(value, depth);
    if (right instanceof Misfit) return right;
    return { ...(right as object), ...(left as object) };
  };
}
