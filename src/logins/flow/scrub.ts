import { turns } from '../../lib/turns.ts';

const shortest = 3;
const mask = '•••';
/** Characters of the longest text that a flow tells, which is an address. A longer value is in none of them. */
const longest = 4096;
/** Characters after which the script in pages and the reading cut texts: of names, options, labels, texts, selectors and addresses. */
const cutLengths = new Set([40, 100, 105, 112, 120, 200, 206, 300, 400, 500, 2000]);
/** Values that are kept of a credential, and of what was typed, of which the oldest go first. */
const most = 150;

/** Words that every login page has. Where one of them is the value, masking it would point it out. */
const pageWords =
  /^(user|username|login|log in|sign in|password|passwort|email|e-mail|mail|admin|code|test|name|text|true|false)$/i;

export interface Scrubber {
  /** From now on this value is removed from every text. Codes and passwords; names too, since credentials keep them sealed. */
  add(value: string | undefined): void;
  /** The same for the values of the credential as it is now. Those that it had before stay hidden if they were typed. */
  hold(values: readonly string[]): void;
  text(text: string): string;
  /** Those of the texts that hold none of the values. */
  without(texts: readonly string[]): string[];
  /** The same for every text in a record. A record is as large as a page, so others have their turn meanwhile. */
  deep<T>(value: T): Promise<T>;
}

/**
 * Removes what was typed from texts of the page: sites repeat user names, and some repeat more. A value of one or two
 * characters is left alone, since taking it out would garble every text and tell more than it hides.
 */
export function scrubber(): Scrubber {
  const typed = new Set<string>();
  let held: readonly string[] = [];
  let longestFirst: string[] | undefined;

  function forms(): string[] {
    longestFirst ??= [...new Set([...typed, ...held].flatMap(formsOf))].sort((a, b) => b.length - a.length);
    return longestFirst;
  }

  function masked(given: string): string {
    let clean = given;
    for (const value of forms()) if (clean.includes(value)) clean = clean.replaceAll(value, mask);
    return clean;
  }

  /** A text that a page had more of may end within a value. */
  function withoutPart(given: string): string {
    if (!cutLengths.has(given.length)) return given;
    const known = forms();
    const tail = 1 - (known[0]?.length ?? 1);
    const end = tail === 0 ? '' : given.slice(tail);
    if (!known.some((value) => end.includes(value.slice(0, shortest)))) return given;
    return `${masked(given).slice(0, tail)}…`;
  }

  /** Sentences about a page quote its texts. */
  function text(given: string): string {
    const quotes = given.includes('"');
    if (!quotes && !cutLengths.has(given.length)) return masked(given);
    return masked(quotes ? given.split('"').map(withoutPart).join('"') : withoutPart(given));
  }

  async function deep<T>(record: T): Promise<T> {
    const turn = turns();
    const known = new Map<string, string>();
    async function clean(given: unknown): Promise<unknown> {
      if (typeof given === 'string') {
        const before = known.get(given);
        if (before !== undefined) return before;
        await turn();
        const after = text(given);
        known.set(given, after);
        return after;
      }
      if (given === null || typeof given !== 'object') return given;
      if (Array.isArray(given)) {
        const all: unknown[] = [];
        for (const one of given) all.push(await clean(one));
        return all;
      }
      const all: [string, unknown][] = [];
      for (const [key, value] of Object.entries(given)) all.push([key, await clean(value)]);
      return Object.fromEntries(all);
    }
    return (await clean(record)) as T;
  }

  return {
    add(value) {
      if (value === undefined || typed.has(value) || !isHidden(value)) return;
      typed.add(value);
      for (const oldest of typed) {
        if (typed.size <= most) break;
        typed.delete(oldest);
      }
      longestFirst = undefined;
    },
    hold(values) {
      const now = values.filter(isHidden).slice(0, most);
      if (now.length === held.length && now.every((value, at) => value === held[at])) return;
      held = now;
      longestFirst = undefined;
    },
    text,
    without: (texts) => texts.filter((one) => text(one) === one),
    deep,
  };
}

const isHidden = (value: string) => value.length >= shortest && value.length <= longest && !pageWords.test(value);

const formsOf = (value: string) =>
  [value, encoded(value), value.replace(/\s+/g, ' ').trim()].filter(
    ({ length }) => length >= shortest && length <= longest,
  );

/** Half a surrogate pair cannot be encoded; such a text is never in an address either. */
function encoded(value: string): string {
  return /\p{Surrogate}/u.test(value) ? value : encodeURIComponent(value);
}
