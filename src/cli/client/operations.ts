import { readFileSync } from 'node:fs';
import type { Operation } from '../../lib/operation.ts';
import { UsageError } from '../fault.ts';

let all: Record<string, Operation> | undefined;

export function operation(name: string): Operation {
  all ??= JSON.parse(readFileSync(new URL('../operations.json', import.meta.url), 'utf8')) as Record<string, Operation>;
  const found = all[name];
  if (!found) throw new Error(`There is no operation ${name} in openapi.json.`);
  return found;
}

/** The names of the parameters in a path, in order. */
export function pathParameters(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
}

/** The path with its parameters filled in. Words that would change the path are refused. */
export function fillPath(path: string, words: readonly string[]): string {
  let next = 0;
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const word = words[next++]!;
    if (/^\.{0,2}$/.test(word)) throw new UsageError(`'${word}' is not the name or id of anything (${name}).`);
    return encodeURIComponent(word);
  });
}
