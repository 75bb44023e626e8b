/** The masked characters of an address or a number, in a row. */
const hiding = /[*•·…●xX]{2}/u;
const hidingAndAfter = /[*•·…●xX]{2,}[\p{L}\p{N}._%+*•·…●@-]*(?:\s?[\d*•●]{2,})*/uy;
const hidingInNumber = /[*•●xX]{2,}[\d\s*•●xX-]*/uy;
const beforeHiding = /[\p{L}\p{N}._%+*•·…-]/u;

/** An address of mail, from the character before its @ on. */
const mail = /[\p{L}\p{N}._%+-]@[\p{L}\p{N}.-]+\.\p{L}{2,}/u;
const beforeAt = /[\p{L}\p{N}._%+-]/u;

const ending = /(?:ending in|endet auf|…|\.{3})\s?\d{2,4}/u;

export const hasMail = (text: string): boolean => mail.test(text);

/**
 * `a***@example.com`, `•••• 42`, `+49 *** 17`: where a code goes. It is found by what only such a text has, and read from there to both
 * sides: a search for the text before the mask would restart at each letter of the page.
 */
export function maskedTarget(text: string): string | undefined {
  const [first] = [maskedAt(text), mailAt(text), endingAt(text)]
    .filter((found) => found !== undefined)
    .sort((a, b) => a.from - b.from);
  return first && text.slice(first.from, first.to).trim();
}

interface Found {
  from: number;
  to: number;
}

function maskedAt(text: string): Found | undefined {
  const at = text.search(hiding);
  if (at === -1) return undefined;
  const from = startOfRun(text, at, beforeHiding);
  const number = numberBefore(text, at);
  const pattern = number < from ? hidingInNumber : hidingAndAfter;
  pattern.lastIndex = at;
  return pattern.test(text) ? { from: Math.min(number, from), to: pattern.lastIndex } : { from, to: at + 2 };
}

/** The start of a number before its masked part, such as `+49 (0)`. */
function numberBefore(text: string, at: number): number {
  let from = startOfRun(text, at, /[\d\s()-]/);
  while (from < at && !/\d/.test(text[from]!)) from++;
  return from === at || !/[*•●xX]/.test(text[at]!) ? at : from - (text[from - 1] === '+' ? 1 : 0);
}

function mailAt(text: string): Found | undefined {
  const found = mail.exec(text);
  return found ? { from: startOfRun(text, found.index, beforeAt), to: found.index + found[0].length } : undefined;
}

function endingAt(text: string): Found | undefined {
  const found = ending.exec(text);
  return found ? { from: found.index, to: found.index + found[0].length } : undefined;
}

/** Where the characters before a place begin that are all of one kind. */
function startOfRun(text: string, at: number, kind: RegExp): number {
  let from = at;
  while (from > 0) {
    const isPair = from > 1 && /[\uDC00-\uDFFF]/.test(text[from - 1]!);
    const one = text.slice(from - (isPair ? 2 : 1), from);
    if (!kind.test(one)) break;
    from -= one.length;
  }
  return from;
}
