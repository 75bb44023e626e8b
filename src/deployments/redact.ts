/** Shorter values, such as `1` or `true`, are no secrets, and replacing them would garble every line. */
const shortest = 6;
/** A line of a value, such as of a key in PEM, is hidden by itself from this length on. */
const shortestLine = 16;
/** With the length of a head, this bounds the states that a text is read with. */
const mostSecrets = 400;
/** A longer value is hidden from here on as far as it is there: a line that is cut may have the beginning of one only. */
const headLength = 64;
const hidden = '[redacted]';

/**
 * Replaces the values of environment variables wherever a line has them: an app that prints its configuration must not put its secrets into
 * a log that every key of the project reads. A value is also found as JSON has it, and line by line.
 *
 * Values and text are both an app's choice. So a text is read once, for all secrets at the same time, however many of them it nearly has.
 */
export function redactor(values: Iterable<string>): (text: string) => string {
  const [whole, parts] = [new Set<string>(), new Set<string>()];
  for (const value of values) {
    if (value.length < shortest) continue;
    whole.add(value);
    const escaped = JSON.stringify(value).slice(1, -1);
    if (escaped !== value) parts.add(escaped);
    if (!value.includes('\n')) continue;
    for (const line of value.split(/\r?\n/)) if (line.length >= shortestLine) parts.add(line);
  }
  const secrets = [...new Set([...whole, ...parts])].slice(0, mostSecrets);
  if (secrets.length === 0) return (text) => text;
  const placesIn = finder(secrets);
  return (text) => (text.length < shortest ? text : withoutPlaces(text, placesIn(text)));
}

/** A part of a text: from where, and to where. */
type Place = [from: number, to: number];

function withoutPlaces(text: string, places: Place[]): string {
  let [out, at] = ['', 0];
  for (const [from, to] of places) {
    out += text.slice(at, from) + hidden;
    at = to;
  }
  return out + text.slice(at);
}

/**
 * Finds all secrets in one pass (Aho and Corasick): a state is the longest end of what was read that is the beginning of a head. Where the
 * head of a longer secret ends, the rest of it is compared while the pass goes on.
 */
function finder(secrets: string[]): (text: string) => Place[] {
  const { next, endsHere, mayBegin } = automaton(secrets.map((secret) => secret.slice(0, headLength)));
  const long = secrets.filter((secret) => secret.length > headLength).sort();
  /** The secrets with the head that a state stands for, as a part of `long`. */
  const withHead = new Map<number, Place>();
  for (const [at, secret] of long.entries()) {
    let state = 0;
    for (let i = 0; i < headLength; i++) state = next(state, secret.charCodeAt(i));
    withHead.set(state, [withHead.get(state)?.[0] ?? at, at + 1]);
  }

  return (text) => {
    const places: Place[] = [];
    let state = 0;
    let [first, end, from] = [0, 0, 0]; // the long secrets that go on here, as a part of `long`, and where they began
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (first < end) {
        const place = at - from;
        if (unitAt(long[first]!, place) !== unit) first = firstWith(unit, long, place, first, end);
        if (first < end && unitAt(long[end - 1]!, place) !== unit) end = firstWith(unit + 1, long, place, first, end);
        if (first === end) add(places, from, at);
      }
      if (state === 0 && mayBegin[unit & 0xff] === 0) continue;
      state = next(state, unit);
      const length = endsHere[state]!;
      if (length === 0 || first < end) continue;
      const among = length === headLength ? withHead.get(state) : undefined;
      if (among) [first, end, from] = [among[0], among[1], at + 1 - length];
      else add(places, at + 1 - length, at + 1);
    }
    if (first < end) add(places, from, text.length);
    return places;
  };
}

/** What is past its end compares as less than any character, as it does in a sorted list. */
const unitAt = (secret: string, place: number) => (place < secret.length ? secret.charCodeAt(place) : -1);

/** In a sorted part of `long`, alike up to a place, the first that has this character or a later one there. */
function firstWith(unit: number, long: string[], place: number, first: number, end: number): number {
  let [low, high] = [first, end];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (unitAt(long[middle]!, place) < unit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Adds a place, together with those before it that it overlaps. */
function add(places: Place[], from: number, to: number): void {
  let start = from;
  for (let last = places.at(-1); last !== undefined && last[1] > start; last = places.at(-1)) {
    start = Math.min(start, last[0]);
    places.pop();
  }
  places.push([start, to]);
}

/** The states of all heads, in the order of their length, so that what a state falls back to is there before it. */
function automaton(heads: string[]) {
  const most = heads.reduce((sum, head) => sum + head.length, 1);
  const fallback = new Int32Array(most);
  /** How long the longest head is that ends in a state; 0 for none. */
  const endsHere = new Uint8Array(most);
  const mayBegin = new Uint8Array(256);
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
      if (depth === 0) mayBegin[unit & 0xff] = 1;
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
  // An app chooses the keys. It does not know the factor, so it cannot choose keys that are all in one place.
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
