const shortest = 3;
const mask = '•••';

/** Words that every login page has. Where one of them is the value, masking it would point it out. */
const pageWords =
  /^(user|username|login|log in|sign in|password|passwort|email|e-mail|mail|admin|code|test|name|text|true|false)$/i;

export interface Scrubber {
  /** From now on this value is removed from every text. Codes and passwords; names too, since credentials keep them sealed. */
  add(value: string | undefined): void;
  text(text: string): string;
  /** Those of the texts that hold none of the values. */
  without(texts: readonly string[]): string[];
  /** The same for every text in a record. */
  deep<T>(value: T): T;
}

/**
 * Removes what was typed from texts of the page: sites repeat user names, and some repeat more. A value of one or two
 * characters is left alone, since taking it out would garble every text and tell more than it hides.
 */
export function scrubber(): Scrubber {
  const values = new Set<string>();
  let longestFirst: string[] = [];

  function text(given: string): string {
    let clean = given;
    for (const value of longestFirst) if (clean.includes(value)) clean = clean.replaceAll(value, mask);
    return clean;
  }

  function deep<T>(given: T): T {
    if (typeof given === 'string') return text(given) as T;
    if (Array.isArray(given)) return given.map(deep) as T;
    if (given === null || typeof given !== 'object') return given;
    return Object.fromEntries(Object.entries(given).map(([key, value]) => [key, deep(value)])) as T;
  }

  return {
    add(value) {
      if (value === undefined || value.length < shortest || pageWords.test(value)) return;
      for (const form of [value, encoded(value), value.replace(/\s+/g, ' ').trim()])
        if (form.length >= shortest) values.add(form);
      longestFirst = [...values].sort((a, b) => b.length - a.length);
    },
    text,
    without: (texts) => texts.filter((one) => text(one) === one),
    deep,
  };
}

/** Half a surrogate pair cannot be encoded; such a text is never in an address either. */
function encoded(value: string): string {
  return /\p{Surrogate}/u.test(value) ? value : encodeURIComponent(value);
}
