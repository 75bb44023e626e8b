import { isUtf8 } from 'node:buffer';

/** The parts of a client's message that the multiplexer needs. */
export interface Command {
  id: number;
  method: string;
  sessionId: string | undefined;
  /** The value of a small message, or the client's own bytes of a larger one; undefined if left out. */
  params: object | Buffer | undefined;
}

/** Why a message is not a command, in Chromium's words. `id` is set once it is known. */
export interface Fault {
  id?: number;
  code: number;
  message: string;
}

/** Chromium's parser refuses a depth of 301, without an id in its answer, so the client could not be determined. */
const MAX_DEPTH = 300;

const MAX_ID = 2 ** 31 - 1;

/** With every character escaped, the longest name that a message may have is shorter. */
const LONGEST_NAME = 64;
/** No method and no session id of Chromium is as long. */
const LONGEST_TEXT = 1024;
/** Longer runs of whitespace are rejected: no client sends them. */
const LONGEST_SPACE = 64 * 1024;
/** How many values, or parts of a string, a piece of a scan has: at most a few milliseconds. */
const PIECE = 10_000;

/** Up to this size the JavaScript engine's parser is the fastest. Nothing of this size can be nested too deep: every level takes two bytes. */
const SMALL = 2 * MAX_DEPTH;

/** A message that takes long to read: each step reads a piece of it. */
export type Reading = Generator<undefined, Command | Fault>;

/**
 * Reads a client's message. A small one is parsed, and the parsed value is sent on: duplicate names and numbers out of range become what
 * JSON.parse makes of them. Unusual messages are left to the scan. Of a message of many values only the first piece is read at once.
 */
export function readCommand(data: Buffer): Command | Fault | Reading {
  return (data.length <= SMALL && parseCommand(data)) || beginScan(data);
}

function beginScan(data: Buffer): Command | Fault | Reading {
  const reading = scanning(data);
  const first = reading.next();
  return first.done ? first.value : reading;
}

function parseCommand(data: Buffer): Command | undefined {
  let message: Record<string, unknown> | null;
  if (!isUtf8(data)) return undefined;
  try {
    message = JSON.parse(data.toString());
  } catch {
    return undefined;
  }
  if (typeof message !== 'object' || message === null) return undefined;
  const { id, method, params, sessionId } = message;
  if (typeof id !== 'number' || (id | 0) !== id || typeof method !== 'string') return undefined;
  let fields = 2;
  if (params !== undefined) {
    if (typeof params !== 'object' || params === null || Array.isArray(params)) return undefined;
    fields += 1;
  }
  if (sessionId !== undefined) {
    if (typeof sessionId !== 'string' || sessionId === '') return undefined;
    fields += 1;
  }
  for (const _ in message) fields -= 1;
  return fields === 0 ? { id, method, params, sessionId } : undefined;
}

/** Scans the whole message at once. */
export function scanCommand(data: Buffer): Command | Fault {
  const reading = scanning(data);
  for (;;) {
    const { done, value } = reading.next();
    if (done) return value;
  }
}

/**
 * Reads the top level of a client's message and checks that all of it is JSON, without building a value: a message may be 100 MiB of
 * script or file. It is at least as strict as Chromium's parser, so that both read the same: names are compared unescaped, and a
 * duplicate name is refused, as Chromium does.
 */
function* scanning(data: Buffer): Reading {
  if (!isUtf8(data)) return notJson(0);
  const scan = new Scanner(data);
  scan.space();
  if (data[scan.at] !== OPEN_BRACE) {
    let found;
    while ((found = scan.value(0)) === undefined) yield scan.pause();
    return found && scan.trailing() === data.length
      ? { code: -32600, message: 'Message must be an object' }
      : notJson(scan.at);
  }

  const fields = new Map<string, Buffer>();
  let unknown = false;
  let twice = false;
  scan.at += 1;
  scan.space();
  if (data[scan.at] === CLOSE_BRACE) scan.at += 1;
  else {
    for (;;) {
      const key = scan.at;
      let found;
      while ((found = scan.string()) === undefined) yield scan.pause();
      if (!found) return notJson(scan.at);
      const name = fieldName(data.subarray(key, scan.at));
      if (!scan.byte(COLON)) return notJson(scan.at);
      scan.space();
      const value = scan.at;
      while ((found = scan.value(1)) === undefined) yield scan.pause();
      if (!found) return notJson(scan.at);
      if (name === undefined) unknown = true;
      else {
        twice ||= fields.has(name);
        fields.set(name, data.subarray(value, scan.at));
      }
      scan.space();
      const next = data[scan.at];
      scan.at += 1;
      if (next === CLOSE_BRACE) break;
      if (next !== COMMA) return notJson(scan.at - 1);
      scan.space();
    }
  }
  if (scan.trailing() !== data.length) return notJson(scan.at);
  return twice ? { code: -32700, message: 'JSON: duplicate key' } : toCommand(fields, unknown);
}

