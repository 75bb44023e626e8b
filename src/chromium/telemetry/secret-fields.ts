/** The text in the place of a secret. */
export const REDACTED = '[redacted]';

/** Fields that hold what people type into password fields, and fields for one-time codes. */
const secretWord = /passw(?:or)?d|passphrase|passcode|pwd|secret|one[-_]?time[-_]?code|cvv|cvc/i;
const secretName = '^(?:totp|pin|jwt|api[-_]?key|(?:access|refresh|id|auth|session)[-_]?token)|(?:^|[_.-])otp';
/** Names that forms give to fields for one-time codes, and OAuth to its own. In JSON an error has a `code` too: only digits are cut there. */
const codeName = '(?:^|[_.-])(?:code|tan|mfa|2fa)|^(?:verification|security|auth|login|sms|mail|email|backup)code';
const whole = { secret: new RegExp(`(?:${secretName})$`, 'i'), code: new RegExp(`(?:${codeName})$`, 'i') };
const begun = new RegExp(`${secretName}|${codeName}`, 'i');

const isSecret = (name: string) => secretWord.test(name) || whole.secret.test(name);
const isCode = (name: string) => whole.code.test(name);
/** In a form with files, a name may go on: `code[0]`. */
const beginsSecret = (name: string) => secretWord.test(name) || begun.test(name);

/**
 * Each of these reads a text once. A name is found first and looked at by itself: an expression with both in one tries every part of a long
 * name as the word in it, and a page that has nothing but such names takes a second for 8 KiB.
 */

/** A form's text and the query of an address: `a=1&password=…`. */
export function withoutSecretPairs(text: string): string {
  const names = /(?:^|[&?#])([\w.\-[\]]+)=/g;
  const value = /[^&#\s"'<>]*/y;
  return rewritten(text, names, (name, at) =>
    isSecret(name) || isCode(name) ? { from: at, to: endOf(value, text, at), text: REDACTED } : undefined,
  );
}

/** JSON, whole or cut: `"password": "…"`. */
export function withoutSecretsInJson(text: string): string {
  const names = /"([\w.\-[\]]+)"\s*:\s*/g;
  const number = /-?\d[\d.eE+-]*/y;
  const code = /"[\d\s-]{4,12}"/y;
  return rewritten(text, names, (name, at) => {
    const pattern = isSecret(name) ? number : isCode(name) ? code : undefined;
    if (!pattern) return undefined;
    const to = pattern === number && text[at] === '"' ? endOfString(text, at) : endOf(pattern, text, at);
    return to === at ? undefined : { from: at, to, text: `"${REDACTED}"` };
  });
}

/** The parts of a form with files: a head with `name="password"`, an empty line, and the value up to the next boundary. */
export function withoutSecretParts(text: string): string {
  const names = /name="?((?<=")[^"\r\n]*|[\w.\-[\]]*)/gi;
  let headsEnd: number | undefined; // an empty line is looked for once, for all names before it
  return rewritten(text, names, (name, at) => {
    if (!beginsSecret(name)) return undefined;
    if (headsEnd === undefined || headsEnd < at) headsEnd = afterEmptyLine(text, at);
    const from = headsEnd;
    const boundary = text.indexOf('\n--', from);
    const to = boundary === -1 ? text.length : boundary - (boundary > from && text[boundary - 1] === '\r' ? 1 : 0);
    return from === Infinity ? undefined : { from, to, text: REDACTED };
  });
}

/** What to write in the place of a part of a text, from a place after a name on. */
interface Change {
  from: number;
  to: number;
  text: string;
}

/**
 * A text with a change after each name that has one. The search continues after the change, or without one inside the name, since
 * what a page wrote around it need not be what it looks like.
 */
function rewritten(text: string, names: RegExp, changeOf: (name: string, at: number) => Change | undefined): string {
  let [out, from] = ['', 0];
  for (let found = names.exec(text); found; found = names.exec(text)) {
    const change = changeOf(found[1]!, names.lastIndex);
    names.lastIndex = change ? change.to : found.index + 1;
    if (!change) continue;
    out += text.slice(from, change.from) + change.text;
    from = change.to;
  }
  return out + text.slice(from);
}

/** Where what a sticky expression reads from a place on ends; that place, if it is not there. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

/** Where a string of JSON ends, or the text, if it is cut. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return Math.min(at + 1, text.length);
}

/** The place after the next empty line; Infinity, if there is none. */
function afterEmptyLine(text: string, start: number): number {
  for (let at = text.indexOf('\n', start); at !== -1; at = text.indexOf('\n', at + 1)) {
    if (text[at + 1] === '\n') return at + 2;
    if (text.startsWith('\r\n', at + 1)) return at + 3;
  }
  return Infinity;
}
