import { readFileSync } from 'node:fs';
import type { Field } from '../lib/operation.ts';
import { UsageError } from './fault.ts';

/** `--timeout-seconds`: the option of a field. */
export function flagOf(field: Field): string {
  return `--${field.name.replaceAll('_', '-')}`;
}

/** The placeholder of its value in help. */
export function placeholderOf(field: Field): string {
  if (field.values && field.values.join('|').length <= 40) return field.values.join('|');
  if (field.type === 'number') return 'number';
  if (field.type === 'json') return 'json';
  if (field.type === 'file') return 'path';
  return 'text';
}

/** The value of an option in the form of the API. `given` is a list where the option may be repeated. */
export function valueOf(field: Field, given: unknown): unknown {
  if (field.many) return (given as string[]).map((one) => single(field, one));
  if (field.type === 'json') return jsonOf(field, given as string[]);
  return single(field, given);
}

function single(field: Field, given: unknown): unknown {
  if (field.type === 'boolean' || typeof given !== 'string') return given;
  if (field.values && !field.values.includes(given))
    throw new UsageError(`${flagOf(field)} takes ${listed(field.values)}, not '${given}'.`);
  if (field.type === 'number') {
    if (given.trim() === '' || !Number.isFinite(Number(given)))
      throw new UsageError(`${flagOf(field)} takes a number, not '${given}'.`);
    return Number(given);
  }
  return given;
}

/** JSON, or `@file` with JSON in it, or `key=value` as often as needed. */
function jsonOf(field: Field, given: readonly string[]): unknown {
  const pairs: Record<string, string> = {};
  for (const text of given) {
    const pair = /^([^\s={[@"][^={[@"]*)=([\s\S]*)$/.exec(text);
    if (!pair) {
      if (given.length > 1)
        throw new UsageError(`${flagOf(field)} takes JSON once, or key=value as often as needed, not both.`);
      return parseJson(text, flagOf(field));
    }
    pairs[pair[1]!] = pair[2]!;
  }
  return pairs;
}

/** JSON as it was typed, from `@file`, or from stdin for `@-`. */
export function parseJson(text: string, flag: string): unknown {
  const source = text.startsWith('@') ? readText(text.slice(1), flag) : text;
  try {
    return JSON.parse(source);
  } catch (error) {
    throw new UsageError(`${flag} takes JSON, or @file with JSON in it: ${(error as Error).message}.`);
  }
}

export function readText(path: string, flag: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw new UsageError(`${flag}: ${path} cannot be read: ${(error as Error).message}.`);
  }
}

/** Sets a nested value such as `viewport.width`. */
export function place(into: Record<string, unknown>, name: string, value: unknown): void {
  const [first, second] = name.split('.') as [string, string?];
  if (second === undefined) into[first] = value;
  else into[first] = { ...(into[first] as object | undefined), [second]: value };
}

export function listed(values: readonly string[]): string {
  return values.length === 1 ? values[0]! : `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
}
