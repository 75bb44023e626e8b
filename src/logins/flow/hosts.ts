import { isIP } from 'node:net';
import { urlOf } from '../../lib/urls.ts';
import type { FlowConnection, WasTyped } from './types.ts';

/**
 * Hosts that belong to a single identity provider, with the provider's name in the API. Only the provider receives values typed there. They
 * count only in a login that uses that provider.
 */
const ssoHosts: Record<string, readonly string[]> = {
  google: ['accounts.google.com', 'myaccount.google.com', 'accounts.youtube.com'],
  microsoft: [
    'login.microsoftonline.com',
    'login.microsoftonline.us',
    'login.partner.microsoftonline.cn',
    'login.microsoft.com',
    'login.windows.net',
    'login.live.com',
    'account.live.com',
  ],
  apple: ['appleid.apple.com', 'account.apple.com', 'idmsa.apple.com'],
  github: ['github.com'],
  facebook: ['facebook.com', 'www.facebook.com', 'm.facebook.com'],
  linkedin: ['linkedin.com', 'www.linkedin.com'],
};

/** Domains that give names to everyone. A name below them is a separate site, unrelated to the others. */
const shared = [
  'auth0.com',
  'okta.com',
  'oktapreview.com',
  'okta-emea.com',
  'okta-gov.com',
  'b2clogin.com',
  'ciamlogin.com',
  'amazoncognito.com',
  'onelogin.com',
  'pingidentity.com',
  'pingone.com',
  'pingone.eu',
  'pingone.ca',
  'pingone.asia',
  'pingone.com.au',
  'pingone.sg',
];

/** In place of a host: the connection's own hosts. No address has this host. */
export const theSite = '';

interface Site {
  host: string;
  /** Itself alone; also with and without `www.`, which is the same site by convention; or also every name below it. */
  reach: 'itself' | 'www' | 'below';
  /** The connection says `http:` for it. */
  plain: boolean;
}

/** The hosts of a connection. The port does not count: a site's login often runs on another port of the same machine. */
export interface AllowedHosts {
  /** Of the connection itself: its domain, the host of its login_url, its allowed_domains. */
  own(url: string): boolean;
  /** The same by https, or by http if the connection allows it. */
  safe(url: string): boolean;
  /** Of a host that a person confirmed in an earlier login: whether the person typed a value there. */
  learned(url: string): WasTyped | undefined;
  /** Whether a person typed this value at an identity provider and, as far as is known, not at this address or the site. */
  foreign(url: string, name: string, value: string): boolean;
  /** The provider's word, for an address of a well-known identity provider. */
  sso(url: string): string | undefined;
  /** The connection's own passkeys may be for this host: for one of its hosts, or for a name above one. */
  passkeys(url: string): boolean;
}

export function allowedHosts(connection: FlowConnection): AllowedHosts {
  const { domain, plainHttp, loginUrl, allowedDomains, ssoHosts: learned = {} } = connection;
  const sites = [
    ...siteOf(domain, plainHttp),
    ...allowedDomains.flatMap((name) => siteOf(name)),
    ...(loginUrl === undefined ? [] : siteOf(loginUrl, false, 'www')),
  ];
  const of = (url: string) => {
    const host = hostOf(url);
    return host === undefined ? [] : sites.filter((site) => covers(site, host));
  };
  const learnedAt = (url: string) => {
    const host = isHttps(url) ? hostOf(url) : undefined;
    return host !== undefined && Object.hasOwn(learned, host) ? learned[host] : undefined;
  };
  const isTyped = (wasTyped: WasTyped | undefined, name: string, value: string) => wasTyped?.(name, value) ?? false;
  return {
    own: (url) => of(url).length > 0,
    safe: (url) => of(url).some(({ plain }) => plain || isHttps(url)),
    learned: learnedAt,
    foreign: (url, name, value) =>
      Object.values(learned).some((wasTyped) => isTyped(wasTyped, name, value)) &&
      !isTyped(learned[theSite], name, value) &&
      !isTyped(learnedAt(url), name, value),
    sso: ssoProviderOf,
    passkeys: (url) => {
      const host = hostOf(url);
      const isAbove = (one: string) => host !== undefined && one.endsWith(`.${host}`);
      return of(url).length > 0 || [...sites.map((site) => site.host), ...Object.keys(learned)].some(isAbove);
    },
  };
}

export function ssoProviderOf(url: string): string | undefined {
  const host = hostOf(url);
  if (host === undefined || !isHttps(url)) return undefined;
  return Object.entries(ssoHosts).find(([, hosts]) => hosts.includes(host))?.[0];
}

/** The host of a web address, without its port. */
export function hostOf(url: string): string | undefined {
  const { protocol, hostname = '' } = urlOf(url) ?? {};
  return protocol === 'http:' || protocol === 'https:' ? bare(hostname) : undefined;
}

export const isHttps = (url: string) => /^https:/i.test(url);

/**
 * People write a domain as a name, with `*.`, with a port, or as an address. The name counts as it is written: `www.shop.example` does not
 * include the other names below `shop.example`.
 */
function siteOf(text: string, plainHttp = false, reach: Site['reach'] = 'below'): Site[] {
  const name = text.trim().replace(/^(https?:\/\/)?\*\./i, '$1');
  const host = hostOf(/^https?:\/\//i.test(name) ? name : `https://${name}`);
  if (host === undefined) return [];
  const isShared = shared.some((one) => host === one || host.endsWith(`.${one}`));
  const plain = plainHttp || /^http:/i.test(name);
  return [{ host, reach: isIP(host) !== 0 || isShared ? 'itself' : reach, plain }];
}

const covers = ({ host: own, reach }: Site, host: string) =>
  host === own ||
  (reach !== 'itself' && withoutWww(host) === withoutWww(own)) ||
  (reach === 'below' && host.endsWith(`.${own}`));
const withoutWww = (host: string) => host.replace(/^www\./, '');
const bare = (hostname: string) =>
  hostname
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
