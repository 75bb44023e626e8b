/** The name that `word` was probably meant to be: the one with the fewest letters wrong, if at most a third of them are. */
export function nearest(word: string, names: Iterable<string>): string | undefined {
  let best: string | undefined;
  let fewest = Math.floor(Math.max(word.length, 3) / 3) + 1;
  for (const name of names) {
    const wrong = distance(word.toLowerCase(), name.toLowerCase(), fewest);
    if (wrong < fewest) [best, fewest] = [name, wrong];
  }
  return best;
}

/** Letters to insert, remove, replace or swap with the next; `enough` or more is answered as `enough`. */
function distance(a: string, b: string, enough: number): number {
  if (Math.abs(a.length - b.length) >= enough) return enough;
  let last: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, replaced);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        next[j] = Math.min(next[j]!, last[j - 2]! + 1);
    }
    [last, row] = [row, next];
  }
  return Math.min(row[b.length]!, enough);
}
