import type { Readable } from 'node:stream';
import { within } from '../../lib/deadline.ts';
import { anyText, integer, list, object, optional, record, table, type Checked } from '../../lib/shape.ts';
import { urlOf } from '../../lib/urls.ts';
import { bodyStream } from './body-stream.ts';
import type { HiddenPage, HiddenPages } from './hidden-pages.ts';
import { ANSWER_MS, type SendOptions } from '../cdp/local-client.ts';
import type { Params } from '../cdp/protocol.ts';
import { gatewayRefusal, TransportError, transportError } from './net-errors.ts';

/**
 * An HTTP request by the session's own browser: its cookies both ways, its proxy, its TLS, its user agent, its cache.
 *
 * A hidden page navigates to the address, and the navigation is paused twice: before it is sent, to turn it into the caller's request,
 * and when its answer arrives, which goes to the caller and never to the page. A navigation is not cross-origin, so CORS does not apply,
 * and the result is the server's answer, of any kind: a download is not saved, a page not run, a 401 opens no password prompt.
 *
 * A body is sent to Chromium in one message, so it is bounded; an answer is read piece by piece, as fast as the caller takes it.
 */
interface BrowserRequest {
  readonly url: string;
  readonly method: string;
  /** The headers that the caller sets; the browser adds the rest. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body?: Buffer | undefined;
}

export interface BrowserResponse {
  readonly status: number;
  readonly statusText: string;
  /** As the server sent them, repeated names kept apart. The body is already decoded: `content-encoding` is the original encoding. */
  readonly headers: readonly (readonly [string, string])[];
  /** A caller that does not read it to its end has to destroy it. */
  readonly body: Readable;
}

/** The body is sent as Base64 in one message to Chromium, which takes a hundred megabytes. */
export const LARGEST_BODY = 64 * 1024 * 1024;
/** More than a navigation has redirects. */
const MOST_EXTRAS = 100;
const MOST_COOKIES = 256 * 1024;
/** The wait for the headers that Chromium reports separately, because pages must not see them. They come with the answer or never. */
const EXTRA_MS = 500;

/** HTTP's own bounds: a status outside of them could not be passed on. */
const status = integer(100, 999);

const isPaused = object({
  requestId: anyText,
  networkId: optional(anyText),
  request: object({ url: anyText, method: anyText, headers: table(anyText) }),
  redirectedRequestId: optional(anyText),
  responseErrorReason: optional(anyText),
  responseStatusCode: optional(status),
  responseStatusText: optional(anyText),
  responseHeaders: optional(list(object({ name: anyText, value: anyText }))),
});
type Paused = Checked<typeof isPaused>;

/** What Chromium reports of an answer to its network panel. */
const isExtra = object({ requestId: anyText, statusCode: integer(0, 999), headers: table(anyText) });
type Extra = Checked<typeof isExtra>;
type Header = [name: string, value: string];

const hasRequestId = object({ requestId: anyText });
const isNavigated = object({ errorText: optional(anyText) });
const isStream = object({ stream: anyText });

/** Resolves when the headers of the answer have arrived; the signal aborts the request, also while the body is read. */
export function requestThrough(
  pages: HiddenPages,
  request: BrowserRequest,
  signal: AbortSignal,
): Promise<BrowserResponse> {
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal.reason as Error); // also while it waits for a page
    signal.addEventListener('abort', aborted, { once: true });
    pages
      .use((page) => travel(page, request, signal, resolve), signal)
      .catch(reject) // after `resolve` this has no effect
      .finally(() => signal.removeEventListener('abort', aborted));
  });
}

