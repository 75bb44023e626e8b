import { beginningOf } from '../../lib/text.ts';
import { wholeUtf8 } from '../../lib/utf8.ts';
import { REDACTED, withoutSecretPairs, withoutSecretParts, withoutSecretsInJson } from './secret-fields.ts';

export { REDACTED };

const STRUCTURED_BYTES = 8 * 1024;
const TEXT_BYTES = 4 * 1024;

const secretHeaders = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'cookie2',
  'set-cookie',
  'set-cookie2',
  'x-api-key',
  'api-key',
  'x-auth-token',
  'x-amz-security-token',
]);

/**
 * A JSON Web Token, at any place: the `base_url` of a session has one in its path. Its first two parts are JSON objects. The search
 * begins where a word does, or after an escaped character: from every letter, a hostile page could make it take long.
 */
const webTokens = /(?:(?<![\w-])|(?<=%[\dA-Fa-f]{2}))eyJ[\w-]{6,}\.eyJ[\w-]{2,}\.[\w-]*/g;
const credentials = /(:\/\/)[^\s/?#@"'<>]+@/g;

/** An address without its credentials and tokens, and without the values of password fields that a form sent with GET. */
export function cleanUrl(url: string): string {
  if (url.startsWith('data:')) return cutText(url, MOST_DATA_URL);
  const cut = cutText(url, MOST_URL);
  const known = withoutTokens(cut.includes('@') ? cut.replace(credentials, `$1${REDACTED}@`) : cut);
  return withoutSecretPairs(known);
}
const withoutTokens = (text: string) => (text.includes('.eyJ') ? text.replace(webTokens, REDACTED) : text);
const MOST_URL = 16_384;
const MOST_DATA_URL = 256;

const MOST_HEADERS = 200;
const MOST_HEADER_NAME = 256;
const MOST_HEADER = 8192;
/** For the values of all headers together: Chromium takes 256 KiB from a server, and the search for secrets costs time for each. */
const MOST_HEADER_VALUES = 64 * 1024;

export function cleanHeaders(headers: Record<string, unknown>): Record<string, string> {
  const clean: Record<string, string> = {};
  let count = 0;
  let left = MOST_HEADER_VALUES;
  for (const name of Object.keys(headers)) {
    if (++count > MOST_HEADERS) break;
    const key = beginningOf(name, MOST_HEADER_NAME);
    if (secretHeaders.has(name.toLowerCase())) {
      clean[key] = REDACTED;
      continue;
    }
    const value = cutText(String(headers[name]), Math.min(MOST_HEADER, left));
    left = Math.max(0, left - value.length);
    clean[key] = cleanUrl(value);
  }
  return clean;
}

/** How many bytes of a body of this type are captured; undefined: none. */
export function bodyLimit(contentType: string): number | undefined {
  const type = contentType.split(';', 1)[0]!.trim().toLowerCase();
  if (/^(application|text)\/(json|xml|x-www-form-urlencoded|yaml|x-yaml|graphql|x-ndjson|csv)$/.test(type))
    return STRUCTURED_BYTES;
  if (type === 'multipart/form-data' || /^(application|text|image|model)\/[^/]+\+(json|xml|yaml)$/.test(type))
    return STRUCTURED_BYTES;
  if (type.startsWith('text/')) return TEXT_BYTES;
  if (/^application\/(javascript|x-javascript|ecmascript|graphql-response|sql|x-sh|toml|wasm-text)$/.test(type))
    return TEXT_BYTES;
  return undefined;
}

/** A redacted body: cut to `bytes`, and with the values of secret fields replaced. Undefined if it is not text. */
export function cleanBody(body: string, bytes: number): string | undefined {
  const text = cutBytes(body, bytes);
  if (/[\0\uFFFD]/.test(text)) return undefined;
  const clean = withoutSecretParts(withoutSecretsInJson(withoutSecretPairs(withoutTokens(text))));
  return clean.includes('@') ? clean.replace(credentials, `$1${REDACTED}@`) : clean;
}

/** The longest beginning of a text that has at most this many bytes, in whole characters. */
export function cutBytes(text: string, bytes: number): string {
  const start = text.length > bytes ? text.slice(0, bytes) : text;
  const encoded = Buffer.from(start);
  if (encoded.length <= bytes && start === text) return text;
  const cut = encoded.subarray(0, bytes);
  return cut.subarray(0, wholeUtf8(cut) ?? bytes).toString();
}

/** For texts of pages that have no limit of their own. The cut part is not kept in memory. */
export function cutText(text: string, length: number): string {
  return text.length > length ? `${beginningOf(text, length)}…` : text;
}
