import { isIP } from 'node:net';
import { errors } from '../errors.ts';
import { urlOf } from '../lib/urls.ts';

const label = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;
const isName = (name: string) => name.length <= 253 && name.split('.').every((part) => label.test(part));

/** Exact names or `*.` and a name, in lower case, without duplicates. */
export function bypassHosts(given: readonly string[]): string[] {
  const hosts = given.map((entry, i) => {
    const host = entry.trim().toLowerCase().replace(/\.$/, '');
    const wrong = (what: string) =>
      errors.invalid_input({
        detail: `bypass_hosts[${i}] ${what}. Write a whole host name, or *. and a name for all below: shop.example, *.shop.example.`,
      });
    if (host.includes('://') || host.includes('/')) throw wrong('has a scheme or a path');
    if (isIP(host.replace(/^\[(.*)\]$/, '$1')) !== 0) throw wrong('is an address');
    if (host.includes(':')) throw wrong('has a port');
    const name = host.replace(/^\*\./, '');
    if (!isName(name) || /^[\d.]+$/.test(name)) throw wrong('is not a host name');
    return host;
  });
  return [...new Set(hosts)];
}

/** The host of a custom proxy: a name in lower case or an address without brackets. */
export function proxyHost(given: string): string {
  const host = given.trim().toLowerCase();
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  if (isIP(bare) !== 0) return bare;
  const name = host.replace(/\.$/, '');
  // If the URL parser returns an address, the host is an address, in any spelling.
  const canonical = urlOf(`http://${name}/`)?.hostname ?? '';
  if (isIP(canonical) === 4) return canonical;
  if (!isName(name)) {
    throw errors.invalid_input({
      detail: 'config.host is neither a host name nor an address. Write it without scheme, port and path.',
    });
  }
  return name;
}
