import { textFinder, withoutPlaces, type Place } from '../lib/text-finder.ts';

/** A password, and the user name that HTTP sends with it. */
export interface Secret {
  username?: string;
  password: string;
}

const cut = '[redacted]';
/** A shorter secret would be found in every other word. */
const shortest = 4;
/** The search compares so many characters of all secrets at once, and the rest of a longer one by itself. */
const headLength = 32;
/** With the length of a head, this bounds the memory of the search. A secret has two to six forms. */
const mostForms = 2000;
/** The most characters of all forms together, and of one secret. They bound the time to make the forms. */
const mostLength = 4 * 2 ** 20;
const longest = 64 * 1024;

export type SecretFilter = ReturnType<typeof secretFilter>;

/**
 * Removes the secrets of a session from its events and logs. A page chooses the text, and a tenant chooses secrets, so a text is read once,
 * for all secrets at the same time. No secret is ever dropped: a filter with too many of them removes every text as a whole.
 */
export function secretFilter() {
  const known = new Set<string>();
  const forms = new Set<string>();
  let length = 0;
  let full = false;
  let version = 0;
  let find: ((text: string) => Place[]) | undefined;

  function add({ username = '', password }: Secret): void {
    const key = `${password}\n${username}`;
    if (full || password.length < shortest || known.has(key)) return;
    known.add(key);
    version += 1;
    find = undefined;
    for (const form of password.length > longest ? [] : formsOf(username, password)) {
      if (forms.has(form)) continue;
      forms.add(form);
      length += form.length;
    }
    full = password.length > longest || forms.size > mostForms || length > mostLength;
    if (!full) return;
    known.clear();
    forms.clear();
  }

  function placesIn(text: string): Place[] {
    if (forms.size === 0) return [];
    find ??= textFinder(forms, headLength); // when it is first needed: secrets are added one after the other
    return find(text);
  }

  return {
    /** Removes these secrets, too, from now on. */
    add(secrets: Iterable<Secret>): void {
      for (const secret of secrets) add(secret);
    },

    /** Changes when there are more secrets. */
    get version() {
      return version;
    },

    /** Whether there are more secrets than can be looked for. */
    get full() {
      return full;
    },

    /** Whether a text has a secret. */
    finds: (text: string): boolean => full || placesIn(text).length > 0,

    /** The text without the secrets. */
    clean: (text: string): string => (full ? cut : withoutPlaces(text, placesIn(text), cut)),
  };
}

/** The ways in which a secret is written in headers, addresses, bodies and JSON. The lines of a journal are JSON, and can have JSON in them. */
function formsOf(username: string, given: string): string[] {
  const password = wellFormed(given);
  const json = inJson(password);
  return [
    password,
    encodeURIComponent(password),
    new URLSearchParams({ '': password }).toString().slice(1), // as forms send it
    json,
    inJson(json),
    Buffer.from(`${username}:${password}`).toString('base64'),
  ];
}

const inJson = (text: string) => JSON.stringify(text).slice(1, -1);

/** Half a surrogate pair becomes the replacement character, as in every encoder. `encodeURIComponent` throws on one. */
const wellFormed = (text: string) => Buffer.from(text).toString();
