import { randomBytes } from 'node:crypto';

const letters = 'abcdefghijklmnopqrstuvwxyz';
const alphabet = `${letters}0123456789`;

/** An id in the form that clients of this interface know: 24 lower-case characters, a letter first, 123 random bits. */
export function newId(prefix = ''): string {
  return prefix + pick(letters, 1) + pick(alphabet, 23);
}

/** `length` characters of `from`, each equally likely: bytes that would favour some characters are discarded. */
export function pick(from: string, length: number): string {
  const limit = 256 - (256 % from.length);
  let picked = '';
  while (picked.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < limit && picked.length < length) picked += from[byte % from.length];
    }
  }
  return picked;
}
