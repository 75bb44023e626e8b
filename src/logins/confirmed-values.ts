import { createHmac, timingSafeEqual } from 'node:crypto';
import { CannotOpen } from '../lib/seal.ts';
import type { KeySource } from '../store/secrets.ts';

/** The names of the values that a person typed at a host of an identity provider, each with the mark of its value. */
export type ConfirmedNames = Record<string, string>;

interface Place {
  connectionId: string;
  host: string;
  name: string;
}

const purpose = 'values confirmed in logins';

/**
 * Marks of values that people typed at hosts of identity providers: keyed hashes, since a name says nothing about a value that was changed
 * later. A mark begins with the id of its key. If that key is removed, the value counts as another one, and a person is asked.
 */
export function confirmedValues(keys: KeySource) {
  const hash = (keyId: string, { connectionId, host, name }: Place, value: string): Buffer =>
    createHmac('sha256', keys.ring().derive(purpose, keyId))
      .update(JSON.stringify([connectionId, host, name, value]))
      .digest();

  return {
    mark(place: Place, value: string): string {
      const keyId = keys.ring().current;
      return `${keyId}.${hash(keyId, place, value).toString('base64url')}`;
    },

    isMarked(mark: string, place: Place, value: string): boolean {
      const [keyId = '', text = ''] = mark.split('.');
      const known = Buffer.from(text, 'base64url');
      try {
        const found = hash(keyId, place, value);
        return known.length === found.length && timingSafeEqual(known, found);
      } catch (error) {
        if (error instanceof CannotOpen) return false;
        throw error;
      }
    },
  };
}

export type ConfirmedValues = ReturnType<typeof confirmedValues>;
