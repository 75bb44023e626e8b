/** A part of a text: its first character, and the one after its last. */
export type Place = [from: number, to: number];

/** The number of a state and a character are one key of 32 bits. */
const MOST_STATES = 65_535;

/**
 * Finds all of the given texts in one pass over another text (Aho and Corasick), in linear time for all inputs. A state is the longest end
 * of the text so far that is the beginning of a head: the first `headLength` characters of a given text. Where the head of a longer one
 * ends, the rest is compared while the pass continues, and the place reaches as far as the two are equal. So a text that was cut is found too.
 *
 * A given text has at least two characters. All heads together have at most 65,534 characters.
 */
export function textFinder(wanted: Iterable<string>, headLength: number): (text: string) => Place[] {
  const all = [...new Set(wanted)];
  const { next, endsHere, mayBegin } = automaton(
    all.map((one) => one.slice(0, headLength)),
    headLength,
  );
  const long = all.filter((one) => one.length > headLength).sort();
  /** By the state of a head: the texts that have it, as a part of `long`, and the length of the longest one. */
  const withHead = new Map<number, [first: number, end: number, longest: number]>();
  for (const [at, one] of long.entries()) {
    let state = 0;
    for (let i = 0; i < headLength; i++) state = next(state, one.charCodeAt(i));
    const [first, , longest] = withHead.get(state) ?? [at, at, 0];
    withHead.set(state, [first, at + 1, Math.max(longest, one.length)]);
  }

  return (text) => {
    const places: Place[] = [];
    let state = 0;
    let [first, end, from] = [0, 0, 0]; // the long texts that are compared here, as a part of `long`, and where they begin
    let reach = 0; // where other long texts can end that begin in the compared part; they are not compared
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (first < end) {
        const place = at - from;
        if (unitAt(long[first]!, place) !== unit) first = firstWith(unit, long, place, first, end);
        if (first < end && unitAt(long[end - 1]!, place) !== unit) end = firstWith(unit + 1, long, place, first, end);
        if (first === end) add(places, from, Math.min(Math.max(at, reach), text.length));
      }
      if (state === 0 && mayBegin[pairOf(unit, text.charCodeAt(at + 1))] === 0) continue;
      state = next(state, unit);
      const length = endsHere[state]!;
      if (length === 0) continue;
      const start = at + 1 - length;
      const among = length === headLength ? withHead.get(state) : undefined;
      if (first < end) reach = Math.max(reach, start + (among?.[2] ?? 0));
      else if (among) [first, end, from, reach] = [among[0], among[1], start, 0];
      else add(places, start, at + 1);
    }
    if (first < end) add(places, from, text.length);
    return places;
  };
}

/** A text with something else in the places. */
export function withoutPlaces(text: string, places: readonly Place[], instead: string): string {
  let [out, at] = ['', 0];
  for (const [from, to] of places) {
    out += text.slice(at, from) + instead;
    at = to;
  }
  return out + text.slice(at);
}

/** A text past its end compares as less than any character, as it does in a sorted list. */
const unitAt = (one: string, place: number) => (place < one.length ? one.charCodeAt(place) : -1);

/** In a part of a sorted list, equal up to a place, the first text that has this character or a later one there. */
function firstWith(unit: number, long: readonly string[], place: number, first: number, end: number): number {
  let [low, high] = [first, end];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (unitAt(long[middle]!, place) < unit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Adds a place, joined with the places before it that it overlaps. */
function add(places: Place[], from: number, to: number): void {
  let [start, end] = [from, to];
  for (let last = places.at(-1); last !== undefined && last[1] > start; last = places.at(-1)) {
    start = Math.min(start, last[0]);
    end = Math.max(end, last[1]);
    places.pop();
  }
  places.push([start, end]);
}

/** Two characters as a number of 16 bits. Others may have the same number. */
const pairOf = (one: number, other: number) => (one ^ (other << 8)) & 0xffff;

/** The states of all heads, in the order of their length, so that the state to fall back to exists before the state that falls back. */
function automaton(heads: readonly string[], headLength: number) {
  const most = heads.reduce((sum, head) => sum + head.length, 1);
  if (most > MOST_STATES) throw new RangeError(`${most} characters are more than a text can be searched for.`);
  const fallback = new Int32Array(most);
  /** The length of the longest head that ends in a state; 0 for none. */
  const endsHere = new Uint8Array(most);
  /** Whether a head begins with two characters. In most places of a text none does, and a look at the table below takes longer. */
  const mayBegin = new Uint8Array(2 ** 16);
  const steps = stepTable(most);

  function next(state: number, unit: number): number {
    for (let from = state; ; from = fallback[from]!) {
      const to = steps.get(from, unit);
      if (to !== 0 || from === 0) return to;
    }
  }

  let count = 1;
  const reached = new Int32Array(heads.length);
  for (let depth = 0; depth < headLength; depth++) {
    for (const [at, head] of heads.entries()) {
      if (depth >= head.length) continue;
      const [from, unit] = [reached[at]!, head.charCodeAt(depth)];
      if (depth === 0) mayBegin[pairOf(unit, head.charCodeAt(1))] = 1;
      let to = steps.get(from, unit);
      if (to === 0) {
        to = count++;
        fallback[to] = from === 0 ? 0 : next(fallback[from]!, unit);
        endsHere[to] = endsHere[fallback[to]!]!;
        steps.set(from, unit, to);
      }
      if (depth === head.length - 1) endsHere[to] = head.length;
      reached[at] = to;
    }
  }
  return { next, endsHere, mayBegin };
}

/** Which state follows on a state and a character; 0 for none. A table without objects, since every character of a text asks it. */
function stepTable(most: number) {
  const bits = Math.ceil(Math.log2(most)) + 1;
  const last = 2 ** bits - 1;
  const keys = new Int32Array(last + 1).fill(-1);
  const values = new Int32Array(last + 1);
  // A tenant chooses the keys. The factor is random, so that it cannot choose keys that are all in one place.
  const factor = Math.floor(Math.random() * 2 ** 31) * 2 + 1;
  const placeOf = (key: number) => {
    let at = Math.imul(key, factor) >>> (32 - bits);
    while (keys[at] !== key && keys[at] !== -1) at = (at + 1) & last;
    return at;
  };
  return {
    get(state: number, unit: number): number {
      return values[placeOf((state << 16) | unit)]!;
    },
    set(state: number, unit: number, to: number): void {
      const key = (state << 16) | unit;
      const at = placeOf(key);
      keys[at] = key;
      values[at] = to;
    },
  };
}
