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

/**
 * What a site may say to a browser about its own origin, and not about ours, under whose address its answer is read: where to connect
 * instead, where to report (reports carry the address, and the address carries the token), what to forget, to load or to allow. A list of
 * what is refused and not of what is passed on: clients come for the headers of sites, which have names of their own. A browser acts on none
 * but those that some standard knows, and these are the ones that outlive a single answer or send something somewhere.
 */
const ofTheOrigin = new Set([
  'accept-ch',
  'accept-ch-lifetime',
  'activate-storage-access',
  'alt-svc',
  'clear-site-data',
  'content-security-policy', // ours stands in its place
  'cross-origin-embedder-policy',
  'cross-origin-opener-policy',
  'critical-ch',
  'document-policy',
  'expect-ct',
  'feature-policy',
  'integrity-policy',
  'link',
  'nel',
  'observe-browsing-topics',
  'origin-agent-cluster',
  'origin-trial',
  'p3p',
  'permissions-policy',
  'public-key-pins',
  'referrer-policy', // ours stands in its place
  'refresh',
  'report-to',
  'reporting-endpoints',
  'require-document-policy',
  'service-worker-allowed',
  'set-login',
  'sourcemap',
  'speculation-rules',
  'strict-transport-security',
  'supports-loading-mode',
  'use-as-dictionary',
  'x-dns-prefetch-control',
  'x-sourcemap',
]);
const ofTheOriginToo = /-report-only$|^attribution-reporting-|^ad-auction-|^sec-|^shared-storage-/;

/**
 * Refuses to be a page, a frame or a part of one: what a site answers would be ours there. Browsers say what they load a thing for
 * (Sec-Fetch-*); a script that reads the answer may, and other clients say nothing.
 */
export function refuseToBeLoaded(headers: IncomingHttpHeaders): void {
  const mode = headers['sec-fetch-mode'];
  const dest = headers['sec-fetch-dest'];
  if ((dest === undefined || dest === 'empty') && (mode === undefined || !/navigate|websocket/.test(mode))) return;
  throw errors.forbidden({
    detail:
      'This address is for programs. It is not opened in a browser: what it answers would run in the name of this service.',
  });
}

/**
 * An answer's headers as they go to the client: without those of a connection that is not theirs, and of an encoding that is undone.
 * Whoever opens the address in a browser of their own gets a page that may run nothing in our name.
 */
export function passedBack(
  headers: readonly (readonly [string, string])[],
  asked: IncomingHttpHeaders = {},
): Record<string, string | string[]> {
  // Node's own fetch says sec-fetch-mode as well, and nothing of where it comes from or what for.
  const byBrowser = asked['sec-fetch-dest'] !== undefined || asked['sec-fetch-site'] !== undefined;
  const encoded = headers.some(([name]) => name.toLowerCase() === 'content-encoding');
  const kept: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  for (const [given, value] of headers) {
    const name = given.toLowerCase();
    if (ofTheOrigin.has(name) || ofTheOriginToo.test(name) || (byBrowser && name === 'set-cookie')) continue;
    if (name === 'content-encoding' || (name === 'content-length' ? encoded : ofTheConnection.has(name))) continue;
    const there = kept[name];
    kept[name] = there === undefined ? value : [there, value].flat();
  }
  kept['content-security-policy'] = "default-src 'none'; sandbox";
  kept['referrer-policy'] = 'no-referrer';
  kept['x-content-type-options'] = 'nosniff';
  return kept;
}
