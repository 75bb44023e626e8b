import { credentialErrors } from './errors/credentials.ts';
import { deploymentErrors } from './errors/deployments.ts';
import { doorErrors } from './errors/doors.ts';
import { extensionErrors } from './errors/extensions.ts';
import { insideErrors } from './errors/inside.ts';
import { loginErrors } from './errors/logins.ts';
import { orgErrors } from './errors/org.ts';
import { poolErrors } from './errors/pools.ts';
import { profileErrors } from './errors/profiles.ts';
import { proxyErrors } from './errors/proxies.ts';
import { requestErrors } from './errors/requests.ts';
import { sessionErrors } from './errors/sessions.ts';

/**
 * Every error of this service, by room. A code is part of the API: codes may be added, never renamed. Messages are
 * for the sender of the request, in the words of the API reference. `docs/errors.md` is this table; `npm run check`
 * compares the two.
 */
const catalogue = {
  ...requestErrors,
  ...orgErrors,
  ...sessionErrors,
  ...insideErrors,
  ...poolErrors,
  ...profileErrors,
  ...extensionErrors,
  ...proxyErrors,
  ...credentialErrors,
  ...loginErrors,
  ...deploymentErrors,
  ...doorErrors,
};

export type ErrorCode = keyof typeof catalogue;
export const errorCodes = Object.keys(catalogue) as [ErrorCode, ...ErrorCode[]];

interface ErrorExtras {
  details?: { code: string; message: string }[];
  /** Further top-level fields of the body, where the interface has them. */
  body?: Record<string, unknown>;
  headers?: Record<string, string>;
  cause?: unknown;
}

export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly extras: ErrorExtras;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.code = code;
    this.status = catalogue[code].status;
    const entry = catalogue[code];
    this.extras = 'headers' in entry ? { ...extras, headers: { ...entry.headers, ...extras.headers } } : extras;
  }

  /** False where the same request would fail again: clients of this interface retry every 409 and 5xx otherwise. */
  get retriable(): boolean {
    return catalogue[this.code].retriable;
  }
}

type Throwers = {
  [C in ErrorCode]: (
    ...args: Parameters<(typeof catalogue)[C]['message']> extends [infer P]
      ? [params: P, extras?: ErrorExtras]
      : [params?: Record<string, never>, extras?: ErrorExtras]
  ) => ServiceError;
};

/** `throw errors.project_not_found({ project })`: the compiler knows the codes and their parameters. */
export const errors = Object.fromEntries(
  Object.entries(catalogue).map(([code, { message }]) => [
    code,
    (params: never, extras?: ErrorExtras) => new ServiceError(code as ErrorCode, message(params), extras),
  ]),
) as Throwers;

export const statusOf = (code: ErrorCode) => catalogue[code].status;
export const meaningOf = (code: ErrorCode) => catalogue[code].meaning;

/** The text of docs/errors.md. */
export function describeErrors(): string {
  const rows = Object.entries(catalogue)
    .toSorted(([, a], [, b]) => a.status - b.status)
    .map(
      ([code, { status, meaning, retriable }]) =>
        `| \`${code}\` | ${status} | ${retriable ? 'may help' : 'no'} | ${meaning} |`,
    );
  return [
    '# Errors',
    '',
    'Every error body is `{ "code", "message", "details"?, "inner_error"? }`. Codes are part of the API: new codes may be added, none is renamed.',
    'The log of the service has the request id of `X-Request-Id`.',
    '',
    '| Code | Status | Retry | Meaning |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}
