import { errors } from '../errors.ts';

/**
 * Parses a JSON body. Clients send the header without a body when every field is optional; that is read as `{}`. Refuses,
 * before validation, keys that reach for an object's prototype, and NUL, which PostgreSQL does not store.
 */
export function parseBody(text: string): unknown {
  if (text.trim() === '') return {};
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw errors.bad_request({ detail: `The body is not JSON: ${(error as Error).message.slice(0, 200)}.` });
  }
  // Walking the whole body costs as much as parsing it, and very few bodies contain these letters.
  if (/__proto__|constructor|\\u/.test(text)) refuseHostile(body);
  return body;
}

/** Iterative, because a body of brackets can be nested deeper than the call stack. */
function refuseHostile(body: unknown) {
  const left = [body];
  while (left.length > 0) {
    const node = left.pop();
    if (typeof node === 'string' && node.includes('\0')) {
      throw errors.bad_request({ detail: 'The body has a NUL character (\\u0000); no field takes one.' });
    }
    if (typeof node !== 'object' || node === null) continue;
    for (const [key, value] of Object.entries(node)) {
      if (reachesForPrototype(key, value)) {
        throw errors.bad_request({ detail: `The body has a key '${key}'; no field is called that.` });
      }
      left.push(key, value);
    }
  }
}

const reachesForPrototype = (key: string, value: unknown) =>
  key === '__proto__' || (key === 'constructor' && typeof value === 'object' && value !== null && 'prototype' in value);
