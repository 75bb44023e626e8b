import { urlOf } from '../../lib/urls.ts';
import { allowedHosts, hostOf } from './hosts.ts';
import type { FlowConnection, Recipe } from './types.ts';

/** Paths that sites have their login at. They are tried only after every link was followed. */
const guessedPaths = ['/login', '/signin', '/users/sign_in', '/auth/login', '/account/login', '/admin'];

/** Parameters of addresses that hand a login over. They are of no use later, and may be secret. */
const passing =
  /token|session|^(?:auth|sig|pass|error)|^(?:code|state|nonce|ticket|samlresponse|relaystate|sid|hmac|key|secret|otp|jwt|assertion|iss)$/i;

/** Where a login may begin, in the order to try them. */
export function entryAddresses(connection: FlowConnection, recipe?: Recipe): string[] {
  const roots = rootAddresses(connection);
  return unique([
    ...(connection.loginUrl ? [connection.loginUrl] : []),
    // It may have been learned while http was allowed.
    ...(recipe && allowedHosts(connection).safe(recipe.entryUrl) ? [recipe.entryUrl] : []),
    ...roots,
  ]);
}

/** Where a login page often is. `seen` is an address that answered: the site's own scheme and port. */
export function guessedAddresses(connection: FlowConnection, seen: string | undefined): string[] {
  const root = urlOf(seen ?? '')?.origin ?? rootAddresses(connection)[0];
  return root === undefined ? [] : guessedPaths.map((path) => new URL(path, root).href);
}

/** The start page of the domain: https, unless the connection says `http:`, since a password follows. */
function rootAddresses({ domain, plainHttp, loginUrl }: FlowConnection): string[] {
  const name = domain.replace(/^(https?:\/\/)?\*\./i, '$1');
  const root = /^https?:\/\//i.test(name) ? name : `${plainHttp ? 'http' : 'https'}://${name}`;
  const host = hostOf(root);
  if (host === undefined) return [];
  // A login_url on the same host knows the scheme and the port.
  return [new URL('/', loginUrl !== undefined && hostOf(loginUrl) === host ? loginUrl : root).href];
}

/** An address to keep: without what handed the login over. A fragment stays when it is a route of the page. */
export function keptAddress(url: string): string {
  const kept = urlOf(url);
  if (!kept) return url;
  kept.username = '';
  kept.password = '';
  const asked = [...kept.searchParams];
  const dropped = new Set(asked.flatMap(([name, value]) => (passing.test(name) || value.length > 40 ? [name] : [])));
  if (dropped.size > 0) kept.search = new URLSearchParams(asked.filter(([name]) => !dropped.has(name))).toString();
  if (!/^#!?\/[\w/.-]*$/.test(kept.hash)) kept.hash = '';
  return kept.href;
}

/** Identifies a page: origin, path, and the route in the fragment, without the query. */
export function pageAddress(url: string): string {
  const page = urlOf(url);
  if (!page) return url.slice(0, 200);
  const { origin, pathname, hash, protocol } = page;
  const route = /^#!?\/[\w/.-]*/.exec(hash)?.[0] ?? '';
  return protocol === 'http:' || protocol === 'https:' ? `${origin}${pathname}${route}` : protocol;
}

/** An address for records: parameters by name, without their values. `clean` removes secrets, before the rest is cut. */
export function shownAddress(url: string, clean = (text: string) => text): string {
  const address = urlOf(url);
  if (!address) return '';
  const names = [...address.searchParams.keys()].slice(0, 10).map((name) => clean(name).slice(0, 40));
  return (
    clean(pageAddress(url)).slice(0, 500) + (names.length > 0 ? `?${names.map((name) => `${name}=…`).join('&')}` : '')
  );
}

const unique = (texts: string[]) => [...new Set(texts)];
