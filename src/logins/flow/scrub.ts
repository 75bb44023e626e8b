import { textFinder, withoutPlaces, type Place } from '../../lib/text-finder.ts';
import { turns } from '../../lib/turns.ts';

const shortest = 3;
const mask = '•••';
/** Characters of the longest text that a flow reports, which is an address. No text contains a longer value. */
const longest = 4096;
/** Characters after which the script in pages and the reading cut texts: of names, options, labels, texts, selectors and addresses. */
const cutLengths = new Set([40, 100, 105, 112, 120, 200, 206, 300, 400, 500, 2000]);
/** The search compares so many characters of all values at once, and the rest of a longer one by itself. */
const headLength = 32;
/** With the length of a head, this bounds the memory of the search. A value has one to three forms. */
const mostForms = 2000;
/** Of all forms: they are sorted in one piece. */
const mostCharacters = 500_000;

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
  /** The same for every text in a record. A record is as large as a page, so the event loop has turns in between. */
  deep<T>(value: T): Promise<T>;
}

interface Search {
  find: (text: string) => Place[];
  /** Finds the beginnings of values. */
  findBegun: (text: string) => Place[];
  /** Characters of the longest form. */
  longest: number;
}

/**
 * Removes typed values from texts of the page: sites repeat user names, and some repeat more. A value of one or two
 * characters is left alone, since removing it would garble every text and reveal more than it hides. A page chooses the texts, and a tenant
 * chooses the values, so a text is read once, for all values at the same time. No value is dropped: with too many of them, every text is
 * masked as a whole.
 */
export function scrubber(): Scrubber {
  /** The forms of each value that was typed. */
  const typed = new Map<string, string[]>();
  let held: readonly string[] = [];
  let full = false;
  let search: Search | undefined;

  /** Undefined: there are more values than can be looked for. */
  function searchNow(): Search | undefined {
    if (full || search) return search;
    const forms = new Set([...typed.values(), ...held.map(formsOf)].flat());
    const characters = Array.from(forms).reduce((sum, { length }) => sum + length, 0);
    full = forms.size > mostForms || characters > mostCharacters;
    if (full) typed.clear();
    else
      search = {
        find: textFinder(forms, headLength),
        findBegun: textFinder(
          Array.from(forms, (form) => form.slice(0, shortest)),
          shortest,
        ),
        longest: Math.max(...Array.from(forms, ({ length }) => length)),
      };
    return search;
  }

  /** A text that a page had more of may end within a value. */
  function withoutPart(given: string, { find, findBegun, longest: most }: Search): string {
    const tail = 1 - most;
    if (!cutLengths.has(given.length) || findBegun(given.slice(tail)).length === 0) return given;
    return `${withoutPlaces(given, find(given), mask).slice(0, tail)}…`;
  }

  /** Sentences about a page quote its texts. */
  function text(given: string): string {
    if (typed.size === 0 && held.length === 0 && !full) return given;
    const now = searchNow();
    if (!now) return mask;
    const whole = given
      .split('"')
      .map((part) => withoutPart(part, now))
      .join('"');
    return withoutPlaces(whole, now.find(whole), mask);
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
      if (value === undefined || full || typed.has(value) || !isHidden(value)) return;
      typed.set(value, formsOf(value));
      search = undefined;
    },
    hold(values) {
      const now = values.filter(isHidden);
      if (now.length === held.length && now.every((value, at) => value === held[at])) return;
      held = now;
      search = undefined;
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
