import { turns } from '../../../lib/turns.ts';
import { tableIndex, type TableIndex } from './table-index.ts';

/**
 * Words of pages, by meaning. A table has one string per language, phrases separated by `|`. A phrase is compared without
 * case, accents and punctuation, as whole words; `*` at its end lets letters follow (`regist*`). Scripts without spaces, and
 * those that glue articles and endings to words, are compared as parts of a text.
 */
type WordTable = { en: string } & Record<string, string>;

interface Words {
  /** Whether one of the texts has one of the phrases. */
  in(...texts: (string | undefined)[]): boolean;
  /** How many different phrases the texts have. */
  count(...texts: string[]): number;
}

/** Letters that Unicode does not decompose, as people type them without their keyboard. */
const plainLetters: Record<string, string> = { ı: 'i', ł: 'l', ø: 'o', ß: 'ss', đ: 'd', æ: 'ae', œ: 'oe' };

interface Known {
  plain: string;
  /** The tables with a phrase in the text, by this index. */
  tables?: ReadonlySet<number>;
  index?: TableIndex;
}

/** What is known of the texts of one page. */
export type LearnedWords = ReadonlyMap<string, Known>;

/** Of the pages that are being read. */
let learned: readonly LearnedWords[] = [];

/**
 * Runs `work` with the words of its pages. They are kept apart from the words of other pages: those of some large pages together
 * do not fit into the memory below, and a reading that finds none of its words known takes 250 ms.
 */
export function withWords<T>(words: readonly LearnedWords[], work: () => T): T {
  const outer = learned;
  learned = words;
  try {
    return work();
  } finally {
    learned = outer;
  }
}

// Texts come from hostile pages: the memory for them is bounded. When it is full, the older half is forgotten.
const mostKnown = 8000;
const mostKnownCharacters = 1_000_000;
let known = new Map<string, Known>();
let knownBefore = known;
let knownCharacters = 0;

function knownOf(text: string): Known {
  for (const words of learned) {
    const found = words.get(text);
    if (found !== undefined) return found;
  }
  const found = known.get(text);
  if (found !== undefined) return found;
  const made = knownBefore.get(text) ?? { plain: madePlain(text) };
  knownCharacters += text.length;
  if (known.size >= mostKnown || knownCharacters > mostKnownCharacters) {
    knownBefore = known;
    known = new Map();
    knownCharacters = text.length;
  }
  known.set(text, made);
  return made;
}

/** A text without case, accents and punctuation. */
export function plain(text: string | undefined): string {
  return text ? knownOf(text).plain : '';
}

/**
 * Compatibility letters become up to eighteen others each. What lies beyond three for each letter of the text, as in Hangul and Vietnamese, is
 * left out, and so is what makes the plain text much longer than the text.
 */
const mostDecomposed = 3;
const mostAdded = 32;

function madePlain(text: string): string {
  // eslint-disable-next-line no-control-regex -- all of ASCII
  if (/^[\0-\x7f]*$/.test(text))
    return text
      .toLowerCase()
      .replace(/[^a-z0-9@+%]+/g, ' ')
      .trim();
  return text
    .normalize('NFKD')
    .slice(0, mostDecomposed * text.length + mostAdded)
    .toLowerCase()
    .replace(/\p{M}+/gu, '')
    .normalize('NFC')
    .replace(/[ıłøßđæœ]/g, (letter) => plainLetters[letter] ?? letter)
    .replace(/[^\p{L}\p{N}@+%]+/gu, ' ')
    .slice(0, text.length + mostAdded)
    .trim();
}

const tables: WordTable[] = [];
let index: TableIndex | undefined;

/**
 * A page asks each of its texts of dozens of tables. All tables are in one index, which a text is held against once: the index is
 * made when it is first asked, and the service starts without that work.
 */
export function words(table: WordTable): Words {
  const number = tables.push(table) - 1;
  index = undefined;
  const has = (text: string | undefined): boolean => {
    if (!text) return false;
    return tablesOf(knownOf(text)).has(number);
  };
  return {
    in: (...texts) => texts.some(has),
    count: (...texts) => indexed().count(number, texts.filter(has).map(plain).join(' ')),
  };
}

function tablesOf(of: Known): ReadonlySet<number> {
  const now = indexed();
  if (of.tables === undefined || of.index !== now) [of.tables, of.index] = [now.find(of.plain), now];
  return of.tables;
}

function indexed(): TableIndex {
  if (index !== undefined) return index;
  const made = tableIndex();
  for (const [number, table] of tables.entries()) made.add(number, phrasesOf(table));
  return (index = made);
}

/** Holds texts against the tables in pieces of some milliseconds. */
export async function learn(texts: Iterable<string>): Promise<LearnedWords> {
  const turn = turns();
  if (index === undefined) {
    const made = tableIndex();
    for (let number = 0; number < tables.length; number++) {
      made.add(number, phrasesOf(tables[number]!));
      await turn();
    }
    index ??= made; // another page may have been first
  }
  const found = new Map<string, Known>();
  for (const text of texts) {
    if (text === '') continue;
    const of = knownOf(text);
    tablesOf(of);
    found.set(text, of);
    await turn();
  }
  return found;
}

function phrasesOf(table: WordTable) {
  return Object.values(table)
    .flatMap((line) => line.split('|'))
    .map((phrase) => ({ text: madePlain(phrase), open: phrase.trim().endsWith('*') }))
    .filter(({ text }) => text !== '');
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
