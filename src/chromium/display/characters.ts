/**
 * The characters for which a headful session's display has a key. The live view's page imports this module too, so it uses nothing of Node.
 */

/** There are not enough keys for all letters; no alphabet in use has these. */
const RARE = 'ĔĕĬĭŎŏĸĿŀŉŊŋŦŧſĲĳЀЍѐѝ\u038b\u038d\u03a2';

export const onOrdinaryKeys = range(0xa1, 0xff).filter((codePoint) => codePoint !== 0xad); // Latin-1 without its soft hyphen

export const onSpareKeys = [
  ...range(0x100, 0x17f), // Latin Extended-A
  ...range(0x218, 0x21b), // Romanian
  ...range(0x386, 0x3ce), // Greek
  ...range(0x400, 0x45f), // Cyrillic
  ...range(0x490, 0x491), // Ukrainian
  ...range(0x2013, 0x2014), // dashes
  ...range(0x2018, 0x201e), // quotation marks
  0x2026,
  0x20ac, // the euro
].filter((codePoint) => !RARE.includes(String.fromCharCode(codePoint)));

const typeable = new Set([...onOrdinaryKeys, ...onSpareKeys].map((codePoint) => String.fromCodePoint(codePoint)));

/** Whether a key of the display writes the character. */
export function isTypeable(character: string): boolean {
  return /^[\x20-\x7e\n\r\t]$/.test(character) || typeable.has(character);
}

/** X11's keysym of a character: the code point up to Latin-1, with an offset beyond. */
export const keysymOf = (codePoint: number): number => (codePoint <= 0xff ? codePoint : codePoint + 0x1000000);

export function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
