import type http from 'node:http';
import { hopByHop } from '../../lib/hop-by-hop.ts';
import { EgressError } from './refusals.ts';

/** How the gateway parses requests and writes their headers. All client input is treated as hostile. */

/** A name has 253 letters at most. Rules for hosts search each of their patterns in a host, however long it is. */
export const MOST_IN_HOST = 300;

export function parseAuthority(authority: string, defaultPort?: number): { host: string; port: number } {
  const [, host = '', portText] = /^(\[[^\]]*\]|[^:@/?#\\]*)(?::(\d{1,5}))?$/.exec(authority) ?? [];
  const port = portText === undefined ? defaultPort : Number(portText);
  if (host === '' || port === undefined) {
    throw new EgressError('bad_request', 'The request has no valid target: it needs a host and a port only.');
  }
  if (host.length > MOST_IN_HOST)
    throw new EgressError('bad_request', `The host of the request has more than ${MOST_IN_HOST} letters.`);
  return { host, port };
}

/** TRACE returns a request as it arrived (RFC 9110, 9.3.8). A request that arrives at a proxy contains the proxy's password. */
export function refuseTrace(method: string | undefined): void {
  if (method === 'TRACE' || method === 'TRACK')
    throw new EgressError('bad_request', `${method} does not leave this session: it would reveal headers for proxies.`);
}

export function parseAbsolute(target: string) {
  // The path stays as the client wrote it. Only the authority decides where to connect, and it may not contain a user name.
  const [, authority, path] = /^http:\/\/([^/?#]+)([/?][^#]*)?$/i.exec(target) ?? [];
  if (authority === undefined) {
    throw new EgressError(
      'bad_request',
      'This is the way out for a browser, not a server: it takes CONNECT and requests for http:// addresses.',
    );
  }
  return { ...parseAuthority(authority, 80), authority, path: path?.startsWith('?') ? `/${path}` : (path ?? '/') };
}

/** The end-to-end headers, without hop-by-hop headers and those that `Connection` names. */
export function endToEnd(rawHeaders: readonly string[], without: readonly string[] = []): string[] {
  let named: Set<string> | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.toLowerCase() !== 'connection') continue;
    for (const token of rawHeaders[i + 1]!.split(',')) {
      // Content-Length is framing, so a client may not remove it.
      const name = token.trim().toLowerCase();
      if (name !== 'content-length') (named ??= new Set()).add(name);
    }
  }
  const kept: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    if (!hopByHop.has(name) && !without.includes(name) && !named?.has(name))
      kept.push(rawHeaders[i]!, rawHeaders[i + 1]!);
  }
  return kept;
}

export function hasBody({ headers }: http.IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

export function rawHead({ statusCode, statusMessage }: http.IncomingMessage, rawHeaders: readonly string[]): string {
  const lines = rawHeaders.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`));
  return `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join('')}\r\n`;
}
