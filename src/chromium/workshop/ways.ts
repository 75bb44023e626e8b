import net from 'node:net';
import type { Listener } from '../sandbox/mounts.ts';

/** A URL of this service as a worker reaches it: by a listener of its network namespace, under the same name and port as outside. */
export interface Way {
  readonly listener: Listener;
  /** What has to be resolved inside, with `*` for any label; undefined where the URL has an address, or `localhost`. */
  readonly name: string | undefined;
  readonly target: { readonly host: string; readonly port: number };
}

/**
 * The ways to these URLs, one for each host and port. The URL is the same inside as outside, so that the addresses in the service's
 * answers work there too, and TLS ends where it ends outside. A name gets a loopback address of its own, since two may have the same port.
 *
 * The hosts of sessions (`https://*.sessions.example.com`) have one way together. Their DNS resolves any label to the same server. Without
 * TLS that server can be this one, at `here`, since the request itself has the name.
 */
export function waysTo(urls: Iterable<string>, here?: string): Way[] {
  const ways = new Map<string, Way>();
  for (const url of urls) {
    const { host, port } = addressOf(url);
    const key = `${host}:${port}`;
    if (ways.has(key)) continue;
    const direct = host.startsWith('*.') && url.startsWith('http:') && here !== undefined;
    const target = direct ? addressOf(here) : { host: host.replace(/^\*/, 'any'), port };
    const named = net.isIP(host) === 0 && host !== 'localhost';
    const address = named ? `127.64.0.${ways.size + 1}` : host === 'localhost' ? '127.0.0.1' : host;
    ways.set(key, { listener: { address, port }, name: named ? host : undefined, target });
  }
  return [...ways.values()].slice(0, MOST);
}

function addressOf(url: string): { host: string; port: number } {
  const { hostname, port, protocol } = new URL(url);
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}

/** As many as the last part of a loopback address numbers. */
const MOST = 254;
