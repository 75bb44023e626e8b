import { errors } from '../../errors.ts';
import { isLight } from '../../lib/json-weight.ts';
import { nextTurn } from '../../lib/turns.ts';
import { decode } from '../../lib/utf8.ts';
import type { Executed } from '../../sessions/playwright/service.ts';
import type { FunctionBody } from './schema.ts';

interface Outcome {
  type: string;
  data: Buffer | string;
}

/**
 * The code of a client as a program for the session's own runner. It is a module with a default export, or sets `module.exports` as it
 * was written before modules; either is called with `page` and `context`, and returns `data` and its `type`.
 */
export function programOf({ code, context = {} }: FunctionBody): string {
  return `
    const source = ${JSON.stringify(code)};
    let handler;
    if (/\\bmodule\\.exports\\b/.test(source)) {
      const module = { exports: {} };
      new Function('module', 'exports', source)(module, module.exports);
      handler = module.exports.default ?? module.exports;
    } else {
      handler = (await import('data:text/javascript;base64,' + Buffer.from(source).toString('base64'))).default;
    }
    if (typeof handler !== 'function') throw new TypeError('The code has no default export that is a function.');
    const out = await handler({ page, context: ${JSON.stringify(context)}, browser });
    const given = out !== null && typeof out === 'object' && 'data' in out ? out : { data: out };
    const { data, type } = given;
    if (data instanceof Uint8Array) return { type, base64: Buffer.from(data).toString('base64') };
    return typeof data === 'string' ? { type, text: data } : { type, json: JSON.stringify(data) ?? 'null' };
  `;
}

/**
 * What the session answered. The code could answer anything, so all of it is checked. To decode, to weigh and to parse the largest result
 * takes up to 60 ms each, so each is done in a turn of its own.
 */
export async function readOutcome({ success, error, result }: Executed): Promise<Outcome> {
  if (!success)
    throw errors.function_failed({ detail: `The code ended with an error: ${(error ?? '').slice(0, 2000)}` });
  // The program that runs the code wraps the return value in a string.
  const { type, base64, text, json } = result ? await parsed(result) : {};
  if (typeof base64 === 'string')
    return { type: typeOf(type, 'application/octet-stream'), data: Buffer.from(base64, 'base64') };
  if (typeof text === 'string') return { type: typeOf(type, 'text/plain; charset=utf-8'), data: text };
  return { type: typeOf(type, 'application/json; charset=utf-8'), data: typeof json === 'string' ? json : 'null' };
}

async function parsed(result: Buffer): Promise<Record<string, unknown>> {
  await nextTurn(); // the result was checked before, in this turn
  if (!isLight(result)) return {};
  await nextTurn();
  const whole = await decode(result);
  await nextTurn();
  return (JSON.parse(whole) ?? {}) as Record<string, unknown>;
}

const typeOf = (given: unknown, otherwise: string): string =>
  typeof given === 'string' && /^[\w.+-]{1,64}\/[\w.+-]{1,64}(; ?charset=[\w-]{1,32})?$/.test(given)
    ? given
    : otherwise;
