import { EgressError } from '../../chromium/egress/refusals.ts';
import type { RequestDirectly } from '../../chromium/egress/direct-request.ts';
import { isLight } from '../../lib/json-weight.ts';
import type { Check } from '../../lib/shape.ts';
import { withoutEnd } from '../../lib/text.ts';

export interface SourceVault {
  id: string;
  name: string;
}

/** An entry of a store, without its secrets. */
export interface SourceItem {
  id: string;
  title: string;
  vault_id: string;
  vault_name: string;
  path: string;
  /** The sites that the entry names. It is typed nowhere else. */
  urls?: string[];
}

/** The secrets of an entry. `totp` is a base32 secret or an otpauth:// URI, as the store has it. */
export interface Contents {
  values: Record<string, string>;
  totp?: string | undefined;
}

/** A store of credentials outside of the service. Every call throws a `SourceFailure` when it cannot answer. */
export interface Source {
  vaults(): Promise<SourceVault[]>;
  items(): Promise<SourceItem[]>;
  read(item: SourceItem): Promise<Contents>;
  /** The item at a path without a list, where a store can. Undefined when nothing is there. */
  itemAt?(path: string): Promise<SourceItem | undefined>;
}

/** What a source is made of. */
export interface SourceSettings {
  token: string;
  serverUrl: string;
  ca: string | undefined;
  namespace: string | undefined;
  mounts: string[] | undefined;
}

type FailureCode =
  'address_refused' | 'unreachable' | 'timeout' | 'token_refused' | 'not_found' | 'busy' | 'bad_answer';

/** Why a store did not answer. The message is for the user, and has nothing in it that the store sent. */
export class SourceFailure extends Error {
  override readonly name = 'SourceFailure';
  readonly code: FailureCode;
  constructor(code: FailureCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

export const mostItems = 10_000;
const mostBytes = 8 * 1024 * 1024;
/** Of the JSON of one answer. Ten thousand items of an own store weigh 130,000. */
const mostWeight = 200_000;
const callMs = 10_000;
/** One operation, such as a list of all items, is over by then, with however many calls. */
export const operationMs = 30_000;

/** Asks for JSON of a shape. */
type Ask = <T>(path: string, shape: Check<T>, query?: Record<string, string>) => Promise<T>;

/** Requests of one operation to a store that speaks JSON. Paths are below the server's address; their parts have to be encoded already. */
export function asking(
  { serverUrl, ca }: Pick<SourceSettings, 'serverUrl' | 'ca'>,
  headers: Record<string, string>,
  request: RequestDirectly,
): Ask {
  const end = performance.now() + operationMs;
  return async (path, shape, query = {}) => {
    const url = new URL(serverUrl);
    url.pathname = `${withoutEnd(url.pathname, '/')}${path}`;
    url.search = new URLSearchParams(query).toString();
    const left = Math.ceil(end - performance.now());
    if (left <= 0) throw new SourceFailure('timeout', `${url.host} was not done within ${operationMs / 1000} s.`);
    const timeoutMs = Math.min(callMs, left);
    const { status, body } = await request(url, { headers, ca, timeoutMs, mostBytes }).catch(asFailure);
    refuseStatus(status, url.host);
    // The service does nothing else while it parses.
    if (!isLight(body, mostWeight))
      throw new SourceFailure('bad_answer', `${url.host} answered with more than ${mostWeight} names and values.`);
    let answer: unknown;
    try {
      answer = JSON.parse(body.toString('utf8'));
    } catch {
      throw new SourceFailure('bad_answer', `${url.host} answered with something that is not JSON.`);
    }
    if (!shape(answer))
      throw new SourceFailure('bad_answer', `The answer of ${url.host} does not have the documented shape.`);
    return answer;
  };
}

function refuseStatus(status: number, host: string) {
  if (status >= 200 && status < 300) return;
  const failed = (code: FailureCode, what: string) => new SourceFailure(code, `${host} ${what} (status ${status}).`);
  if (status === 401 || status === 403)
    throw failed('token_refused', 'refuses the token, or does not let it do this. Send a new token with PATCH');
  if (status === 404) throw failed('not_found', 'has nothing there');
  if (status === 429) throw failed('busy', 'gets too many requests. Try again later');
  if (status >= 300 && status < 400)
    throw failed('bad_answer', 'redirects to another address. Set server_url to the address that answers itself');
  if (status === 503) throw failed('busy', 'is sealed, in maintenance or overloaded');
  throw failed('bad_answer', 'sent an unexpected answer');
}

function asFailure(error: unknown): never {
  if (!(error instanceof EgressError)) throw error;
  const { code, message, remedy } = error;
  if (code === 'destination_refused')
    throw new SourceFailure('address_refused', `The store’s address is not public. ${remedy ?? ''}`.trim(), error);
  throw new SourceFailure(code === 'connect_timeout' ? 'timeout' : 'unreachable', message, error);
}
