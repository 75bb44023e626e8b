import type { IncomingHttpHeaders } from 'node:http';
import { announcedLength } from '../../chromium/pages/body-stream.ts';
import { errors } from '../../errors.ts';
import { hopByHop, namedByConnection } from '../../lib/hop-by-hop.ts';

/** Headers that describe a connection or a body. The browser writes them itself. */
const ofTheConnection = new Set([...hopByHop, 'host', 'content-length', 'expect', 'trailers']);

/**
 * Headers of a request to /curl/raw that concern that request and not the target server: those that clients and proxies in between add by
 * themselves, and those that the browser writes itself.
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

/** The headers of a JSON request. Headers that cannot be set are refused, not ignored. */
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

/** The headers of a request that is forwarded as it came. */
export function handedOn(headers: IncomingHttpHeaders): [string, string][] {
  const named = namedByConnection(headers.connection);
  return Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    if (value === undefined || ofTheConnection.has(name) || named.has(name)) return [];
    if (ofTheCourier.some((pattern) => pattern.test(name)) || saidByTheClient(name, String(value))) return [];
    return [[name, Array.isArray(value) ? value.join(', ') : value]];
  });
}

/** Default headers of HTTP libraries: the browser's own values are better. */
function saidByTheClient(name: string, value: string): boolean {
  if (name === 'accept-language') return value === '*';
  return name === 'user-agent' && /^(Kernel\/|node\b|undici\b|python-httpx\/|Go-http-client\/|curl\/)/i.test(value);
}

/**
 * Headers by which a site instructs a browser about its own origin. The answer is read under the service's origin, so they must not apply
 * there: where to connect instead, where to report (reports carry the address, and the address carries the token), what to forget, to
 * load or to allow. This is a list of refused headers, not of allowed ones: clients need the headers of sites, which have names of their
 * own. A browser acts only on headers that some standard knows, and these are the ones that outlive a single answer or send something
 * somewhere.
 */
const ofTheOrigin = new Set([
  'accept-ch',
  'accept-ch-lifetime',
  'activate-storage-access',
  'alt-svc',
  'clear-site-data',
  'content-security-policy', // replaced by the service's own
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
  'referrer-policy', // replaced by the service's own
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
 * Refuses to be loaded as a page, a frame or a part of one: a site's answer would run there under the service's origin. Browsers say what
 * they load a resource for (Sec-Fetch-*); a script that reads the answer is allowed, and other clients send no such header.
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
 * The headers of an answer for the client: without those of the browser's connection, and of an encoding that is already decoded. If the
 * address is opened in a client's own browser, the page may run nothing under the service's origin.
 */
export function passedBack(
  headers: readonly (readonly [string, string])[],
  asked: IncomingHttpHeaders = {},
): Record<string, string | string[]> {
  // Node's own fetch sends sec-fetch-mode as well, but neither sec-fetch-site nor sec-fetch-dest.
  const byBrowser = asked['sec-fetch-dest'] !== undefined || asked['sec-fetch-site'] !== undefined;
  const kept: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  for (const [given, value] of headers) {
    const name = given.toLowerCase();
    if (ofTheOrigin.has(name) || ofTheOriginToo.test(name) || (byBrowser && name === 'set-cookie')) continue;
    if (name === 'content-encoding' || ofTheConnection.has(name)) continue;
    const there = kept[name];
    if (Array.isArray(there)) there.push(value);
    else kept[name] = there === undefined ? value : [there, value];
  }
  const length = announcedLength(headers);
  if (length !== undefined) kept['content-length'] = String(length);
  kept['content-security-policy'] = "default-src 'none'; sandbox";
  kept['referrer-policy'] = 'no-referrer';
  kept['x-content-type-options'] = 'nosniff';
  return kept;
}
