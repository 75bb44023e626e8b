import { errors } from '../errors.ts';

/**
 * A JSON body. Clients send the header and no body when every field is optional: that is `{}`. Refused before a
 * schema sees them: keys that reach for an object's prototype, and NUL, which PostgreSQL does not store.
 */
export function parseBody(text: string): unknown {
  if (text.trim() === '') return {};
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw errors.bad_request({ detail: `The body is not JSON: ${(error as Error).message.slice(0, 200)}.` });
  }
  // Looking through everything costs as much as parsing it, and nearly no body holds these letters.
  if (/__proto__|constructor|\\u/.test(text)) refuseHostile(body);
  return body;
}

/** With a list of what is left to see, not by recursion: a body of brackets is nested deeper than a stack is. */
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
