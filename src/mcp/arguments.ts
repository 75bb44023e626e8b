import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ErrorObject, ValidateFunction } from 'ajv';
import { beginningOf } from '../lib/text.ts';
import type { Host, Tool } from './host.ts';

/** A model corrects only a few mistakes at a time. */
const MOST_NAMED = 20;
const LONGEST_PATH = 200;

/** Of each place with tools, by their names. */
const checks = new WeakMap<Host['operation'], Map<string, Promise<ValidateFunction>>>();
let last: Promise<unknown> = Promise.resolve();

/** The check of a tool's arguments. It is compiled once, which takes tens of milliseconds for some, and one after another. */
export function checkOf({ name, inputSchema }: Tool, { operation }: Host): Promise<ValidateFunction> {
  const known = checks.get(operation) ?? new Map<string, Promise<ValidateFunction>>();
  checks.set(operation, known);
  const check = known.get(name) ?? last.then(() => compiled(inputSchema));
  if (!known.has(name)) last = check.catch(() => {});
  known.set(name, check);
  return check;
}

async function compiled(schema: object): Promise<ValidateFunction> {
  const { default: ajv } = await import('ajv'); // joined with the service it has no export but this one (scripts/join.mjs)
  await nextTurn();
  // Names in paths are not escaped, as in api/validation.ts: for a name of 1 MB, that took 0.2 s to 1 s.
  return new ajv.Ajv({ strict: false, allErrors: true, jsPropertySyntax: true, logger: false }).compile(schema);
}

/** Names in maps are the client's own. */
const shortened = (path: string) => (path.length > LONGEST_PATH ? `${beginningOf(path, LONGEST_PATH)}…` : path);

export function inWords(mistakes: readonly ErrorObject[] | null | undefined = []): string {
  const named = (mistakes ?? [])
    .slice(0, MOST_NAMED)
    .map(({ instancePath, message }) => `arguments${shortened(instancePath)} ${message}`);
  const more = (mistakes ?? []).length - named.length;
  return [...named, ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
}