/** The whole request, until the page can be reused. */
async function travel(
  page: HiddenPage,
  request: BrowserRequest,
  signal: AbortSignal,
  answer: (response: BrowserResponse) => void,
): Promise<void> {
  signal.throwIfAborted();
  const stop: (() => void)[] = [];
  /** The header with the cookies of an answer, by the id of the request. */
  const extras = new Map<string, Header | undefined>();
  const onward = journey(request);
  let navigated: Promise<{ errorText?: string }> | undefined;
  try {
    const arrived = new Promise<Paused>((resolve, reject) => {
      const fail = (error: Error) => reject(error);
      const aborted = () => reject(signal.reason as Error);
      signal.addEventListener('abort', aborted, { once: true });
      stop.push(() => signal.removeEventListener('abort', aborted));
      stop.push(
        page.on('Network.responseReceivedExtraInfo', isExtra, (extra) => {
          if (!isOfRedirect(extra) && extras.size < MOST_EXTRAS) extras.set(extra.requestId, cookiesOf(extra));
        }),
        page.on('Fetch.authRequired', hasRequestId, ({ requestId }) => {
          const cancelled = { response: 'CancelAuth' } as const;
          page.send('Fetch.continueWithAuth', { requestId, authChallengeResponse: cancelled }).catch(fail);
        }),
        page.on('Inspector.targetCrashed', record, () =>
          reject(new TransportError('The page that made the request crashed.')),
        ),
        page.on('Fetch.requestPaused', isPaused, (paused) => {
          if (isAnswer(paused)) return resolve(paused);
          page.send('Fetch.continueRequest', ...onward(paused)).catch(fail);
        }),
      );
    });
    arrived.catch(() => {}); // it may be rejected before it is awaited
    await Promise.all([
      page.send('Network.enable', { maxTotalBufferSize: 0, maxResourceBufferSize: 0 }),
      page.send('Network.setBypassServiceWorker', { bypass: true }),
      page.send('Fetch.enable', { handleAuthRequests: true, patterns: [{ requestStage: 'Request' }, atAnswer] }),
    ]);
    navigated = page.ask(isNavigated, 'Page.navigate', { url: request.url }, { patient: true });
    const failed = navigated.then(({ errorText }) => {
      throw transportError(errorText ?? 'it became something else than an answer');
    });
    failed.catch(() => {});
    const paused = await Promise.race([arrived, failed]);

    const headers = await headersOf(paused, extras, page, stop);
    const refused = gatewayRefusal(headers.find(([name]) => name.toLowerCase() === 'x-corral-egress')?.[1] ?? '');
    if (refused) throw refused;
    await deliver(page, paused, headers, request, signal, answer);
    await page.send('Fetch.failRequest', { requestId: paused.requestId, errorReason: 'Aborted' }).catch(() => {});
    await within(ANSWER_MS, 'The browser', navigated); // a page that still navigates would take the next request for a part of this one
    await page.send('Fetch.disable');
  } finally {
    for (const step of stop) step();
    navigated?.catch(() => {});
  }
}

const atAnswer = { requestStage: 'Response' } as const;

/** Whether this is the final answer, and not a redirect. */
function isAnswer({ responseStatusCode: status, responseHeaders = [] }: Paused): boolean {
  return status !== undefined && !leadsOn(status, new Map(responseHeaders.map(({ name, value }) => [name, value])));
}

/** All redirects of a request share its id, so reports about them are recognised by their status. */
function isOfRedirect({ statusCode, headers }: Extra): boolean {
  return leadsOn(statusCode, new Map(Object.entries(headers)));
}

function leadsOn(status: number, headers: Map<string, string>): boolean {
  if (![301, 302, 303, 307, 308].includes(status)) return false;
  return [...headers].some(([name, value]) => name.toLowerCase() === 'location' && value !== '');
}

/** Sent to the requested origin only, not to others after a redirect. */
const confidential = new Set(['authorization', 'cookie']);
/** The headers that the Fetch standard removes together with a body. */
const ofTheBody = /^content-(encoding|language|location|type)$/i;

type Onward = [params: Params<'Fetch.continueRequest'>, options?: SendOptions];

