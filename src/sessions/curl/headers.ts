import type { IncomingHttpHeaders } from 'node:http';
import { errors } from '../../errors.ts';

/** Headers that describe a connection or a body, and are the browser's to write. */
const ofTheConnection = new Set([
  'host',
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'trailers',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Of a request to /curl/raw, what is about that request and not for the server it asks for: what clients and proxies in between
 * add by themselves, and what the browser says in its own words.
 */
const ofTheCourier = [
  /^accept-encoding$/,
  /^sec-fetch-/,
  /^x-stainless-/,
  /^x-kernel-/,
  /^x-corral-/,
  /^(forwarded|via|x-real-ip|x-request-id)$/,
  /^x-forwarded-/,
];

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The headers of a JSON request. What cannot be set is said, not passed over. */
export function checkedHeaders(headers: Record<string, string>): [string, string][] {
  return Object.entries(headers).map(([name, value]) => {
    if (!token.test(name)) throw errors.invalid_input({ detail: `headers has '${name}', which is no header's name.` });
    if (/[\r\n\0]/.test(value)) throw errors.invalid_input({ detail: `headers.${name} must be one line.` });
    if (ofTheConnection.has(name.toLowerCase())) {
      throw errors.invalid_input({ detail: `headers.${name} is the browser's to write; leave it out.` });
    }
    return [name, value];
  });
}

/** The headers of a request that is handed on as it came. */
export function handedOn(headers: IncomingHttpHeaders): [string, string][] {
  const named = new Set((headers.connection ?? '').toLowerCase().split(/\s*,\s*/));
  return Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    if (value === undefined || ofTheConnection.has(name) || named.has(name)) return [];
    if (ofTheCourier.some((pattern) => pattern.test(name)) || saidByTheClient(name, String(value))) return [];
    return [[name, Array.isArray(value) ? value.join(', ') : value]];
  });
}

/** What HTTP libraries send when nobody asked them to say anything: the browser has better words. */
function saidByTheClient(name: string, value: string): boolean {
  if (name === 'accept-language') return value === '*';
  return name === 'user-agent' && /^(Kernel\/|node\b|undici\b|python-httpx\/|Go-http-client\/|curl\/)/i.test(value);
}

/** What a site may say to a browser about its own origin, and not about ours, under whose address its answer is read. */
const ofTheOrigin = new Set(['clear-site-data', 'strict-transport-security', 'service-worker-allowed']);

/**
 * An answer's headers as they go to the client: without those of a connection that is not theirs, and of an encoding that is undone.
 * Whoever opens the address in a browser of their own gets a page that may run nothing in our name.
 */
export function passedBack(headers: readonly (readonly [string, string])[]): Record<string, string | string[]> {
  const encoded = headers.some(([name]) => name.toLowerCase() === 'content-encoding');
  const kept: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  for (const [given, value] of headers) {
    const name = given.toLowerCase();
    if (ofTheOrigin.has(name)) continue;
    if (name === 'content-encoding' || (name === 'content-length' ? encoded : ofTheConnection.has(name))) continue;
    const there = kept[name];
    kept[name] = there === undefined ? value : [there, value].flat();
  }
  kept['content-security-policy'] = [kept['content-security-policy'] ?? [], 'sandbox'].flat();
  kept['x-content-type-options'] = 'nosniff';
  return kept;
}
