import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ErrorObject, ValidateFunction } from 'ajv';
import type { Host, Tool } from './host.ts';

/** A model corrects only a few mistakes at a time. */
const MOST_NAMED = 20;

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
  return new ajv.Ajv({ strict: false, allErrors: true }).compile(schema);
}

export function inWords(mistakes: readonly ErrorObject[] | null | undefined = []): string {
  const named = (mistakes ?? [])
    .slice(0, MOST_NAMED)
    .map(({ instancePath, message }) => `arguments${instancePath} ${message}`);
  const more = (mistakes ?? []).length - named.length;
  return [...named, ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
}