/** How a paused request continues: as the caller specified it, or (a redirect, or a failure) unchanged. */
function journey({ url, method, headers, body }: BrowserRequest): (paused: Paused) => Onward {
  const { origin } = new URL(url);
  let strayed = false; // whether a redirect has left the requested origin; later redirects may then be under the other server's control

  return (paused) => {
    const { requestId, redirectedRequestId, request } = paused;
    if (paused.responseStatusCode !== undefined || paused.responseErrorReason !== undefined) return [{ requestId }];
    strayed ||= redirectedRequestId !== undefined && urlOf(request.url)?.origin !== origin;
    const lostBody = redirectedRequestId !== undefined && request.method !== method;
    const left = (name: string) =>
      (strayed && confidential.has(name.toLowerCase())) || (lostBody && ofTheBody.test(name));
    const mine = headers.filter(([name]) => !left(name));
    const own = new Set(mine.map(([name]) => name.toLowerCase()));
    const theirs = Object.entries(request.headers).filter(
      // The network stack itself adds the listed cookies; and this is not a request for a page.
      ([name]) =>
        !own.has(name.toLowerCase()) && !left(name) && !/^(cookie|upgrade-insecure-requests|accept)$/i.test(name),
    );
    const accept: [string, string][] = own.has('accept') ? [] : [['Accept', '*/*']];
    const all = [...theirs, ...accept, ...mine].map(([name, value]) => ({ name, value }));
    // After a redirect, Chromium's method and body are kept: a 303 is fetched with GET.
    if (redirectedRequestId !== undefined) return [{ requestId, headers: all }];
    return [{ requestId, method, headers: all }, body ? { base64: { name: 'postData', bytes: body } } : {}];
  };
}

/** The headers that interceptors see lack Set-Cookie; those for the network panel have it. */
async function headersOf(
  { networkId, responseHeaders = [] }: Paused,
  extras: ReadonlyMap<string, Header | undefined>,
  page: HiddenPage,
  stop: (() => void)[],
): Promise<Header[]> {
  const seen = responseHeaders.map(({ name, value }): Header => [name, value]);
  if (networkId === undefined) return seen;
  if (!extras.has(networkId)) {
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, EXTRA_MS);
      stop.push(
        () => clearTimeout(late),
        page.on('Network.responseReceivedExtraInfo', record, () => {
          if (extras.has(networkId)) resolve();
        }),
      );
    });
  }
  const [name, values] = extras.get(networkId) ?? [];
  if (name === undefined || values === undefined) return seen;
  return [...seen, ...values.split('\n').map((value): Header => [name, value])];
}

/** One on each line. Chromium takes 256 KiB of headers; a browser that was taken over may send more. */
function cookiesOf({ headers }: Extra): Header | undefined {
  const found = Object.entries(headers).find(([name]) => name.toLowerCase() === 'set-cookie');
  return found && found[1].length <= MOST_COOKIES ? found : undefined;
}

/** Passes the answer on and reads its body for as long as the caller takes it. */
async function deliver(
  page: HiddenPage,
  { requestId, responseStatusCode: status = 0, responseStatusText: statusText = '' }: Paused,
  headers: [string, string][],
  { method }: BrowserRequest,
  signal: AbortSignal,
  answer: (response: BrowserResponse) => void,
): Promise<void> {
  const { stream: handle } = await page.ask(isStream, 'Fetch.takeResponseBodyAsStream', { requestId });
  const body = bodyStream(page, handle, headers, method !== 'HEAD' && status !== 204 && status !== 304);
  const aborted = () => body.destroy(signal.reason as Error);
  signal.addEventListener('abort', aborted, { once: true });
  const done = new Promise<void>((resolve) => body.once('close', resolve));
  if (signal.aborted) aborted();
  answer({ status, statusText, headers, body });
  await done;
  signal.removeEventListener('abort', aborted);
  await page.send('IO.close', { handle }).catch(() => {});
}
