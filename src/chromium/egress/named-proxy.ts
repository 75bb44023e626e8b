import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Proxy } from './proxy.ts';
import { EgressError } from './refusals.ts';

/** Proxies as clients of a browser name them: Chromium's `proxyServer` and `proxyBypassList`. */

const DEFAULT_PORTS = { http: 80, https: 443, socks5: 1080 } as const;
const MOST_RULES = 1000;

/**
 * Reads `[scheme://][user:password@]host[:port]`. Undefined for `direct://`. Chromium takes no user name here and no list of proxies for
 * http and https; the first is a convenience for clients, the second would be several proxies for one context.
 */
export function namedProxy(text: string): Omit<Proxy, 'bypassHosts'> | undefined {
  const trimmed = text.trim();
  if (/^direct(:\/\/)?$/i.test(trimmed)) return undefined;
  const [, scheme = 'http', login, host, port] =
    /^(?:([a-z][a-z\d+.-]*):\/\/)?(?:([^@/]*)@)?(\[[\da-f:.]+\]|[^\s:/@?#,;=[\]]{1,255})(?::(\d{1,5}))?\/?$/i.exec(
      trimmed,
    ) ?? [];
  if (host === undefined)
    throw bad('it is one proxy, as in http://proxy.example.com:3128 or socks5://proxy.example.com:1080');
  const protocol = scheme.toLowerCase() === 'socks' ? 'socks5' : scheme.toLowerCase();
  if (protocol !== 'http' && protocol !== 'https' && protocol !== 'socks5')
    throw bad('its scheme is http, https or socks5');
  const number = port === undefined ? DEFAULT_PORTS[protocol] : Number(port);
  if (number < 1 || number > 65_535) throw bad('its port is a number from 1 to 65535');
  return {
    protocol,
    host: host.replace(/^\[(.*)\]$/, '$1').toLowerCase(),
    port: number,
    ...(login === undefined ? {} : { login: readLogin(login) }),
  };
}

function readLogin(text: string): Proxy['login'] {
  const [name = '', ...rest] = text.split(':');
  try {
    const login = { username: decodeURIComponent(name), password: decodeURIComponent(rest.join(':')) };
    if (Object.values(login).every((part) => Buffer.byteLength(part) <= 255)) return login;
  } catch {
    // a % that is not an escape
  }
  throw bad('its user name and password are percent-encoded and have at most 255 bytes each');
}

/** The login in a Proxy-Authorization header. Undefined for any scheme but Basic. */
export function basicLogin(header: string | undefined): Proxy['login'] {
  const [, encoded] = /^Basic +([A-Za-z\d+/=]{1,1024})$/i.exec(header ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const [username = '', ...rest] = Buffer.from(encoded, 'base64').toString().split(':');
  return { username, password: rest.join(':') };
}

export interface Asked {
  readonly scheme: 'http' | 'https';
  /** As the client wrote it: an IPv6 address in brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * Whether a destination is reached without the proxy, by Chromium's rules: a comma or semicolon between patterns, `*` for anything, a
 * leading dot for all names below, addresses and ranges of them, each with a scheme before it or a port after it. `<local>` are names
 * without a dot. Loopback and link-local addresses are never sent to a proxy, except with `<-loopback>`.
 */
export function bypassRules(list: string | undefined): (asked: Asked) => boolean {
  const words = (list ?? '')
    .split(/[,;]/)
    .map((word) => word.trim().toLowerCase())
    .filter(Boolean);
  if (words.length > MOST_RULES)
    throw new EgressError('bad_request', `proxyBypassList has more than ${MOST_RULES} entries.`);
  const loopback = !words.includes('<-loopback>');
  const rules = words.filter((word) => word !== '<-loopback>').map(rule);
  return (asked) => {
    const host = asked.host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
    if (loopback && isLoopback(host)) return true;
    return rules.some((matches) => matches({ ...asked, host }));
  };
}

function rule(word: string): (asked: Asked) => boolean {
  if (word === '<local>') return ({ host }) => isIP(host) === 0 && !host.includes('.');
  const [, scheme, pattern = '', port] = /^(?:([a-z][a-z\d+.-]*):\/\/)?(.*?)(?::(\d{1,5}))?$/.exec(word) ?? [];
  const same = (asked: Asked) =>
    (scheme === undefined || scheme === asked.scheme) && (port === undefined || Number(port) === asked.port);
  // An IPv6 address without brackets ends like a port.
  const range = rangeOf(word) ?? rangeOf(pattern);
  if (range) return (asked) => (rangeOf(word) ? true : same(asked)) && isIn(asked.host, range);
  const literal = pattern.replace(/^\[(.*)\]$/, '$1');
  const whole = literal.startsWith('.') ? `*${literal}` : literal;
  const parts = whole.split('*');
  return (asked) => same(asked) && matchesParts(asked.host, parts);
}

/** Whether the text has these parts in order, with anything in between. Not a RegExp, which a client could make slow. */
function matchesParts(text: string, parts: readonly string[]): boolean {
  const [first = '', ...rest] = parts;
  if (rest.length === 0) return text === first;
  const last = rest.pop()!;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > text.length - last.length) return false;
    at = found + part.length;
  }
  return true;
}

type Range = ReturnType<typeof ipaddr.parseCIDR>;

function rangeOf(text: string): Range | undefined {
  const [, address, bits] = /^\[?([\da-f:.]+)\]?\/(\d{1,3})$/.exec(text) ?? [];
  return address !== undefined && ipaddr.isValidCIDR(`${address}/${bits}`)
    ? ipaddr.parseCIDR(`${address}/${bits}`)
    : undefined;
}

function isIn(host: string, [network, bits]: Range): boolean {
  if (isIP(host) === 0) return false;
  const address = ipaddr.parse(host);
  return address.kind() === network.kind() && address.match(network, bits);
}

function isLoopback(host: string): boolean {
  if (isIP(host) === 0) return host === 'localhost' || host.endsWith('.localhost');
  return ['loopback', 'linkLocal'].includes(ipaddr.parse(host).range());
}

const bad = (why: string) => new EgressError('bad_request', `proxyServer cannot be used: ${why}.`);
