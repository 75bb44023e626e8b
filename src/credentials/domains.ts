import { isIP } from 'node:net';
import { turns } from '../lib/turns.ts';
import { urlOf } from '../lib/urls.ts';

const label = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

interface Site {
  host: string;
  /** Without `www.`, which is the same site by convention. */
  bare: string;
  isAddress: boolean;
  /** As it was written; undefined for the scheme's own. */
  port: string | undefined;
  /** As it was written; undefined for a name alone. */
  scheme: 'http:' | 'https:' | undefined;
}

/**
 * `shop.example` for `shop.example`, `Shop.Example.` and `https://shop.example/login`: people paste addresses where a name
 * is meant. A port stays. Undefined when there is no host in it.
 */
export function domainOf(text: string): string | undefined {
  const site = siteOf(text);
  if (!site) return undefined;
  const host = site.host.includes(':') ? `[${site.host}]` : site.host;
  return site.port === undefined ? host : `${host}:${site.port}`;
}

/**
 * How well an address of an item fits a site, which is a domain or the address of a page; 0 for not at all, and a higher
 * number is a better fit. A name below or above another does not fit by itself: both shop.example and evil.example are
 * below `example`, and a password must not reach a site that its item does not name.
 */
export function fit(address: string, of: string): number {
  const [item, site] = [namedSite(address), siteOf(of)];
  return item && site ? fitOf(item, site) : 0;
}

/** What an address of an item names: one site, or every one below it. */
interface NamedSite extends Site {
  wildcard: boolean;
}

function namedSite(address: string): NamedSite | undefined {
  const wildcard = /^(https?:\/\/)?\*\.(?=[^*]+$)/i;
  const site = siteOf(address.replace(wildcard, '$1'));
  // Not a spread: V8 gives each copy a shape of its own, and to read a property of 170,000 of them takes 70 ms.
  if (!site) return undefined;
  const { host, bare, isAddress, port, scheme } = site;
  return { host, bare, isAddress, port, scheme, wildcard: wildcard.test(address) };
}

function fitOf(item: NamedSite, site: Site): number {
  // Values for https are not sent without encryption.
  if (item.scheme === 'https:' && site.scheme === 'http:') return 0;
  const port = site.port ?? (site.scheme && ownPort[site.scheme]);
  if (item.port !== undefined && port !== undefined && item.port !== port) return 0;
  // A longer suffix of a wildcard is a closer match.
  if (item.wildcard) return !site.isAddress && isBelow(site.host, item.host) ? 1 + item.host.length : 0;
  if (item.host === site.host) return 4000;
  return item.bare === site.bare ? 3000 : 0;
}

/** Of an item, so many addresses count. */
const mostAddresses = 100;

/** An item is held against a site at each look of a login, and its addresses stay the same. */
const sitesBefore = new WeakMap<readonly string[], NamedSite[]>();

function sitesOf(addresses: readonly string[]): NamedSite[] {
  let sites = sitesBefore.get(addresses);
  if (!sites) {
    sites = addresses.slice(0, mostAddresses).flatMap((address) => namedSite(address) ?? []);
    sitesBefore.set(addresses, sites);
  }
  return sites;
}

/** Reads the addresses of a list of items, which may be long, so that a later `bestFit` has no more to read. */
export async function prepareItems(items: readonly { urls?: readonly string[] | undefined }[]): Promise<void> {
  const turn = turns();
  for (const { urls } of items) {
    if (urls) sitesOf(urls);
    await turn();
  }
}

/** Whether addresses of an item name a site: a domain, or the address of a page, of which the origin counts. */
export function namesSite(addresses: readonly string[], site: string): boolean {
  const page = /^https?:/i.test(site) ? urlOf(site) : undefined;
  const of = siteOf(page?.origin ?? site);
  return of !== undefined && sitesOf(addresses).some((item) => fitOf(item, of) > 0);
}

/** The item that fits a domain best; among equals the first. */
export function bestFit<T extends { urls?: readonly string[] | undefined }>(
  items: readonly T[],
  domain: string,
): T | undefined {
  const site = siteOf(domain);
  if (!site) return undefined;
  let best: { item: T; value: number } | undefined;
  for (const item of items)
    for (const named of sitesOf(item.urls ?? [])) {
      const value = fitOf(named, site);
      if (value > (best?.value ?? 0)) best = { item, value };
    }
  return best?.item;
}

/** Whether a text is a host name with a dot, or `*.` and one: what people name entries of a store after. */
export function looksLikeDomain(text: string): boolean {
  const name = text.toLowerCase().replace(/^\*\./, '');
  return name.includes('.') && isName(name) && /[a-z]/.test(name.slice(name.lastIndexOf('.')));
}

function siteOf(text: string): Site | undefined {
  const given = text.trim();
  if (given === '' || given.length > 2048 || /\s/.test(given)) return undefined;
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(given);
  const address = hasScheme ? given : `http://${given}`;
  const url = /^https?:/i.test(address) ? urlOf(address) : undefined;
  if (!url) return undefined;
  const { hostname, port, protocol, username, password } = url;
  if (username !== '' || password !== '') return undefined;
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  const isAddress = isIP(host) !== 0;
  if (!isAddress && !isName(host)) return undefined;
  return {
    host,
    bare: host.replace(/^www\./, ''),
    isAddress,
    port: port === '' ? undefined : port, // the URL parser drops the port of the scheme itself, which makes no difference
    scheme: hasScheme ? (protocol as Site['scheme']) : undefined,
  };
}

const ownPort = { 'http:': '80', 'https:': '443' };
const isName = (name: string) => name.length <= 253 && name.split('.').every((part) => label.test(part));
const isBelow = (name: string, parent: string) =>
  name.length > parent.length && name.endsWith(parent) && name[name.length - parent.length - 1] === '.';
