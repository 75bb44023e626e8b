/**
 * Words of pages, by meaning. A table has one string per language, phrases separated by `|`. A phrase is compared without
 * case, accents and punctuation, as whole words; `*` at its end lets letters follow (`regist*`). Scripts without spaces, and
 * those that glue articles and endings to words, are compared as parts of a text.
 */
export type WordTable = { en: string } & Record<string, string>;

export interface Words {
  /** Whether one of the texts has one of the phrases. */
  in(...texts: (string | undefined)[]): boolean;
  /** How many different phrases the text has. */
  count(text: string | undefined): number;
}

/** Letters that Unicode does not decompose, as people type them without their keyboard. */
const plainLetters: Record<string, string> = { ı: 'i', ł: 'l', ø: 'o', ß: 'ss', đ: 'd', æ: 'ae', œ: 'oe' };

const known = new Map<string, string>();

/** A text without case, accents and punctuation. */
export function plain(text: string | undefined): string {
  if (!text) return '';
  const found = known.get(text);
  if (found !== undefined) return found;
  const made = text
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}+/gu, '')
    .normalize('NFC')
    .replace(/[ıłøßđæœ]/g, (letter) => plainLetters[letter] ?? letter)
    .replace(/[^\p{L}\p{N}@+%]+/gu, ' ')
    .trim();
  // Texts come from hostile pages: the memory for them is bounded.
  if (known.size > 5000) known.clear();
  known.set(text, made);
  return made;
}

const gluing =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Arabic}\p{Script=Hebrew}]/u;

/** The patterns of a table are made when it is first asked: the service starts without the work for all of its tables. */
export function words(table: WordTable): Words {
  let made: { one: RegExp; every: RegExp } | undefined;
  const patterns = () => (made ??= patternsOf(table));
  return {
    in: (...texts) => texts.some((text) => text !== undefined && text !== '' && patterns().one.test(plain(text))),
    count: (text) => new Set(plain(text).match(patterns().every) ?? []).size,
  };
}

function patternsOf(table: WordTable): { one: RegExp; every: RegExp } {
  const phrases = Object.values(table)
    .flatMap((line) => line.split('|'))
    .map((phrase) => ({ text: plain(phrase), open: phrase.trim().endsWith('*') }))
    .filter(({ text }) => text !== '');
  const glued = phrases.filter(({ text }) => gluing.test(text)).map(({ text }) => text);
  const spaced = phrases
    .filter(({ text }) => !gluing.test(text))
    .map(({ text, open }) => escape(text) + (open ? '\\p{L}*' : ''));
  const alternatives = [
    ...(spaced.length > 0 ? [`(?<![\\p{L}\\p{N}])(?:${spaced.join('|')})(?![\\p{L}\\p{N}])`] : []),
    ...(glued.length > 0 ? [`(?:${glued.map(escape).join('|')})`] : []),
  ];
  // The words are those of this program. A search begins where a word does, and reads it to its end once for each phrase.
  const source = alternatives.join('|');
  // not linear: of the words above
  return { one: new RegExp(source, 'u'), every: new RegExp(source, 'gu') };
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** Names, ids and classes as words: `ctl00$UserName` and `user_name` both have "user name". */
export function attributeWords(...attributes: (string | undefined)[]): string {
  return attributes
    .filter((attribute) => attribute !== undefined)
    .join(' ')
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2')
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .toLowerCase();
}
