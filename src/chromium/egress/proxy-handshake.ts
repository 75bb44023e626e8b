import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Target } from './destinations.ts';
import { EgressError } from './refusals.ts';

/**
 * The handshake that opens a connection through a proxy, independent of the socket: bytes in, bytes out. `feed`
 * returns what to send next, or, once the proxy has accepted, the bytes after its answer. It
 * throws an `EgressError` when the proxy refuses. The package `socks` would bring a client with its own timeouts and errors.
 */
export interface Handshake {
  readonly hello: Buffer;
  feed(chunk: Buffer): { send: Buffer } | { through: Buffer } | undefined;
}

export interface Login {
  readonly username: string;
  readonly password: string;
}

const longestHead = 16 * 1024;

/** CONNECT, to an http or https proxy. */
export function connectHandshake({ host, port }: Target, login: Login | undefined): Handshake {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const lines = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`, 'Proxy-Connection: keep-alive'];
  if (login) lines.push(`Proxy-Authorization: ${basic(login)}`);
  let received = Buffer.alloc(0);
  return {
    hello: Buffer.from(`${lines.join('\r\n')}\r\n\r\n`),
    feed(chunk) {
      received = Buffer.concat([received, chunk]);
      const end = received.indexOf('\r\n\r\n');
      if (end === -1) {
        if (received.length > longestHead || !looksLikeHttp(received)) throw notA('an HTTP proxy');
        return undefined;
      }
      const head = received.toString('latin1', 0, end);
      const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |\r|$)/.exec(head)?.[1]);
      if (!status) throw notA('an HTTP proxy');
      if (status >= 300) throw refusedWith(status, head);
      if (status < 200) throw notA('an HTTP proxy');
      return { through: received.subarray(end + 4) };
    },
  };
}

/** The error for an http proxy that asks for a login. Its answer is not passed on, since it concerns only the gateway and the proxy. */
export function loginRefused(headers: string): EgressError {
  const schemes = [...headers.matchAll(/^proxy-authenticate: *(\w{1,32})/gim)].map(([, scheme]) => scheme!);
  const others = schemes.length > 0 && !schemes.some((scheme) => scheme.toLowerCase() === 'basic');
  return others
    ? new EgressError(
        'proxy_auth_failed',
        `The proxy asks for ${schemes.slice(0, 5).join(' or ')}; only Basic is spoken here.`,
      )
    : new EgressError('proxy_auth_failed', 'The proxy wants a user name and a password other than it was given.', {
        remedy: 'Create the proxy again with the right ones.',
      });
}

export const basic = ({ username, password }: Login) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

function refusedWith(status: number, head: string): EgressError {
  if (status === 407 || status === 401) return loginRefused(head); // tinyproxy says 401 to a wrong password
  const facts = { status };
  if (status === 502 || status === 503 || status === 504)
    return new EgressError(
      'proxy_connect_failed',
      `The proxy could not reach the server: it answered ${status} to CONNECT.`,
      { facts },
    );
  return new EgressError('proxy_refused', `The proxy answered ${status} to CONNECT.`, {
    remedy: 'Which hosts and ports it serves is decided by the operator of the proxy.',
    facts,
  });
}

function looksLikeHttp(bytes: Buffer): boolean {
  const start = 'HTTP/1.';
  return start.startsWith(bytes.toString('latin1', 0, start.length));
}

const notA = (what: string) =>
  new EgressError('proxy_bad_answer', `What answers at the proxy’s address is not ${what}.`, {
    remedy: 'See that the proxy has the right `protocol` and port.',
  });

/** SOCKS5 (RFC 1928) with a user name and password (RFC 1929). Names are sent unresolved; the proxy resolves them. */
export function socksHandshake({ host, port }: Target, login: Login | undefined): Handshake {
  let received = Buffer.alloc(0);
  let step: 'method' | 'login' | 'reply' = 'method';

  /** The first `length` bytes, once they have arrived. */
  const take = (length: number): Buffer | undefined => {
    if (received.length < length) return undefined;
    const taken = received.subarray(0, length);
    received = received.subarray(length);
    return taken;
  };
  const request = () => {
    step = 'reply';
    return { send: Buffer.from([5, 1, 0, ...addressBytes(host), port >> 8, port & 255]) };
  };

  return {
    hello: Buffer.from(login ? [5, 2, 0, 2] : [5, 1, 0]),
    feed(chunk) {
      received = Buffer.concat([received, chunk]);
      if (step === 'method') {
        if (received[0] !== 5) throw notA('a SOCKS5 proxy');
        const answer = take(2);
        if (!answer) return undefined;
        if (answer[1] === 0) return request();
        if (answer[1] !== 2 || !login) throw socksLoginRefused();
        step = 'login';
        const [name, word] = [Buffer.from(login.username), Buffer.from(login.password)];
        return { send: Buffer.concat([Buffer.from([1, name.length]), name, Buffer.from([word.length]), word]) };
      }
      if (step === 'login') {
        const answer = take(2);
        if (!answer) return undefined;
        if (answer[1] !== 0) throw socksLoginRefused();
        return request();
      }
      if (received.length < 2) return undefined;
      if (received[0] !== 5) throw notA('a SOCKS5 proxy');
      if (received[1] !== 0) throw socksRefusal(received[1]!);
      if (received.length < 5) return undefined;
      const bound = { 1: 4, 3: 1 + received[4]!, 4: 16 }[received[3]!];
      if (bound === undefined) throw notA('a SOCKS5 proxy');
      return take(4 + bound + 2) && { through: received };
    },
  };
}

function addressBytes(host: string): number[] {
  const kind = isIP(host);
  if (kind === 0) return [3, Buffer.byteLength(host), ...Buffer.from(host)];
  return [kind === 4 ? 1 : 4, ...ipaddr.parse(host).toByteArray()];
}

const socksLoginRefused = () =>
  new EgressError('proxy_auth_failed', 'The proxy wants a user name and a password other than it was given.', {
    remedy: 'Create the proxy again with the right ones.',
  });

function socksRefusal(reply: number): EgressError {
  const reasons: Record<number, string> = {
    1: 'it failed',
    3: 'the network is unreachable from there',
    4: 'the host is unreachable from there',
    5: 'the connection was refused',
    6: 'it took too long',
  };
  const facts = { reply };
  if (reply === 2) return new EgressError('proxy_refused', 'The proxy’s rules do not allow this address.', { facts });
  const reason = reasons[reply] ?? `it answered ${reply}`;
  return new EgressError('proxy_connect_failed', `The proxy could not reach the server: ${reason}.`, { facts });
}
