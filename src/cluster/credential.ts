import { createHash } from 'node:crypto';
import type { Tokens } from '../lib/tokens.ts';

/** Carries the credential. What comes under this name from anybody else is thrown away. */
export const credentialHeader = 'x-corral-node';

/** As much as a request needs from one node to the next, on the database's clock. */
const lifeSeconds = 30;

/** What the first node found out about a request, so that the second neither asks nor records it again. */
export interface Passenger {
  requestId: string;
  clientIp: string;
  caller: { keyId: string; keyName: string; projectId: string | null } | null;
  project: { id: string; name: string } | null;
}

/** What a credential is good for: this request to this node. */
export interface Journey {
  to: string;
  method: string;
  /** Path and query. */
  url: string;
}

export type CredentialFault = 'malformed' | 'forged' | 'expired' | 'for another node' | 'for another request';

/**
 * What one node shows another: a signed note that names the node it is for, the method and address it was written for, and
 * the caller it speaks for. Signed with a key of its own purpose, so that no token of a client is ever one of these.
 */
export function credentials({ tokens, now }: { tokens: Tokens; now: () => number }) {
  return {
    write({ to, method, url }: Journey, passenger: Passenger): string {
      const note = JSON.stringify({ bound: bind(method, url), passenger });
      return tokens.sign({ sub: note, aud: to, exp: Math.floor(now() / 1000) + lifeSeconds });
    },

    read(credential: string, { to, method, url }: Journey): Passenger | CredentialFault {
      const claims = tokens.verify(credential);
      if (typeof claims === 'string') return claims;
      if (claims.aud !== to) return 'for another node';
      const { bound, passenger } = JSON.parse(claims.sub) as { bound: string; passenger: Passenger }; // ours: we signed it
      return bound === bind(method, url) ? passenger : 'for another request';
    },
  };
}

export type Credentials = ReturnType<typeof credentials>;

const bind = (method: string, url: string) => createHash('sha256').update(`${method} ${url}`).digest('base64url');
