/**
 * Every error of the egress gateway. A code is part of the API: it is in the `X-Corral-Egress` header of the
 * answer and in the log line. Codes may be added but never renamed.
 */
const statuses = {
  bad_request: 400,
  destination_refused: 403,
  dns_failed: 502,
  connect_failed: 502,
  connect_timeout: 504,
  bad_answer: 502,
  too_many_connections: 503,
  proxy_unreachable: 502,
  proxy_timeout: 504,
  proxy_auth_failed: 502,
  proxy_refused: 502,
  proxy_connect_failed: 502,
  proxy_bad_answer: 502,
} as const;

const titles: Record<EgressCode, string> = {
  bad_request: 'The request made no sense to the gateway',
  destination_refused: 'This address is off limits',
  dns_failed: 'The name could not be found',
  connect_failed: 'The server could not be reached',
  connect_timeout: 'The server did not pick up',
  bad_answer: 'The server answered with something that is not HTTP',
  too_many_connections: 'Too many open connections',
  proxy_unreachable: 'The proxy could not be reached',
  proxy_timeout: 'The proxy did not answer in time',
  proxy_auth_failed: 'The proxy did not accept its user name and password',
  proxy_refused: 'The proxy refused this address',
  proxy_connect_failed: 'The proxy could not reach the server',
  proxy_bad_answer: 'The proxy answered with something it should not',
};

export type EgressCode = keyof typeof statuses;

/** The rules of the gateway. A request that they refuse is answered with a page; every other error is a failure of the network. */
const rules: ReadonlySet<EgressCode> = new Set(['bad_request', 'destination_refused', 'too_many_connections']);

/** A request that the gateway refused or failed to serve. The message is shown on the page, if there is one. */
export class EgressError extends Error {
  override readonly name = 'EgressError';
  readonly code: EgressCode;
  readonly status: number;
  /** How to fix it, where that is possible. */
  readonly remedy: string | undefined;
  /** For the log only: hidden from pages and clients inside the session. */
  readonly facts: object;
  /** The destination is the service that runs this browser. */
  readonly ownService: boolean;

  constructor(
    code: EgressCode,
    message: string,
    options: { remedy?: string; facts?: object; ownService?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.code = code;
    this.status = statuses[code];
    this.remedy = options.remedy;
    this.facts = options.facts ?? {};
    this.ownService = options.ownService ?? false;
  }

  /** Whether a rule of the gateway refused it; otherwise the network failed. */
  get byRule(): boolean {
    return rules.has(this.code);
  }
}

/** The whole answer without a status line, for plain requests and for CONNECT. */
export function refusalPage(error: EgressError): { headers: Record<string, string>; body: Buffer } {
  const body = Buffer.from(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escape(titles[error.code])}</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 15vh auto 0; padding: 0 1.5rem; color: #222; background: #fff }
  h1 { font-size: 1.4rem }
  code { background: #f1f1f1; padding: .1em .35em; border-radius: 4px; overflow-wrap: anywhere }
  footer { margin-top: 2rem; color: #777; font-size: .85rem }
  @media (prefers-color-scheme: dark) { body { color: #ddd; background: #1b1b1b } code { background: #333 } }
</style>
<h1>${escape(titles[error.code])}</h1>
<p>${escape(error.message)}</p>
${error.remedy ? `<p>${escape(error.remedy).replaceAll(/`([^`]*)`/g, '<code>$1</code>')}</p>\n` : ''}<footer>Corral egress gateway · <code>${error.code}</code></footer>
</html>
`);
  return {
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Length': String(body.length),
      'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'",
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Corral-Egress': error.code,
    },
    body,
  };
}

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}
