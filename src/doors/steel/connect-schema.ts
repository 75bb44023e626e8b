import { errors } from '../../errors.ts';
import type { Wish } from '../query-schema.ts';
import { uuid } from './schema.ts';

/**
 * Reads the address of a client that was written for the other service. Its only option is `sessionId`: a session that runs, or the id
 * of the new session, which is a UUID of the client's choice.
 */
export function wishOfSteel(search: Iterable<[string, string]>): Wish {
  let sessionId = '';
  for (const [name, value] of search) {
    if (name === 'sessionId') sessionId = value;
    else
      throw errors.feature_not_available({
        field: name.slice(0, 64).replace(/[^\x20-\x7e]/g, '?'),
        remedy: 'Send the options with POST /v1/sessions, and connect to the new session.',
      });
  }
  const made = { kind: 'new' as const, request: {}, keepAlive: false };
  if (sessionId === '') return made;
  if (!uuid.test(sessionId)) return { kind: 'session', session: sessionId };
  return { kind: 'session', session: sessionId, otherwise: { ...made, request: { name: sessionId } } };
}
