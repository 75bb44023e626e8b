import { isWellFormed } from '../../lib/text.ts';
import { EgressError } from '../../chromium/egress/refusals.ts';
import type { RequestDirectly } from '../../chromium/egress/direct-request.ts';
import { jsonElements, TooHeavy } from '../../lib/json-elements.ts';
import { isLight } from '../../lib/json-weight.ts';
import type { Check } from '../../lib/shape.ts';
import { withoutEnd } from '../../lib/text.ts';
import { nextTurn } from '../../lib/turns.ts';
import { decode } from '../../lib/utf8.ts';

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

/** A part of a path that cannot name another directory. Ids come from answers of the store. */
export function pathPart(part: string): string {
  if (part === '.' || part === '..' || !isWellFormed(part))
    throw new SourceFailure(
      'bad_answer',
      'A name in a path is . or .., or is not valid text. No item has such a name.',
    );
  return encodeURIComponent(part);
}

export const mostItems = 10_000;
const mostBytes = 8 * 1024 * 1024;
/** Of all answers of one operation. */
const mostBytesInAll = 4 * mostBytes;
/** Of the JSON of one answer, which is parsed at once. A thousand fields of a Connect server weigh 17,000. */
const mostWeight = 20_000;
/** Of the JSON of a list. Ten thousand items of an own store weigh 130,000. */
const mostInList = 200_000;
/** Of the titles, paths and addresses of all items. They stay in memory. */
const mostCharacters = 8 * 1024 * 1024;
/** Of all items. Each takes 100 bytes of memory beside its characters. */
const mostAddresses = 200_000;
const callMs = 10_000;
/** One operation, such as a list of all items, is over by then, with however many calls. */
export const operationMs = 30_000;

/** Asks for JSON: for a value of a shape, or for a list, each element of which has the shape. */
interface Ask {
  <T>(path: string, shape: Check<T>): Promise<T>;
  /** `at`: the path of members to the list. */
  list<T>(path: string, at: readonly string[], shape: Check<T>, query?: Record<string, string>): AsyncGenerator<T>;
}

/** Requests of one operation to a store that speaks JSON. Paths are below the server's address; their parts have to be encoded already. */
export function asking(
  { serverUrl, ca }: Pick<SourceSettings, 'serverUrl' | 'ca'>,
  headers: Record<string, string>,
  request: RequestDirectly,
): Ask {
  const end = performance.now() + operationMs;
  const { host } = new URL(serverUrl);
  let bytes = 0;

  async function answer(path: string, query: Record<string, string> = {}): Promise<Buffer> {
    const url = new URL(serverUrl);
    url.pathname = `${withoutEnd(url.pathname, '/')}${path}`;
    url.search = new URLSearchParams(query).toString();
    const left = Math.ceil(end - performance.now());
    if (left <= 0) throw new SourceFailure('timeout', `${host} was not done within ${operationMs / 1000} s.`);
    const timeoutMs = Math.min(callMs, left);
    const { status, body } = await request(url, { headers, ca, timeoutMs, mostBytes }).catch(asFailure);
    refuseStatus(status, host);
    bytes += body.length;
    if (bytes > mostBytesInAll)
      throw new SourceFailure('bad_answer', `The answers of ${host} have more than ${mostBytesInAll} bytes in all.`);
    return body;
  }

  return Object.assign(async <T>(path: string, shape: Check<T>) => valueOf(await answer(path), shape, host), {
    async *list<T>(path: string, at: readonly string[], shape: Check<T>, query?: Record<string, string>) {
      yield* elementsOf(await answer(path, query), at, shape, host);
    },
  });
}

/** A value of JSON. `from` names its sender in refusals. */
export async function valueOf<T>(json: Buffer, shape: Check<T>, from: string): Promise<T> {
  if (!isLight(json, mostWeight)) throw unreadable(new TooHeavy(mostWeight), from);
  const text = await decode(json);
  // The service does nothing else while it parses. Answers that arrive together are parsed in different turns of the event loop.
  await nextTurn();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw unreadable(error, from);
  }
  if (!shape(value)) throw shapeless(from);
  return value;
}

/** The elements of a list in JSON. */
export async function* elementsOf<T>(
  json: Buffer,
  at: readonly string[],
  shape: Check<T>,
  from: string,
): AsyncGenerator<T> {
  const elements = jsonElements(json, at, { all: mostInList, each: mostWeight });
  for (;;) {
    const next = await elements.next().catch((error: unknown) => {
      throw unreadable(error, from);
    });
    if (next.done) return;
    if (!shape(next.value)) throw shapeless(from);
    yield next.value;
  }
}

/** Errors of the parser quote the text, which may be a secret. */
function unreadable(error: unknown, from: string): unknown {
  if (error instanceof TooHeavy)
    return new SourceFailure('bad_answer', `${from} answered with more than ${error.most} names and values.`);
  if (!(error instanceof SyntaxError)) return error;
  return new SourceFailure('bad_answer', `${from} answered with something that is not the documented JSON.`);
}

const shapeless = (from: string) =>
  new SourceFailure('bad_answer', `The answer of ${from} does not have the documented shape.`);

/** Collects the items of a store. `add` returns false when there is no place for more. */
export function itemCollection() {
  const items: SourceItem[] = [];
  let characters = 0;
  let addresses = 0;
  return {
    items,
    add(item: SourceItem): boolean {
      characters += item.path.length + item.title.length + (item.urls ?? []).reduce((sum, url) => sum + url.length, 0);
      if (characters > mostCharacters)
        throw new SourceFailure(
          'bad_answer',
          `The items have more than ${mostCharacters} characters of titles and addresses.`,
        );
      addresses += item.urls?.length ?? 0;
      if (addresses > mostAddresses)
        throw new SourceFailure('bad_answer', `The items have more than ${mostAddresses} addresses.`);
      return items.push(item) < mostItems;
    },
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
