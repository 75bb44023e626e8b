const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * A step is a look at one byte; a native search takes as long as SEARCH_STEPS of them when it finds its byte at once. All of them take less
 * than 50 ms.
 */
const MOST_STEPS = 4_000_000;
const SEARCH_STEPS = 10;
/** No escape and no character is longer: `\u0000` has 6 bytes. */
const LONGEST_UNIT = 6;

/**
 * JSON with its long strings cut to about `most` bytes, each with a mark at its end that gives the number of removed bytes. Nothing is
 * parsed, so that a list of a few very long addresses is read in a few milliseconds. Undefined if there are too many strings, quotes and
 * backslashes for that. The bytes need not be JSON.
 */
export function withShortStrings(json: Buffer, most: number): Buffer | undefined {
  const kept: Buffer[] = [];
  let steps = 0;
  let from = 0;
  for (let open = json.indexOf(QUOTE); open !== -1;) {
    let close = open;
    steps += SEARCH_STEPS; // for the quote that opens
    do {
      steps += SEARCH_STEPS;
      close = json.indexOf(QUOTE, close + 1);
      if (close === -1) close = json.length;
      let before = close - 1;
      const least = Math.max(open, before - (MOST_STEPS - steps));
      while (before > least && json[before] === BACKSLASH) before -= 1;
      steps += close - before;
      if (steps > MOST_STEPS) return undefined;
      if ((close - before) % 2 === 1) break; // an even number of backslashes: the quote is not escaped
    } while (close < json.length);
    if (close - open > most + LONGEST_UNIT) {
      const end = boundary(json, open + 1, open + 1 + most);
      kept.push(json.subarray(from, end), Buffer.from(`… (${close - end} bytes more)`));
      from = close;
    }

    open = close >= json.length ? -1 : json.indexOf(QUOTE, close + 1);
  }
  return kept.length === 0 ? json : Buffer.concat([...kept, json.subarray(from)]);
}

/** A position at or before `end` where neither an escape nor a character is cut in two. */
function boundary(json: Buffer, start: number, end: number): number {
  let at = end;
  while (at > start && at > end - 4 && (json[at]! & 0xc0) === 0x80) at -= 1; // within a character of several bytes
  // The last backslash before the position that begins an escape. Backslashes in a row are pairs, except for the last one of an odd number.
  for (let last = at - 1; last >= Math.max(start, at - LONGEST_UNIT); last--) {
    if (json[last] !== BACKSLASH) continue;
    let first = last;
    while (first > start && json[first - 1] === BACKSLASH) first -= 1;
    const begins = (last - first) % 2 === 0;
    const length = json[last + 1] === 0x75 ? LONGEST_UNIT : 2;
    return begins && last + length > at ? last : at;
  }
  return at;
}
