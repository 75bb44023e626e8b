import { inspect } from 'node:util';

/** Writes a line to the log of the build or of the invocation, which is the standard error of all that runs here. */
export function say(what: unknown): void {
  process.stderr.write(`${typeof what === 'string' ? what : inspect(what)}\n`);
}
