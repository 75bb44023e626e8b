import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { MOST_IN_HOST } from './http-words.ts';
import type { Proxy } from './proxy.ts';
import { EgressError } from './refusals.ts';

/** Proxies as clients of a browser name them: Chromium's `proxyServer` and `proxyBypassList`. */

const DEFAULT_PORTS = { http: 80, https: 443, socks5: 1080 } as const;
/** A user name and a password of 255 bytes each, all of them percent-encoded, and a host. */
const MOST_IN_SERVER = 2048;
/** Each request of the context is compared with all of them. */
const MOST_RULES = 100;

/**
 * Reads `[scheme://][user:password@]host[:port]`. Undefined for `direct://`. Chromium takes no user name here and no list of proxies for
 * http and https; the first is a convenience for clients, the second would be several proxies for one context.
 */
export function namedProxy(text: string): Omit<Proxy, 'bypassHosts'> | undefined {
  if (text.length > MOST_IN_SERVER) throw bad(`it has at most ${MOST_IN_SERVER} letters`);
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
export function bypassRules(list = ''): (asked: Asked) => boolean {
  const most = MOST_RULES * MOST_IN_HOST;
  if (list.length > most) throw new EgressError('bad_request', `proxyBypassList has more than ${most} letters.`);
  const words = list
    .split(/[,;]/)
    .map((word) => word.trim().toLowerCase())
    .filter(Boolean);
  if (words.length > MOST_RULES)
    throw new EgressError('bad_request', `proxyBypassList has more than ${MOST_RULES} entries.`);
  if (words.some((word) => word.length > MOST_IN_HOST))
    throw new EgressError('bad_request', `proxyBypassList has an entry of more than ${MOST_IN_HOST} letters.`);
  const loopback = !words.includes('<-loopback>');
  const rules = words.filter((word) => word !== '<-loopback>').map(rule);
  return (asked) => {
    const host = asked.host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
    const address = isIP(host) === 0 ? undefined : ipaddr.parse(host);
    if (loopback && isLoopback(host, address)) return true;
    const read = { ...asked, host, address: address && wordsOf(address) };
    return rules.some((matches) => matches(read));
  };
}

type Address = ReturnType<typeof ipaddr.parse>;

/** The host is in lower case and without brackets. Its address has one word of 32 bits, or four; a name has none. */
type Read = Asked & { readonly address: number[] | undefined };

function rule(word: string): (asked: Read) => boolean {
  if (word === '<local>') return ({ host, address }) => !address && !host.includes('.');
  const [, scheme, pattern = '', port] = /^(?:([a-z][a-z\d+.-]*):\/\/)?(.*?)(?::(\d{1,5}))?$/.exec(word) ?? [];
  const same = (asked: Asked) =>
    (scheme === undefined || scheme === asked.scheme) && (port === undefined || Number(port) === asked.port);
  // An IPv6 address without brackets ends like a port.
  const whole = rangeOf(word);
  if (whole) return ({ address }) => isIn(address, whole);
  const range = rangeOf(pattern);
  if (range) return (asked) => isIn(asked.address, range) && same(asked);
  const literal = pattern.replace(/^\[(.*)\]$/, '$1');
  const parts = (literal.startsWith('.') ? `*${literal}` : literal).split('*');
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

interface Range {
  network: number[];
  /** The bits that count, for each word of the network. */
  masks: number[];
}

function rangeOf(text: string): Range | undefined {
  const [, address, bits] = /^\[?([\da-f:.]+)\]?\/(\d{1,3})$/.exec(text) ?? [];
  if (address === undefined || !ipaddr.isValidCIDR(`${address}/${bits}`)) return undefined;
  const network = wordsOf(ipaddr.parse(address));
  const masks = network.map((_, at) => {
    const counts = Math.min(32, Math.max(0, Number(bits) - at * 32));
    return counts === 0 ? 0 : -1 << (32 - counts);
  });
  return { network, masks };
}

function wordsOf(address: Address): number[] {
  const bytes = Buffer.from(address.toByteArray());
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readInt32BE(at * 4));
}

/** The package's own comparison takes 2 µs, and all rules of a context are compared with each of its requests. */
function isIn(address: number[] | undefined, { network, masks }: Range): boolean {
  if (address?.length !== network.length) return false;
  return network.every((word, at) => ((word ^ address[at]!) & masks[at]!) === 0);
}

function isLoopback(host: string, address: Address | undefined): boolean {
  if (!address) return host === 'localhost' || host.endsWith('.localhost');
  return ['loopback', 'linkLocal'].includes(address.range());
}

const bad = (why: string) => new EgressError('bad_request', `proxyServer cannot be used: ${why}.`);
