import { isIP } from 'node:net';
import type { FlowConnection } from './types.ts';

/**
 * Hosts of identity providers that every connection may use, with the provider's word in the API. A name stands for
 * itself, `*.` for every name below it.
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
    '*.b2clogin.com',
    '*.ciamlogin.com',
  ],
  okta: ['*.okta.com', '*.oktapreview.com', '*.okta-emea.com', '*.okta-gov.com'],
  auth0: ['*.auth0.com'],
  apple: ['appleid.apple.com', 'account.apple.com', 'idmsa.apple.com'],
  github: ['github.com'],
  facebook: ['facebook.com', '*.facebook.com'],
  linkedin: ['linkedin.com', '*.linkedin.com'],
  cognito: ['*.amazoncognito.com'],
  onelogin: ['*.onelogin.com'],
  ping: [
    '*.pingidentity.com',
    '*.pingone.com',
    '*.pingone.eu',
    '*.pingone.ca',
    '*.pingone.asia',
    '*.pingone.com.au',
    '*.pingone.sg',
  ],
};

/** Where a flow may type and click. */
export interface AllowedHosts {
  /** Of the connection itself: its domain, the host of its login_url, its allowed_domains. */
  own(url: string): boolean;
  /** The provider's word, for an address of a well-known identity provider. */
  sso(url: string): string | undefined;
  allows(url: string): boolean;
}

export function allowedHosts({ domain, loginUrl, allowedDomains }: FlowConnection): AllowedHosts {
  const login = loginUrl === undefined ? undefined : hostOf(loginUrl);
  const own = [domain, ...allowedDomains].flatMap((name) => ownPattern(name) ?? []);
  const isOwn = (url: string) => {
    const host = hostOf(url);
    return host !== undefined && (host === login || own.some((pattern) => covers(pattern, host)));
  };
  return {
    own: isOwn,
    sso: ssoProviderOf,
    allows: (url) => isOwn(url) || ssoProviderOf(url) !== undefined,
  };
}

export function ssoProviderOf(url: string): string | undefined {
  const host = hostOf(url);
  if (host === undefined) return undefined;
  return Object.entries(ssoHosts).find(([, patterns]) => patterns.some((pattern) => fits(pattern, host)))?.[0];
}

/** The host of a web address, without its port: a site's login often runs on another port of the same machine. */
export function hostOf(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' || protocol === 'https:' ? bare(hostname) : undefined;
}

/** People write a domain as a name, with `*.`, with a port, or as an address. */
function ownPattern(text: string): string | undefined {
  const name = text.trim().replace(/^(https?:\/\/)?\*\./i, '$1');
  return hostOf(/^https?:\/\//i.test(name) ? name : `http://${name}`)?.replace(/^www\./, '');
}

/** A domain stands for itself and for every name below it. An IP address has nothing below it. */
const covers = (domain: string, host: string) => host === domain || (isIP(domain) === 0 && host.endsWith(`.${domain}`));
const fits = (pattern: string, host: string) =>
  pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern;
const bare = (hostname: string) =>
  hostname
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
