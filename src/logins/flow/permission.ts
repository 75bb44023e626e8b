import { namesSite } from '../../credentials/domains.ts';
import type { OpenCredential } from '../../credentials/service.ts';
import type { Allow } from './browser.ts';
import type { Flow } from './context.ts';
import type { Fill } from './decision.ts';
import { hostOf, isHttps } from './hosts.ts';
import type { Look } from './types.ts';
import { isShownName } from './values.ts';

/** The source of a value, and its name in the credential. */
export type Origin = Pick<Fill, 'from' | 'name'>;

/**
 * Where a value may be typed. The browser asks it for the document of the field and for each one around it, in the moment of typing:
 * nothing is typed elsewhere, also if a recipe or a person chose the field.
 */
export function allowFor(flow: Flow, value: Origin): Allow {
  const { credential } = flow.page;
  return (origin, around = false) =>
    (value.from === 'person' || isNamed(credential, origin)) &&
    (around || !isForeign(flow, value, credential, origin)) &&
    (flow.hosts.safe(origin) || isAtProvider(flow, value, credential, origin));
}

/** A provider's item is typed only where the item itself names the host. */
const isNamed = (credential: OpenCredential | undefined, origin: string) =>
  credential?.hosts === undefined || namesSite(credential.hosts, origin);

/**
 * The host of an identity provider. A person's values go to those that the person confirmed, in this login or an earlier one, and to the
 * provider that was chosen. The credential's go there if they are what the person typed there, or if they are for that provider.
 */
function isAtProvider(flow: Flow, { from, name }: Origin, credential: OpenCredential | undefined, origin: string) {
  const learned = flow.hosts.learned(origin);
  const provider = flow.hosts.sso(origin);
  if (from === 'person')
    return learned !== undefined || isConfirmed(flow, origin) || isSame(provider, wantedProvider(flow, credential));
  const value = name === undefined ? undefined : credential?.values[name];
  if (name !== undefined && value !== undefined && learned?.(name, value)) return true;
  // The provider that the connection has learned is the way that a login took. The credential's password may be for another.
  return isSame(provider, credential?.ssoProvider);
}

/**
 * A secret of the credential that a person typed at an identity provider, and not here: the site does not get the password of the provider.
 * User names are for both, since many sites ask for the name before they go to the provider.
 */
function isForeign(flow: Flow, { from, name }: Origin, credential: OpenCredential | undefined, origin: string) {
  const value = name === undefined ? undefined : credential?.values[name];
  if (from !== 'credential' || name === undefined || value === undefined || isShownName(name)) return false;
  const isTheirs =
    credential?.providerKeys?.includes(name) ||
    flow.hosts.foreign(origin, name, value) ||
    wasOnlyAtProvider(flow, credential);
  return isTheirs && flow.hosts.own(origin) && !isAtProvider(flow, { from, name }, credential, origin);
}

/** The credential is for a well-known provider, and the last login went there and asked for its password nowhere else. */
function wasOnlyAtProvider({ hosts, input }: Flow, credential: OpenCredential | undefined) {
  const provider = credential?.ssoProvider?.toLowerCase();
  if (!isSame(provider, input.connection.ssoProvider)) return false;
  const steps = input.recipe?.steps.filter(({ fills }) => fills.some(({ type }) => type === 'password')) ?? [];
  return steps.length > 0 && steps.every(({ page }) => hosts.sso(page) === provider);
}

export const wantedProvider = ({ input, page, person }: Flow, credential = page.credential) =>
  person.ssoProvider ?? input.connection.ssoProvider ?? credential?.ssoProvider;

/** Pages that a login may visit: of the connection, or of its identity provider. */
export const mayBeAt = (flow: Flow, url: string): boolean =>
  flow.hosts.own(url) || isAtProvider(flow, { from: 'person' }, flow.page.credential, url);

/** Documents that a person's values, at least, may be typed into. */
export const mayTypeAt = (flow: Flow, origin: string): boolean => allowFor(flow, { from: 'person' })(origin);

/** The values of the credential for the documents that ask: the page itself and those of its fields. The person is asked for the others. */
export function credentialAt(
  flow: Flow,
  credential: OpenCredential,
  { snapshot, reading }: Look,
): OpenCredential | undefined {
  const fields = [...reading.fields, ...(snapshot.basicAuth ? [snapshot.basicAuth] : [])];
  const asking = new Set(fields.flatMap(({ origin }) => origin ?? []));
  const foreign = [...new Set([pageOrigin(snapshot), ...asking])].filter((origin) => !flow.hosts.own(origin));
  const allowed = (value: Origin) =>
    foreign.every((origin) => isAtProvider(flow, value, credential, origin)) &&
    [...asking].every((origin) => !isForeign(flow, value, credential, origin));
  const all = Object.entries(credential.values);
  const values = all.filter(([name]) => allowed({ from: 'credential', name }));
  if (foreign.length === 0)
    return values.length === all.length ? credential : { ...credential, values: Object.fromEntries(values) };
  if (values.length === 0) return undefined;
  const { totp, codeSources } = allowed({ from: 'code' }) ? credential : {};
  return { ...credential, values: Object.fromEntries(values), totp, codeSources };
}

/** The address of a page, or the origin of its document where the address, such as `about:blank` or `blob:`, does not contain it. */
export const pageOrigin = ({ url, frames }: Look['snapshot']): string =>
  hostOf(url) === undefined ? (frames.find(({ main }) => main)?.origin ?? '') : url;

const isConfirmed = (flow: Flow, url: string) => isHttps(url) && flow.person.hasConfirmed(hostOf(url) ?? '');

/** Why nothing is typed there, and what to do about it. Without an origin the document belongs to no site. */
export function refusal(flow: Flow, origin: string | undefined): string {
  const host = origin === undefined ? undefined : hostOf(origin);
  if (origin === undefined || host === undefined)
    return 'The login form is in a document that belongs to no site, such as a sandboxed frame. Nothing is typed into it.';
  const named = new URL(origin).host;
  if (flow.hosts.own(origin) && !flow.hosts.safe(origin))
    return `The login is at http://${named}, without https, and nothing is typed there. If the site has no https, say so: set login_url, or the entry of allowed_domains, to an address that begins with http://.`;
  if (flow.hosts.safe(origin) && !isNamed(flow.page.credential, origin))
    return `The login is at ${named}, which the item of the credential does not name. Add it to the addresses of the item if the password is for it.`;
  if (flow.hosts.safe(origin))
    return `The login is at ${named}, and the password was typed at an identity provider. Start a login and type the password of ${named}.`;
  const provider = flow.hosts.sso(origin);
  const also = provider === undefined ? '' : `, or set sso_provider of the credential to ${provider}`;
  return `The login is at ${named}, which the connection does not allow. Add it to allowed_domains if it belongs to the site${also}.`;
}

const isSame = (provider: string | undefined, wanted: string | undefined) =>
  provider !== undefined && wanted?.toLowerCase() === provider;
