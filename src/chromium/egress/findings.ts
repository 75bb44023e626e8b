import type { Socket } from 'node:net';
import type { EgressCode, EgressError } from './refusals.ts';

/**
 * What the gateway finds out about destinations. Chromium sees only the gateway: every failure looks the same to it, and every server has the
 * gateway's address. A destination is written as `host:port`, as Chromium writes it in CONNECT.
 */
export interface Findings {
  /** Why the last attempt to reach this destination failed, in Chromium's words: `net::ERR_CONNECTION_REFUSED`. */
  failure(destination: string): string | undefined;
  /** The address behind the last connection to it; undefined if it was made by a proxy. */
  server(destination: string): { readonly address: string; readonly port: number } | undefined;
}

const MOST = 2048;

export function findings(): Findings & {
  /** `target` is the target of the request: an authority, or an address in absolute form. */
  failed(target: string, error: EgressError): void;
  reached(host: string, port: number, socket: Socket | undefined): void;
  /** Another way out reaches other servers. */
  wayChanged(): void;
} {
  const failures = new Map<string, string>();
  const servers = new Map<string, { address: string; port: number }>();
  return {
    failure: (destination) => failures.get(destination),
    server: (destination) => servers.get(destination),

    failed(target, error) {
      const key = destinationOf(target);
      const name = netError(error);
      if (key === undefined) return;
      if (name === undefined) failures.delete(key);
      else keep(failures, key, `net::${name}`);
    },

    reached(host, port, socket) {
      const key = `${host}:${port}`.toLowerCase();
      const { remoteAddress, remotePort } = socket ?? {};
      if (remoteAddress === undefined || remotePort === undefined) servers.delete(key);
      else keep(servers, key, { address: remoteAddress, port: remotePort });
    },

    wayChanged: () => servers.clear(),
  };
}

/** The newest are kept: hostile pages ask for as many destinations as they like. */
function keep<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= MOST) return;
  for (const oldest of map.keys()) return void map.delete(oldest);
}

function destinationOf(target: string): string | undefined {
  const [, scheme, authority] = /^(http:\/\/)?([^/?#]{1,300})(?:[/?#]|$)/i.exec(target) ?? [];
  if (authority === undefined) return undefined;
  return (scheme && !/:\d+$/.test(authority) ? `${authority}:80` : authority).toLowerCase();
}

/** Chromium's names for failures. For the missing ones Chromium's own name is right: a refusal of a proxy, or a rule of the gateway. */
const names: Partial<Record<EgressCode, string>> = {
  dns_failed: 'ERR_NAME_NOT_RESOLVED',
  connect_failed: 'ERR_CONNECTION_FAILED',
  connect_timeout: 'ERR_CONNECTION_TIMED_OUT',
  bad_answer: 'ERR_INVALID_HTTP_RESPONSE',
  proxy_unreachable: 'ERR_PROXY_CONNECTION_FAILED',
  proxy_timeout: 'ERR_PROXY_CONNECTION_FAILED',
  proxy_auth_failed: 'ERR_INVALID_AUTH_CREDENTIALS',
  proxy_refused: 'ERR_TUNNEL_CONNECTION_FAILED',
  proxy_connect_failed: 'ERR_TUNNEL_CONNECTION_FAILED',
  proxy_bad_answer: 'ERR_TUNNEL_CONNECTION_FAILED',
};

const namesOfCauses: Record<string, string> = {
  ECONNREFUSED: 'ERR_CONNECTION_REFUSED',
  ECONNRESET: 'ERR_CONNECTION_RESET',
  EPIPE: 'ERR_CONNECTION_CLOSED',
  EHOSTUNREACH: 'ERR_ADDRESS_UNREACHABLE',
  ENETUNREACH: 'ERR_ADDRESS_UNREACHABLE',
  EADDRNOTAVAIL: 'ERR_ADDRESS_UNREACHABLE',
  ETIMEDOUT: 'ERR_CONNECTION_TIMED_OUT',
};

export function netError({ code, cause }: EgressError): string | undefined {
  if (code !== 'connect_failed' || !(cause instanceof Error)) return names[code];
  if (cause.message === 'socket hang up') return 'ERR_EMPTY_RESPONSE'; // Node's word for an end without an answer
  return namesOfCauses['code' in cause ? String(cause.code) : ''] ?? names[code];
}
