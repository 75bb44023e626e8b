/** A phrase of a table, without case, accents and punctuation. `open` lets letters follow its last word. */
interface Phrase {
  text: string;
  open: boolean;
}

/** The phrases of many tables, to be found in a text at once: the time is that of the text's words, not of the phrases. */
export interface TableIndex {
  add(table: number, phrases: Phrase[]): void;
  /** The tables with a phrase in the text. */
  find(plain: string): ReadonlySet<number>;
  /** How many different phrases of one table the text has. A phrase that begins inside of another does not count. */
  count(table: number, plain: string): number;
}

interface Entry extends Phrase {
  table: number;
  /** Where several phrases of a table begin at one place, the one of the lowest rank is meant. */
  rank: number;
}

const gluing =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Arabic}\p{Script=Hebrew}]/u;
/** How many letters of an open word lead to it, and how many characters beyond the space after the first word of several. */
const headLength = 3;
const beyond = 2;
const none: ReadonlySet<number> = new Set();

/** A plain text has letters and digits, spaces, and the signs `%`, `+` and `@`. */
const space = 0x20;
const isSign = (code: number) => code === 0x25 || code === 0x2b || code === 0x40;

function isWordAt(plain: string, at: number): boolean {
  if (at < 0 || at >= plain.length) return false;
  const code = plain.charCodeAt(at);
  return code !== space && !isSign(code);
}

const hashed = (hash: number, code: number) => (hash * 31 + code) & 0x3fffffff;

export function tableIndex(): TableIndex {
  // Keys are hashes, so that no part of a text is copied to look it up. What is found there is compared.
  /** By the first word, and the beginning of the second where there is one. */
  const byWord = new Map<number, Entry[]>();
  /** Single words that letters may follow, by their first letters. */
  const byHead = new Map<number, Entry[]>();
  let shortestHead = headLength;
  /** Of scripts that are compared as parts of a text, by the first letter. */
  const byLetter = new Map<number, Entry[]>();

  /** Calls back for each phrase in the text. */
  function each(plain: string, found: (entry: Entry, from: number, to: number) => void): void {
    if (gluing.test(plain)) {
      for (let at = 0; at < plain.length; at++)
        for (const entry of byLetter.get(plain.charCodeAt(at)) ?? [])
          if (plain.startsWith(entry.text, at)) found(entry, at, at + entry.text.length);
    }
    const { length } = plain;
    let from = 0;
    while (from < length) {
      const first = plain.charCodeAt(from);
      if (first === space || isSign(first)) {
        // `@` after a word does not begin a phrase.
        if (first !== space && !isWordAt(plain, from - 1)) compare(byWord.get(hashed(0, first)), from);
        from++;
        continue;
      }
      let end = from;
      let hash = 0;
      for (let code = first; code !== space && !isSign(code) && end < length; code = plain.charCodeAt(end)) {
        hash = hashed(hash, code);
        end++;
        if (end - from <= headLength && end - from >= shortestHead) compare(byHead.get(hash), from);
      }
      compare(byWord.get(hash), from);
      for (let at = end; at <= end + beyond && at < length; at++) {
        hash = hashed(hash, plain.charCodeAt(at));
        if (at > end) compare(byWord.get(hash), from);
      }
      from = end;
    }

    function compare(entries: Entry[] | undefined, from: number): void {
      if (entries === undefined) return;
      for (const entry of entries) {
        if (!plain.startsWith(entry.text, from)) continue;
        let to = from + entry.text.length;
        if (entry.open) {
          const after = to;
          while (isWordAt(plain, to)) to++;
          if (/\p{N}/u.test(plain.slice(after, to))) continue;
        }
        if (!isWordAt(plain, to)) found(entry, from, to);
      }
    }
  }

  return {
    add(table, phrases) {
      for (const [place, phrase] of phrases.entries()) {
        const { text, open } = phrase;
        const glued = gluing.test(text);
        const entry = { ...phrase, table, rank: place + (glued ? phrases.length : 0) };
        let length = 0;
        while (isWordAt(text, length)) length++;
        if (glued) put(byLetter, text.charCodeAt(0), entry);
        else if (open && length === text.length) {
          shortestHead = Math.min(shortestHead, length);
          put(byHead, hashOf(text.slice(0, headLength)), entry);
        } else put(byWord, hashOf(text.slice(0, keyLength(length, text))), entry);
      }
    },

    find(plain) {
      let tables: Set<number> | undefined;
      each(plain, ({ table }) => (tables ??= new Set()).add(table));
      return tables ?? none;
    },

    count(table, plain) {
      const hits: { from: number; to: number; rank: number }[] = [];
      each(plain, (entry, from, to) => {
        if (entry.table === table) hits.push({ from, to, rank: entry.rank });
      });
      hits.sort((a, b) => a.from - b.from || a.rank - b.rank);
      const different = new Set<string>();
      let end = 0;
      for (const { from, to } of hits) {
        if (from < end) continue;
        different.add(plain.slice(from, to));
        end = to;
      }
      return different.size;
    },
  };
}

function keyLength(firstWord: number, text: string): number {
  if (firstWord === text.length) return firstWord;
  return firstWord === 0 ? 1 : firstWord + 1 + beyond;
}

function hashOf(text: string): number {
  let hash = 0;
  for (let at = 0; at < text.length; at++) hash = hashed(hash, text.charCodeAt(at));
  return hash;
}

function put(map: Map<number, Entry[]>, key: number, entry: Entry): void {
  const entries = map.get(key);
  if (entries === undefined) map.set(key, [entry]);
  else entries.push(entry);
}
