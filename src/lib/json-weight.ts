const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;

/** JSON of this weight is parsed in some tens of milliseconds, with any number of bytes. */
export const MOST_WEIGHT = 100_000;
/** Escapes in all strings together. A letter that is escaped takes ten times as long to parse as another: 16 million took 0.2 s. */
export const MOST_ESCAPES = 3_000_000;
/** Most strings are short: a native search costs as much as this many bytes. */
const NEAR = 48;

/**
 * How much work it is to parse JSON: its commas, colons and opening brackets outside of strings. A megabyte of `{},{},…` takes a
 * hundred times as long as a string of that size. Escapes in strings are counted too. The bytes may come in pieces; they need not be JSON.
 */
export class JsonWeight {
  weight = 0;
  escapes = 0;
  #inString = false;
  #escaped = false;
  /** The positions of the next quote and the next backslash, at or after the last search. */
  #quote = -1;
  #backslash = -1;
  readonly #mostEscapes: number;

  /** A number of escapes for text that is bounded otherwise. */
  constructor(mostEscapes = MOST_ESCAPES) {
    this.#mostEscapes = mostEscapes;
  }

  /** Answers whether the weight is still bearable. */
  add(bytes: Buffer, most = MOST_WEIGHT): boolean {
    this.#quote = this.#backslash = -1;
    let at = 0;
    while (at < bytes.length) {
      if (this.#inString) {
        at = this.#pastString(bytes, at);
        if (this.escapes > this.#mostEscapes) return false;
        continue;
      }
      const byte = bytes[at]!;
      if (byte === QUOTE) this.#inString = true;
      else if (byte === COMMA || byte === COLON || byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (++this.weight > most) return false;
      }
      at++;
    }
    return true;
  }

  #pastString(bytes: Buffer, from: number): number {
    const { length } = bytes;
    let at = this.#escaped ? from + 1 : from;
    while (at < length) {
      const near = Math.min(at + NEAR, length);
      while (at < near && bytes[at] !== QUOTE && bytes[at] !== BACKSLASH) at++;
      if (at === near) at = this.#endOfPlainText(bytes, at);
      if (at >= length) break;
      if (bytes[at] === QUOTE) {
        this.#inString = this.#escaped = false;
        return at + 1;
      }
      this.escapes++;
      at += 2;
    }
    this.#escaped = at > length; // the character after a backslash comes with the next piece
    return length;
  }

  #endOfPlainText(bytes: Buffer, from: number): number {
    if (this.#quote < from) this.#quote = indexOf(bytes, QUOTE, from);
    if (this.#backslash < from) this.#backslash = indexOf(bytes, BACKSLASH, from);
    return Math.min(this.#quote, this.#backslash);
  }
}

/** Whether JSON weighs no more than can be parsed at once. */
export function isLight(json: Buffer | string, most = MOST_WEIGHT): boolean {
  // Every unit of the weight takes a byte.
  if (json.length <= most) return true;
  return new JsonWeight().add(typeof json === 'string' ? Buffer.from(json) : json, most);
}

/** The position of a byte; the end if there is none. */
function indexOf(bytes: Buffer, byte: number, from: number): number {
  const found = bytes.indexOf(byte, from);
  return found === -1 ? bytes.length : found;
}
