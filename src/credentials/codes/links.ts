/** What ends an address in a text, also in scripts that put no blank after it. */
const ends = /[\s<>"'`()[\]{}，。、；：！？）】」』]/;
const mailCharacter = /[\w.+%-]/;
const schemeCharacter = /[a-z\d+.-]/i;
const longestMail = 254;
const longestScheme = 12;

/**
 * A text with blanks in the place of web addresses and mail addresses, which have numbers of their own. The `@` before a host that binds a
 * code to it (`@shop.example #123456`) stays.
 */
export function withoutLinks(text: string): string {
  const parts: string[] = [];
  let at = 0;
  const blank = (from: number, to: number) => {
    if (from > at) parts.push(text.slice(at, from));
    if (to > Math.max(at, from)) parts.push(' '.repeat(to - Math.max(at, from)));
    at = Math.max(at, to);
  };
  for (const { index, 0: found } of text.matchAll(/:\/\/|www\.|@/gi)) {
    if (index < at) continue;
    if (found === '@') {
      const from = back(text, index, mailCharacter, longestMail);
      if (from === index) continue;
      let to = index + 1;
      while (to < text.length && to - index < longestMail && mailCharacter.test(text[to]!)) to++;
      blank(from, to);
      continue;
    }
    let to = index + found.length;
    while (to < text.length && !ends.test(text[to]!)) to++;
    blank(found === '://' ? back(text, index, schemeCharacter, longestScheme) : index, to);
  }
  parts.push(text.slice(at));
  return parts.join('');
}

function back(text: string, from: number, character: RegExp, most: number): number {
  let at = from;
  while (at > 0 && from - at < most && character.test(text[at - 1]!)) at--;
  return at;
}
