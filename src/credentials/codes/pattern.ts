/**
 * Whether a text has a part that a pattern describes. The comparison ignores case, and `*` matches any characters. The first place of each part
 * is taken, so a text is read once.
 */
export function fitsPattern(text: string, pattern: string): boolean {
  const lower = text.slice(0, mostCharacters).toLowerCase();
  let at = 0;
  for (const part of pattern.slice(0, mostOfPattern).toLowerCase().split('*')) {
    const found = lower.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return true;
}

/** Characters of a header that are looked at, and of a pattern. */
const mostCharacters = 4096;
const mostOfPattern = 255;