/** The name of a field that a message may have. */
function fieldName(quoted: Buffer): string | undefined {
  if (quoted.length > LONGEST_NAME) return undefined;
  const name = text(quoted);
  return name === 'id' || name === 'method' || name === 'params' || name === 'sessionId' ? name : undefined;
}

function toCommand(fields: Map<string, Buffer>, unknown: boolean): Command | Fault {
  const number = fields.get('id');
  const id = number && isNumber(number) ? Number(number.toString('latin1')) : NaN;
  if (!Number.isInteger(id) || id > MAX_ID || id < -MAX_ID - 1) {
    return { code: -32600, message: "Message must have integer 'id' property" };
  }
  const fault = (message: string, code = -32600): Fault => ({ id, code, message });

  const method = fields.get('method');
  if (method?.[0] !== QUOTE) return fault("Message must have string 'method' property");
  const session = fields.get('sessionId');
  if (session && session[0] !== QUOTE) return fault("Message may have string 'sessionId' property");
  const params = fields.get('params');
  if (params && params[0] !== OPEN_BRACE && params[0] !== NULL) {
    return fault("Message may have object 'params' property");
  }
  if (unknown) return fault("Message has property other than 'id', 'method', 'sessionId', 'params'");
  if (method.length > LONGEST_TEXT) return fault(`A method has at most ${LONGEST_TEXT} bytes.`, -32601);
  if (session && session.length > LONGEST_TEXT) return fault('Session with given id not found.', -32001);
  return {
    id,
    method: text(method),
    params,
    // Chromium treats an empty session id as none.
    sessionId: session && session.length > 2 ? text(session) : undefined,
  };
}

/** The value of a string that the scanner has passed. */
function text(quoted: Buffer): string {
  if (quoted.indexOf(BACKSLASH) === -1) return quoted.toString('utf8', 1, quoted.length - 1);
  const escaped = quoted.toString().replace(CONTROLS, (control) => JSON.stringify(control).slice(1, -1));
  return String(JSON.parse(escaped));
}

function isNumber(token: Buffer): boolean {
  return token[0] === MINUS || isDigit(token[0]);
}

function notJson(position: number): Fault {
  return { code: -32700, message: `JSON: invalid token at position ${position}` };
}

/**
 * Scans JSON in a buffer. Each step returns whether it found the expected token, and sets `at` behind it. Steps that may take long answer
 * undefined when the piece ends, and continue when they are called again.
 */
class Scanner {
  at = 0;
  readonly #data: Buffer;
  /** The rest of the piece. */
  #left = PIECE;
  /** The positions of the next backslash and the next quote, at or after `at` at the last search. */
  #backslash = -1;
  #quote = -1;
  /** What the value is in, from the outside. */
  readonly #open: number[] = [];
  /** The next string is a name. */
  #naming = false;
  /** `at` is within a string that is longer than the piece. */
  #inString = false;

  constructor(data: Buffer) {
    this.#data = data;
  }

  space() {
    const data = this.#data;
    if (!isSpace(data[this.at])) return;
    const start = this.at;
    const most = start + LONGEST_SPACE;
    do this.at += 1;
    while (this.at < most && isSpace(data[this.at]));
    this.#left -= (this.at - start) >>> 4;
  }

  /** Skips the spaces that may follow a whole value, and answers the position after them. */
  trailing(): number {
    this.space();
    return this.at;
  }

