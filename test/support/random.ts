export type Random = (below: number) => number;

/** Always the same numbers, so that a failure comes back. */
export function seededRandom(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** What could make a reader of JSON lose count. */
export const TRICKY = [
  '"',
  '\\',
  '\\"',
  ',"sessionId":"',
  '"}',
  '{"id":',
  '}',
  ']',
  ':',
  ',',
  'é',
  '\u2028',
  '😀',
  ' ',
  'a',
];

export function trickyText(random: Random): string {
  return Array.from({ length: random(6) }, () => TRICKY[random(TRICKY.length)]).join('');
}

export function trickyValue(random: Random, depth = 0): unknown {
  const kind = random(depth > 3 ? 5 : 7);
  if (kind === 0) return random(2) === 1;
  if (kind === 1) return null;
  if (kind === 2) return (random(2000) - 1000) * 10 ** (random(20) - 10);
  if (kind < 5) return trickyText(random);
  const items = Array.from({ length: random(4) }, () => trickyValue(random, depth + 1));
  return kind === 5 ? items : Object.fromEntries(items.map((item) => [trickyText(random), item]));
}
