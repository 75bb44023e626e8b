import { isIPv6 } from 'node:net';
import { errors, type ServiceError } from '../errors.ts';

/** So many keys that are not known may come from one address before it has to wait. A person mistypes a few; a script guesses thousands. */
const FREE = 20;
/** One more is free again after this. */
const ONE_PER_MS = 3000;
/** Addresses and keys that are remembered. What is full forgets the older half: strangers must not fill the memory. */
const MOST_ADDRESSES = 20_000;
const MOST_KEYS = 20_000;
/** A key that was not known a moment ago is not asked for again. One that is made now is another: keys are random. */
const UNKNOWN_MS = 60_000;

/**
 * Who comes with keys that are not ours, by address. Each such key costs a query, once; from an address that sends many it costs none, since
 * it is turned away before. Only wrong keys count and only wrong keys are turned away: who shares an address with a guesser and
 * has a key that is known comes in as always.
 */
export function strangers(now: () => number = Date.now) {
  const addresses = bounded<{ count: number; at: number }>(MOST_ADDRESSES);
  const unknown = bounded<number>(MOST_KEYS);

  /** What is left of the count after a while without wrong keys. */
  function countOf(place: string): number {
    const known = addresses.get(place);
    return known ? Math.max(0, known.count - (now() - known.at) / ONE_PER_MS) : 0;
  }

  return {
    /** The refusal, when this address has to wait before it may try another key that we do not know. */
    refusal(address: string): ServiceError | undefined {
      const over = countOf(placeOf(address)) + 1 - FREE;
      if (over <= 0) return undefined;
      const seconds = Math.ceil((over * ONE_PER_MS) / 1000);
      return errors.too_many_bad_keys({ seconds }, { headers: { 'Retry-After': String(seconds) } });
    },

    /** A key from here was not known. */
    count(address: string, keyHash: string): void {
      const place = placeOf(address);
      // Not more than it takes to wait a few minutes: who stops guessing is let try again.
      const count = Math.min(countOf(place) + 1, 3 * FREE);
      addresses.set(place, { count, at: now() });
      unknown.set(keyHash, now() + UNKNOWN_MS);
    },

    /** Whether this key was not known a moment ago. */
    isUnknown: (keyHash: string): boolean => (unknown.get(keyHash) ?? 0) > now(),

    /** Keys have changed: one that was not known may be now. */
    forgetKeys: () => unknown.clear(),
  };
}

/**
 * Remembers the newest `most` or so, in two halves: the older is dropped whole when the newer is full. Taking the oldest entry out of one
 * map, one at a time, took V8 a millisecond each.
 */
function bounded<T>(most: number) {
  let [older, newer] = [new Map<string, T>(), new Map<string, T>()];
  return {
    get: (key: string): T | undefined => newer.get(key) ?? older.get(key),
    set(key: string, value: T): void {
      if (newer.size >= most / 2) [older, newer] = [newer, new Map()];
      newer.set(key, value);
    },
    clear(): void {
      [older, newer] = [new Map(), new Map()];
    },
  };
}

/** Who has one IPv6 address has its /64. */
export function placeOf(address: string): string {
  const bare = address.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
  if (!isIPv6(bare)) return bare;
  const [head = '', tail] = bare.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const missing = tail === undefined ? 0 : 8 - before.length - after.length - (after.at(-1)?.includes('.') ? 1 : 0);
  const groups = [...before, ...Array<string>(Math.max(0, missing)).fill('0'), ...after];
  return groups
    .slice(0, 4)
    .map((group) => (Number.parseInt(group, 16) || 0).toString(16))
    .join(':');
}
