/** Lets Node import TypeScript of any kind, enums included, by esbuild, which is here for the apps of users. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'esbuild';

interface Loaded {
  format: string;
  source: string;
  shortCircuit: true;
}
interface Resolved {
  url: string;
}

export async function resolve(
  specifier: string,
  context: unknown,
  next: (specifier: string, context: unknown) => Promise<Resolved>,
): Promise<Resolved> {
  try {
    return await next(specifier, context);
  } catch (error) {
    // `./helper` for ./helper.ts, as compilers take it.
    if (!/^\.{1,2}\//.test(specifier) || /\.\w+$/.test(specifier)) throw error;
    return next(`${specifier}.ts`, context);
  }
}

export async function load(
  url: string,
  context: unknown,
  next: (url: string, context: unknown) => Promise<Loaded>,
): Promise<Loaded> {
  const kind = /^file:.*\.[mc]?(tsx?)$/.exec(url)?.[1];
  if (kind === undefined) return next(url, context);
  const sourcefile = fileURLToPath(url);
  const { code } = transformSync(readFileSync(sourcefile, 'utf8'), {
    loader: kind as 'ts' | 'tsx',
    format: 'esm',
    target: 'node20',
    sourcemap: 'inline',
    sourcefile,
  });
  return { format: 'module', source: code, shortCircuit: true };
}
