import { isIPv6 } from 'node:net';
import { errors, type ServiceError } from '../errors.ts';

/** How many unknown keys one address may send before it has to wait. A person mistypes a few; a script guesses thousands. */
const FREE = 20;
/** The count of an address decreases by one after this time. */
const ONE_PER_MS = 3000;
/** Bounds of the memory. When it is full, the older half is dropped, so that unknown clients cannot exhaust it. */
const MOST_ADDRESSES = 20_000;
const MOST_KEYS = 20_000;
/** How long a key that was not found is not looked up again. A key created during that time is a different one, since keys are random. */
const UNKNOWN_MS = 60_000;

/**
 * Counts unknown keys by address. Each unknown key costs one query; from an address that sent many it costs none, since
 * it is refused before. Only wrong keys are counted and refused: a client with a valid key is served even if it shares an
 * address with a guesser.
 */
export function strangers(now: () => number = Date.now) {
  const addresses = bounded<{ count: number; at: number }>(MOST_ADDRESSES);
  const unknown = bounded<number>(MOST_KEYS);

  /** The count after it decreased over the time without wrong keys. */
  function countOf(place: string): number {
    const known = addresses.get(place);
    return known ? Math.max(0, known.count - (now() - known.at) / ONE_PER_MS) : 0;
  }

  return {
    /** The refusal, when this address has to wait before it may try another unknown key. */
    refusal(address: string): ServiceError | undefined {
      const over = countOf(placeOf(address)) + 1 - FREE;
      if (over <= 0) return undefined;
      const seconds = Math.ceil((over * ONE_PER_MS) / 1000);
      return errors.too_many_bad_keys({ seconds }, { headers: { 'Retry-After': String(seconds) } });
    },

    /** Counts an unknown key from this address. */
    count(address: string, keyHash: string): void {
      const place = placeOf(address);
      // Capped at a wait of a few minutes, so that an address can try again after the guessing stops.
      const count = Math.min(countOf(place) + 1, 3 * FREE);
      addresses.set(place, { count, at: now() });
      unknown.set(keyHash, now() + UNKNOWN_MS);
    },

    /** Whether this key was looked up and not found in the last minute. */
    isUnknown: (keyHash: string): boolean => (unknown.get(keyHash) ?? 0) > now(),

    /** Called when keys have changed: a key that was unknown may exist now. */
    forgetKeys: () => unknown.clear(),
  };
}

/**
 * Keeps about the newest `most` entries, in two halves: the older half is dropped when the newer is full. Deleting the
 * oldest entries of one map one at a time took V8 a millisecond each.
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

/** An IPv6 address counts as its /64, because its owner usually has all of it. */
export function placeOf(address: string): string {
  const bare = address.split('%', 1)[0]!.replace(/^::ffff:(?=\d+\.)/i, '');
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
