import type { IncomingMessage } from 'node:http';
import { credentialHeader } from './credential.ts';

/** Between two neighbours only (RFC 9110, 7.6.1). */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** What stays behind besides, since it is written anew. */
const staysHere = new Set(['host', 'expect', credentialHeader]);

/**
 * A client's headers as they go to the next node: name, value, name, value. Its key stays behind, the credential stands for it; but
 * where it was let in by a token in the address, an Authorization is not ours: it is for a server that the session will ask.
 */
export function passedOnHeaders({ url = '', rawHeaders, headers }: IncomingMessage): string[] {
  const cameWithKey = !url.startsWith('/browser/');
  const named = namedByConnection(headers.connection);
  const kept: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    if (cameWithKey && name === 'authorization') continue;
    if (!hopByHop.has(name) && !staysHere.has(name) && !named.has(name))
      kept.push(rawHeaders[at]!, rawHeaders[at + 1]!);
  }
  return kept;
}

/** A node's answer as it goes to the client. */
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

const namedByConnection = (value: string | string[] | undefined) =>
  new Set(
    String(value ?? '')
      .toLowerCase()
      .split(/\s*,\s*/),
  );
