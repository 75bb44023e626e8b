/**
 * Functions that read untrusted text in one pass. The equivalent regular expressions restart their search at each character: 16 KiB of slashes
 * took half a second.
 */

/** The beginning of a text, as a copy: a part of a string keeps the whole string in memory. Half a character becomes U+FFFD. */
export function beginningOf(text: string, length: number): string {
  return text.length > length ? Buffer.from(text.slice(0, length)).toString() : text;
}

/** A text without what it has of a character at its end: a character, or an expression for one. */
export function withoutEnd(text: string, character: string | RegExp): string {
  const isOne = (one: string) => (typeof character === 'string' ? one === character : character.test(one));
  let end = text.length;
  while (end > 0 && isOne(text[end - 1]!)) end--;
  return text.slice(0, end);
}

/** The same, at its beginning. */
export function withoutStart(text: string, character: string): string {
  let start = 0;
  while (text[start] === character) start++;
  return text.slice(start);
}

/** The items of a list with commas, such as a header's: without blanks around them, and without empty ones. */
export function commaList(text: string): string[] {
  return text.split(',').flatMap((item) => item.trim() || []);
}

/** Half of a surrogate pair is no text: it would be stored and typed as another character than the hidden one. */
export const isWellFormed = (text: string): boolean => !/\p{Surrogate}/u.test(text);

/** PostgreSQL stores neither NUL nor half of a surrogate pair. A page can have both, and a cut can divide a pair. */
// oxlint-disable-next-line no-control-regex -- NUL is meant
export const storable = (text: string): string => text.replace(/\0|\p{Surrogate}/gu, '\ufffd');

/** A value as JSON for the database, with storable texts. */
export function storableJson(value: unknown): string {
  const json = JSON.stringify(value);
  if (!/\\u(?:0000|d[89a-f])/.test(json)) return json;
  return JSON.stringify(value, (_key, part: unknown) => (typeof part === 'string' ? storable(part) : part));
}
