import type { IncomingMessage } from 'node:http';
import { hopByHop, namedByConnection } from '../lib/hop-by-hop.ts';
import { keyHeaders } from '../lib/key-places.ts';
import { credentialHeader } from './credential.ts';

/** Further headers that are not forwarded, since they are set again. */
const staysHere = new Set(['host', 'expect', credentialHeader]);

const keys: ReadonlySet<string> = new Set(keyHeaders);

/**
 * A client's headers as they are forwarded: name, value, name, value. Its key is left out, since the credential replaces
 * it. Where the client authenticated with a token in the URL, its Authorization header is forwarded: it is for a server
 * that the session will call.
 */
export function passedOnHeaders({ url = '', rawHeaders, headers }: IncomingMessage): string[] {
  const cameWithKey = !url.startsWith('/browser/');
  const named = namedByConnection(headers.connection);
  const kept: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    if (cameWithKey && keys.has(name)) continue;
    if (!hopByHop.has(name) && !staysHere.has(name) && !named.has(name))
      kept.push(rawHeaders[at]!, rawHeaders[at + 1]!);
  }
  return kept;
}

/** The headers of a node's response, as they are sent to the client. */
export function answeredHeaders(
  headers: Record<string, string | string[] | undefined>,
): Record<string, string | string[]> {
  const named = namedByConnection(headers['connection']);
  return Object.fromEntries(
    Object.entries(headers).filter(
      (entry): entry is [string, string | string[]] =>
        entry[1] !== undefined && !hopByHop.has(entry[0]) && !named.has(entry[0]),
    ),
  );
}
