import { createHash, randomUUID } from 'node:crypto';
import type { Passenger } from '../lib/caller.ts';
import type { Tokens } from '../lib/tokens.ts';

/** The header with the credential. Only values signed by a node are accepted. */
export const credentialHeader = 'x-corral-node';

/** As long as a request needs from one node to the next, on the database's clock. */
const lifeSeconds = 30;

/** What a credential is bound to: this request to this node. */
export interface Journey {
  to: string;
  method: string;
  /** Path and query. */
  url: string;
  headers?: Partial<Record<'content-type' | 'content-length' | 'transfer-encoding', string | undefined>>;
}

interface Note {
  bound: string;
  length: number | null;
  passenger: Passenger;
}

type CredentialFault = 'malformed' | 'forged' | 'expired' | 'for another node' | 'for another request' | 'used before';

/**
 * The credential of a request between nodes: a signed note with the receiving node, the method, URL, type and length of
 * the request, and its caller. It is valid once. A body that a node itself makes is bound by its digest; a client's body
 * cannot be, since it streams through, and is bound by its length where the client sends one. Signed with a key of its
 * own purpose, so that no token of a client is valid as a credential.
 */
export function credentials({ tokens, now }: { tokens: Tokens; now: () => number }) {
  /** Credentials that were used on this node, until they expire. Contains only values signed by a node. */
  const used = new Map<string, number>();
  let sweepAt = 0;

  function useOnce(nonce: string, exp: number): boolean {
    const seconds = now() / 1000;
    if (seconds > sweepAt) {
      for (const [old, end] of used) if (end < seconds) used.delete(old);
      sweepAt = seconds + lifeSeconds;
    }
    if (used.has(nonce)) return false;
    used.set(nonce, exp);
    return true;
  }

  return {
    write(journey: Journey, passenger: Passenger, body?: string): string {
      const speaksFor = body === undefined ? passenger : { ...passenger, bodyDigest: digestOf(body) };
      const note = JSON.stringify({ bound: bind(journey), length: lengthOf(journey), passenger: speaksFor });
      const exp = Math.floor(now() / 1000) + lifeSeconds;
      return tokens.sign({ sub: note, aud: journey.to, exp, nonce: randomUUID() });
    },

    read(credential: string, journey: Journey): Passenger | CredentialFault {
      const claims = tokens.verify(credential);
      if (typeof claims === 'string') return claims;
      if (claims.aud !== journey.to) return 'for another node';
      const { bound, length, passenger } = JSON.parse(claims.sub) as Note; // trusted: the signature was verified
      if (bound !== bind(journey) || (length !== null && length !== lengthOf(journey))) return 'for another request';
      return useOnce(String(claims['nonce']), claims.exp) ? passenger : 'used before';
    },
  };
}

export type Credentials = ReturnType<typeof credentials>;

const digestOf = (body: string) => createHash('sha256').update(body).digest('base64url');

const bind = ({ method, url, headers = {} }: Journey) =>
  digestOf(JSON.stringify([method, url, headers['content-type'] ?? '']));

/** Clients and libraries send either a length of 0 or none, so both count as 0. Null: a chunked body, which has no known length yet. */
const lengthOf = ({ headers = {} }: Journey) =>
  headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : null;
