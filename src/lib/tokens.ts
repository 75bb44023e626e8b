import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Keyring } from './seal.ts';

/** The contents of a token: its subject (`sub`), audience (`aud`), expiry (`exp`, seconds), and what its purpose adds. */
export interface Claims {
  sub: string;
  aud: string;
  exp: number;
  readonly [more: string]: unknown;
}

const MARK = 15;

type TokenFault = 'malformed' | 'forged' | 'expired';

/**
 * Signed, expiring tokens in the JWT form that clients of this interface use. There is one algorithm: the header is
 * compared with the expected one and never interpreted. Each purpose has a key of its own, so that a token for one
 * purpose counts as forged for another.
 */
export function tokens(ring: () => Keyring, now: () => number = Date.now, purpose = 'session tokens') {
  const signature = (keyId: string, text: string) =>
    createHmac('sha256', ring().derive(purpose, keyId)).update(text).digest();
  const headerOf = (keyId: string) => encode({ alg: 'HS256', typ: 'JWT', kid: keyId });

  /** Not a token's text, which has no line break. */
  const markOf = (keyId: string, words: readonly string[]) =>
    BigInt(`0x${signature(keyId, `mark\n${words.join('\n')}`).toString('hex')}`)
      .toString(36)
      .slice(-MARK)
      .padStart(MARK, '0');

  return {
    /** Fifteen letters and digits (77 bits) that only this service can make for these words, where a token would be too long. */
    mark: (...words: string[]): string => markOf(ring().current, words),

    isMark(given: string, ...words: string[]): boolean {
      const bytes = Buffer.from(given);
      return ring().ids.some((id) => {
        const expected = Buffer.from(markOf(id, words));
        return bytes.length === expected.length && timingSafeEqual(bytes, expected);
      });
    },

    sign(claims: Claims): string {
      const keyId = ring().current;
      const text = `${headerOf(keyId)}.${encode(claims)}`;
      return `${text}.${signature(keyId, text).toString('base64url')}`;
    },

    /** The claims of a token, if this service signed it and it has not expired. */
    verify(token: string): Claims | TokenFault {
      const [header, payload, given, ...rest] = token.split('.');
      if (!header || !payload || !given || rest.length > 0) return 'malformed';
      const keyId = ring().ids.find((id) => headerOf(id) === header);
      if (!keyId) return 'forged';
      const expected = signature(keyId, `${header}.${payload}`);
      const actual = Buffer.from(given, 'base64url');
      if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return 'forged';
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Claims; // trusted: the signature was verified
      return claims.exp * 1000 > now() ? claims : 'expired';
    },
  };
}

export type Tokens = ReturnType<typeof tokens>;

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
