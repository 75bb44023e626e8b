/** Chromium's numbers for network errors (net/base/net_error_list.h), those that a request can meet. */
const numbers: Record<string, number> = {
  ERR_FAILED: -2,
  ERR_ABORTED: -3,
  ERR_TIMED_OUT: -7,
  ERR_ACCESS_DENIED: -10,
  ERR_BLOCKED_BY_CLIENT: -20,
  ERR_NETWORK_CHANGED: -21,
  ERR_BLOCKED_BY_ADMINISTRATOR: -22,
  ERR_BLOCKED_BY_RESPONSE: -27,
  ERR_CONNECTION_CLOSED: -100,
  ERR_CONNECTION_RESET: -101,
  ERR_CONNECTION_REFUSED: -102,
  ERR_CONNECTION_ABORTED: -103,
  ERR_CONNECTION_FAILED: -104,
  ERR_NAME_NOT_RESOLVED: -105,
  ERR_INTERNET_DISCONNECTED: -106,
  ERR_SSL_PROTOCOL_ERROR: -107,
  ERR_ADDRESS_INVALID: -108,
  ERR_ADDRESS_UNREACHABLE: -109,
  ERR_SSL_CLIENT_AUTH_CERT_NEEDED: -110,
  ERR_TUNNEL_CONNECTION_FAILED: -111,
  ERR_SSL_VERSION_OR_CIPHER_MISMATCH: -113,
  ERR_CONNECTION_TIMED_OUT: -118,
  ERR_PROXY_CONNECTION_FAILED: -130,
  ERR_PROXY_CERTIFICATE_INVALID: -136,
  ERR_SSL_UNRECOGNIZED_NAME_ALERT: -159,
  ERR_CERT_COMMON_NAME_INVALID: -200,
  ERR_CERT_DATE_INVALID: -201,
  ERR_CERT_AUTHORITY_INVALID: -202,
  ERR_CERT_REVOKED: -206,
  ERR_CERT_INVALID: -207,
  ERR_CERT_WEAK_KEY: -211,
  ERR_INVALID_URL: -300,
  ERR_DISALLOWED_URL_SCHEME: -301,
  ERR_UNKNOWN_URL_SCHEME: -302,
  ERR_TOO_MANY_REDIRECTS: -310,
  ERR_UNSAFE_REDIRECT: -311,
  ERR_UNSAFE_PORT: -312,
  ERR_INVALID_RESPONSE: -320,
  ERR_INVALID_CHUNKED_ENCODING: -321,
  ERR_EMPTY_RESPONSE: -324,
  ERR_RESPONSE_HEADERS_TOO_BIG: -325,
  ERR_CONTENT_DECODING_FAILED: -330,
  ERR_INVALID_REDIRECT: -331,
  ERR_HTTP2_PROTOCOL_ERROR: -337,
  ERR_INVALID_AUTH_CREDENTIALS: -338,
  ERR_RESPONSE_HEADERS_MULTIPLE_CONTENT_LENGTH: -346,
  ERR_INCOMPLETE_CHUNKED_ENCODING: -355,
  ERR_CONTENT_LENGTH_MISMATCH: -354,
  ERR_RESPONSE_BODY_TOO_BIG_TO_DRAIN: -345,
  ERR_INVALID_HTTP_RESPONSE: -370,
};

/** What the most common errors mean. */
const sentences: Record<string, string> = {
  ERR_NAME_NOT_RESOLVED: 'The name could not be resolved.',
  ERR_CONNECTION_REFUSED: 'The server refused the connection.',
  ERR_CONNECTION_TIMED_OUT: 'The server did not pick up.',
  ERR_CONNECTION_FAILED: 'The server could not be reached.',
  ERR_ADDRESS_UNREACHABLE: 'The server could not be reached.',
  ERR_INVALID_HTTP_RESPONSE: 'The server answered with something that is not HTTP.',
  ERR_PROXY_CONNECTION_FAILED: 'The proxy could not be reached.',
};

/** Chromium's names for the gateway's refusals. */
const gatewayRefusals: Record<string, { name: string; sentence: string }> = {
  destination_refused: {
    name: 'ERR_ACCESS_DENIED',
    sentence:
      'The address is private, or the service itself, and browsers may not go there (CORRAL_ALLOW_PRIVATE_HOSTS).',
  },
  too_many_connections: { name: 'ERR_FAILED', sentence: 'The session has too many open connections.' },
};

/** The request got no answer because of the network, not because of the server. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  /** Chromium's name and number of the error, if it has them. */
  readonly netError: { name: string; number: number | undefined } | undefined;

  constructor(message: string, netError?: string) {
    super(message);
    this.netError = netError === undefined ? undefined : { name: netError, number: numbers[netError] };
  }
}

/** From `net::ERR_CONNECTION_RESET`, as Chromium writes it. */
export function transportError(errorText: string): TransportError {
  const name = /\bERR_[A-Z0-9_]+/.exec(errorText)?.[0];
  return new TransportError(sentences[name ?? ''] ?? `The request failed: ${name ?? errorText}.`, name);
}

export function gatewayRefusal(code: string): TransportError | undefined {
  const refusal = gatewayRefusals[code];
  return refusal && new TransportError(refusal.sentence, refusal.name);
}