  byte(expected: number): boolean {
    this.space();
    if (this.#data[this.at] !== expected) return false;
    this.at += 1;
    return true;
  }

  /** One value of any kind and depth. No recursion: the client determines the depth. */
  value(depth: number): boolean | undefined {
    const data = this.#data;
    const open = this.#open;
    for (;;) {
      if (--this.#left < 0) return undefined;
      // A value begins here, or the name of one, or the rest of a string.
      const byte = data[this.at]!;
      if (byte === QUOTE || this.#naming || this.#inString) {
        const found = this.string();
        if (found !== true) return found;
        if (this.#naming) {
          if (!this.byte(COLON)) return false;
          this.space();
          this.#naming = false;
          continue;
        }
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        this.at += 1;
        this.space();
        if (data[this.at] === byte + 2) {
          this.at += 1; // `{}` or `[]`: the closing sign is two after the opening one
        } else {
          open.push(byte);
          if (open.length + depth > MAX_DEPTH) return false;
          this.#naming = byte === OPEN_BRACE;
          continue;
        }
      } else if (!this.#numberOrWord()) return false;

      // A value has ended: close its object or array if it was the last, or continue with the next.
      for (;;) {
        const inside = open.at(-1);
        if (inside === undefined) return true;
        this.space();
        const next = data[this.at];
        if (next === COMMA) {
          this.at += 1;
          this.space();
          this.#naming = inside === OPEN_BRACE;
          break;
        }
        if (next !== inside + 2) return false;
        this.at += 1;
        open.pop();
      }
    }
  }

  /** Begins the next piece. */
  pause(): undefined {
    this.#left = PIECE;
  }

  /** A string; undefined if the piece ends first. Unescaped control characters are accepted, as Chromium does. */
  string(): boolean | undefined {
    const data = this.#data;
    let at = this.at;
    if (!this.#inString) {
      if (data[at] !== QUOTE) return false;
      at += 1;
    }
    this.#inString = false;
    for (;;) {
      // Most strings are short: check some bytes here before a native search, which costs as much as fifty of them.
      const near = Math.min(at + 48, data.length);
      while (at < near && data[at] !== QUOTE && data[at] !== BACKSLASH) at += 1;
      if (at === near) at = this.#endOfPlainText(at);
      const byte = data[at];
      if (byte === QUOTE) {
        this.at = at + 1;
        return true;
      }
      this.at = at;
      if (byte !== BACKSLASH) return false; // the end of the message
      if (--this.#left < 0) {
        this.#inString = true;
        return undefined;
      }
      const escape = data[at + 1];
      if (escape === 0x75) {
        for (let digit = at + 2; digit < at + 6; digit++) if (!isHex(data[digit])) return false;
        at += 6;
      } else if (escape !== undefined && ESCAPES[escape] === 1) at += 2;
      else return false;
    }
  }

  /** The next quote or backslash, found natively. Both are remembered: one may be far behind many of the other. */
  #endOfPlainText(from: number): number {
    this.#left -= 4;
    if (this.#quote < from) this.#quote = indexOf(this.#data, QUOTE, from);
    if (this.#backslash < from) this.#backslash = indexOf(this.#data, BACKSLASH, from);
    return Math.min(this.#quote, this.#backslash);
  }

  #numberOrWord(): boolean {
    const data = this.#data;
    const start = this.at;
    const end = endOfDecimal(data, start);
    if (end > start && end - start < SHORT_NUMBER && (end === data.length || isDelimiter(data[end]!))) {
      this.#left -= (end - start) >>> 3;
      this.at = end;
      return true;
    }
    while (this.at < data.length && !isDelimiter(data[this.at]!)) {
      this.at += 1;
      if (this.at - start > MAX_NUMBER) return false;
    }
    this.#left -= 4 + ((this.at - start) >>> 3);
    const word = data.toString('latin1', start, this.at);
    if (word === 'true' || word === 'false' || word === 'null') return true;
    return NUMBER.test(word) && Number.isFinite(Number(word));
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const COLON = 0x3a;
const COMMA = 0x2c;
const MINUS = 0x2d;
/** The first letter of the only word that begins with it. */
const NULL = 0x6e;
const ESCAPES = new Uint8Array(256);
for (const escape of Buffer.from('"\\/bfnrt')) ESCAPES[escape] = 1;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const MAX_NUMBER = 400;
/** A number without an exponent that is shorter than this is finite. */
const SHORT_NUMBER = 300;
// oxlint-disable-next-line no-control-regex -- the pattern is for control characters
const CONTROLS = /[\u0000-\u001f]/g;

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** The position of a byte; the end if there is none. */
function indexOf(data: Buffer, byte: number, from: number): number {
  const found = data.indexOf(byte, from);
  return found === -1 ? data.length : found;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

/** The end of a short number without an exponent, read in place: a message may have millions. `start` if there is none. */
function endOfDecimal(data: Buffer, start: number): number {
  const most = start + SHORT_NUMBER;
  let at = data[start] === MINUS ? start + 1 : start;
  const whole = at;
  while (at < most && isDigit(data[at])) at += 1;
  if (at === whole || (data[whole] === 0x30 && at > whole + 1)) return start;
  if (data[at] !== 0x2e) return at;
  const fraction = at + 1;
  at = fraction;
  while (at < most && isDigit(data[at])) at += 1;
  return at === fraction ? start : at;
}

function isHex(byte: number | undefined): boolean {
  return isDigit(byte) || (byte !== undefined && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
}

/** What can follow a number or a word. */
function isDelimiter(byte: number): boolean {
  return byte === COMMA || byte === CLOSE_BRACE || byte === OPEN_BRACKET + 2 || byte <= 0x20;
}
