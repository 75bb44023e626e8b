import { webFile } from '../../lib/web-files.ts';
import type { PageCalls } from './page-calls.ts';

let script: string | undefined;

/** An expression that evaluates to a function of web/page.ts. It needs nothing that an earlier expression left in the page. */
export function pageFunction(name: keyof PageCalls): string {
  script ??= webFile('chromium/pages/web/page.js').toString();
  return `${script}.calls.${name}`;
}

/** An expression that calls a function of web/page.ts. */
export function pageCall<Name extends keyof PageCalls>(name: Name, ...args: Parameters<PageCalls[Name]>): string {
  return `${pageFunction(name)}(${args.map((arg) => JSON.stringify(arg)).join(', ')})`;
}
