import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { DataValidateFunction } from 'ajv/dist/types/index.js';
import addFormats from 'ajv-formats';
import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { beginningOf } from '../lib/text.ts';

/**
 * Bodies are not coerced: `"5"` is not a number. Values in a URL are always text, so there `5`, `true` and `a,b` are
 * converted to the type of the schema. Error messages name the field. A schema is compiled at its first request, like those of answers
 * (serialization.ts).
 */
export function validatorCompiler(): FastifySchemaCompiler<TSchema> {
  const strict = ajv(false);
  const lenient = ajv(true);
  return ({ schema, httpPart }) => {
    const part = httpPart ?? 'body';
    const lists = listParameters(schema);
    let compiled: ValidateFunction | undefined;
    return (data: unknown) => {
      const validate = (compiled ??= (part === 'body' ? strict : lenient).compile(schema));
      if (part === 'querystring') splitLists(data as Record<string, unknown>, lists);
      if (validate(data)) return { value: data };
      return { error: new InvalidInput(sentence(part, validate.errors ?? [])) };
    };
  };
}

export class InvalidInput extends Error {
  override readonly name = 'InvalidInput';
}

function ajv(coerceTypes: boolean) {
  const instance = new Ajv({
    coerceTypes,
    useDefaults: true,
    strict: false,
    allErrors: false,
    // Names in paths are not escaped: for a name of 6 MB, that took a second. Ajv would warn that it prefers to escape them.
    jsPropertySyntax: true,
    logger: false,
  });
  for (const keyword of ['minLength', 'maxLength'] as const) {
    instance.removeKeyword(keyword);
    instance.addKeyword({
      keyword,
      type: 'string',
      schemaType: 'number',
      before: 'pattern', // as in Ajv: the sentence about a text that is missing names its length
      compile: (limit) => ofLength(keyword, limit),
    });
  }
  // The types are those of a CommonJS module with a default export; Node imports the function itself.
  (addFormats as unknown as typeof addFormats.default)(instance, ['date-time', 'uri', 'email', 'uuid']);
  return instance;
}

/**
 * JSON schema counts characters, and a character has one or two units of a string. Ajv counts all characters of every string, which takes
 * long for megabytes; here they are counted only where the number of units does not decide.
 */
function ofLength(keyword: 'minLength' | 'maxLength', limit: number): DataValidateFunction {
  const check: DataValidateFunction = (text: string) => {
    const [least, most] = [Math.ceil(text.length / 2), text.length];
    const fits =
      keyword === 'minLength'
        ? least >= limit || (most >= limit && lengthOf(text) >= limit)
        : most <= limit || (least <= limit && lengthOf(text) <= limit);
    if (!fits) check.errors = [{ keyword, params: { limit } }];
    return fits;
  };
  return check;
}

function lengthOf(text: string): number {
  let length = text.length;
  for (let at = 1; at < text.length; at++)
    if ((text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800) length -= 1;
  return length;
}

function listParameters(schema: unknown): string[] {
  const { properties = {} } = schema as { properties?: Record<string, { type?: string }> };
  return Object.keys(properties).filter((name) => properties[name]?.type === 'array');
}

/** Clients send `a,b` or `x=a&x=b`; both are the list a, b. */
function splitLists(query: Record<string, unknown>, lists: string[]) {
  for (const name of lists) {
    const value = query[name];
    if (value !== undefined)
      query[name] = [value].flat().flatMap((item) => (typeof item === 'string' ? item.split(',') : [item]));
  }
}

/** The longest name of a field in a sentence. Names in maps are the client's own, and may have megabytes. */
const longestName = 200;
const shortened = (name: string) => (name.length > longestName ? `${beginningOf(name, longestName)}…` : name);

function sentence(part: string, found: ErrorObject[]): string {
  // Of a union's branches, report the error that is not "must be null".
  const error = found.find(({ keyword, params }) => keyword !== 'anyOf' && params['type'] !== 'null') ?? found[0];
  if (!error) return 'The request does not fit the schema.';
  const { keyword, params, instancePath } = error;
  const inside = shortened(instancePath)
    .replace(/\[(?:'(.*?)'|"(.*?)"|(\d+))\]/g, '.$1$2$3') // not linear: the text is cut to 200 letters
    .slice(1);
  const kind =
    part === 'body'
      ? ''
      : part === 'querystring'
        ? 'query parameter '
        : part === 'params'
          ? 'path parameter '
          : `${part} `;
  const field = (name = inside) => (name ? `${kind}${name}` : part === 'body' ? 'The body' : `The ${kind.trim()}s`);
  const within = (name: string) => field(inside ? `${inside}.${shortened(name)}` : shortened(name));
  const { limit } = params as { limit?: number };
  switch (keyword) {
    case 'required':
      return `${within(params['missingProperty'] as string)} is missing.`;
    case 'additionalProperties':
      return `${within(params['additionalProperty'] as string)} is not a field here.`;
    case 'type':
      return `${field()} must be ${withArticle([params['type']].flat().join(' or '))}.`;
    case 'enum':
      return `${field()} must be one of ${(params['allowedValues'] as unknown[]).join(', ')}.`;
    case 'const':
      return `${field()} must be ${JSON.stringify(params['allowedValue'])}.`;
    case 'minimum':
      return `${field()} must be at least ${limit}.`;
    case 'maximum':
      return `${field()} must be at most ${limit}.`;
    case 'minLength':
      return `${field()} must have at least ${limit} ${limit === 1 ? 'character' : 'characters'}.`;
    case 'maxLength':
      return `${field()} must have at most ${limit} characters.`;
    case 'maxItems':
      return `${field()} must have at most ${limit} items.`;
    case 'maxProperties':
      return `${field()} must have at most ${limit} entries.`;
    case 'pattern':
      return `${field()} has characters it may not have; it must match ${params['pattern']}.`;
    case 'format':
      return `${field()} must be a ${params['format']}${params['format'] === 'date-time' ? ' such as 2026-01-31T12:00:00Z' : ''}.`;
    default:
      return `${field()} ${error.message ?? 'does not fit'}.`;
  }
}

const withArticle = (noun: string) => (/^[aeio]/.test(noun) ? `an ${noun}` : `a ${noun}`);
