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

/** An address to keep: without what handed the login over. A fragment stays where it is a route of the page. */
export function keptAddress(url: string): string {
  const kept = urlOf(url);
  if (!kept) return url;
  kept.username = '';
  kept.password = '';
  const asked = [...kept.searchParams];
  const dropped = new Set(asked.flatMap(([name, value]) => (passing.test(name) || value.length > 40 ? [name] : [])));
  if (dropped.size > 0) kept.search = new URLSearchParams(asked.filter(([name]) => !dropped.has(name))).toString();
  kept.hash = routeOf(kept.hash);
  return kept.href;
}

/** The part of a fragment that is a route of the page, and no secret: `#/orders`, `#!/orders`, `#orders`, `#tab=orders`. */
function routeOf(hash: string): string {
  const path = /^#!?\/[\w/.-]*(?=$|\?)/.exec(hash)?.[0];
  if (path !== undefined) return path;
  const [, mark = '', rest = ''] = /^(#!?)(.*)$/s.exec(hash) ?? [];
  if (rest.length > mostRoute) return '';
  const isRoute = rest.split('&').every((part) => {
    const [name = '', value = '', ...more] = part.split('=');
    return more.length === 0 && isWord(name) && (value === '' || (!passing.test(name) && isWord(value)));
  });
  return isRoute ? mark + rest : '';
}

const mostRoute = 100;

/** A name that people gave. What has digits and is long was made by a program, and may let somebody in. */
const isWord = (text: string) =>
  /^[a-z][\w/.:-]*$/i.test(text) && text.length <= 40 && !(text.length > 16 && /\d/.test(text));

/** Whether an address is the one that was kept, but for what handed a login over. */
export const isSameAddress = (url: string, kept: string): boolean => keptAddress(url) === keptAddress(kept);

/** Whether an address is at the page of one that was kept: its path, and the words of its query and its fragment. */
export function isAtPage(url: string, kept: string): boolean {
  if (pageAddress(url) !== pageAddress(kept)) return false;
  const here = wordsOf(url);
  return [...wordsOf(kept)].every((word) => here.has(word));
}

/** What says in the query and the fragment which page it is. Numbers and dates change from visit to visit. */
function wordsOf(url: string): Set<string> {
  const { searchParams, hash } = urlOf(keptAddress(url)) ?? {};
  const asked = [...(searchParams ?? [])].filter(([, value]) => /^[a-z][a-z/._-]*$/i.test(value));
  return new Set([...asked.map((pair) => JSON.stringify(pair)), ...(hash ? [hash] : [])]);
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
