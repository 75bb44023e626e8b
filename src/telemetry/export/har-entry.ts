import type { NetworkMetadata, TelemetryEvent } from '../../lib/telemetry.ts';
import { urlOf } from '../../lib/urls.ts';
import type { Exchange } from './exchanges.ts';
import { msOf, numberOf, textIn } from './source.ts';

interface NameAndValue {
  name: string;
  value: string;
}

/** An entry of HAR 1.2, with the fields of Chromium (they begin with `_`) that DevTools reads. */
export interface HarEntry {
  pageref?: string;
  startedDateTime: string;
  time: number;
  request: {
    method: string;
    url: string;
    httpVersion: string;
    cookies: [];
    headers: NameAndValue[];
    queryString: NameAndValue[];
    postData?: { mimeType: string; text: string; comment?: string };
    headersSize: number;
    bodySize: number;
  };
  response: {
    status: number;
    statusText: string;
    httpVersion: string;
    cookies: [];
    headers: NameAndValue[];
    content: { size: number; mimeType: string; text?: string; comment?: string };
    redirectURL: string;
    headersSize: number;
    bodySize: number;
    _transferSize?: number;
    _error?: string;
    _fetchedViaServiceWorker?: true;
  };
  serverIPAddress?: string;
  cache: Record<string, never>;
  timings: {
    blocked: number;
    dns: number;
    connect: number;
    send: number;
    wait: number;
    receive: number;
    ssl: number;
  };
  _resourceType?: string;
  _initiator?: { type: string };
  _fromCache?: string;
  comment?: string;
}

type Data = TelemetryEvent['data'];

/**
 * The exchange as HAR has it. -1 means that telemetry does not capture the value. There are no cookies: their headers are kept
 * without values, so there is nothing to take apart. The address of the server is missing where a proxy
 * made the connection.
 */
export function harEntry(exchange: Exchange): HarEntry {
  const { request, outcome } = exchange;
  const answer = outcome.kind === 'answered' ? outcome.data : undefined;
  const metadata: NetworkMetadata = outcome.kind === 'answered' ? outcome.metadata : {};
  const httpVersion = metadata.protocol || 'unknown';
  const resourceType = textIn(request, 'resource_type') ?? textIn(answer, 'resource_type');
  const initiator = textIn(request, 'initiator_type');
  const time = msOf(exchange.endedAt - exchange.startedAt);
  return {
    ...(exchange.page && { pageref: exchange.page.id }),
    startedDateTime: new Date(msOf(exchange.startedAt)).toISOString(),
    time,
    request: requestOf(request ?? answer, httpVersion),
    response: { ...responseOf(outcome), httpVersion },
    ...(metadata.server_ip !== undefined && { serverIPAddress: metadata.server_ip }),
    cache: {},
    timings: timingsOf(time, exchange.headAfterMs),
    ...(resourceType && { _resourceType: resourceType.toLowerCase() }),
    ...(initiator && { _initiator: { type: initiator } }),
    ...(metadata.from_cache === 'disk' && { _fromCache: 'disk' }),
    ...commentOn(exchange),
  };
}

function requestOf(data: Data, httpVersion: string): HarEntry['request'] {
  const url = (textIn(data, 'url') ?? '').split('#', 1)[0]!; // HAR has addresses without fragments
  const headers = headersOf(data);
  const posted = textIn(data, 'post_data');
  return {
    method: textIn(data, 'method') ?? 'GET',
    url,
    httpVersion,
    cookies: [],
    headers,
    queryString: queryOf(url),
    ...(posted !== undefined && {
      postData: { mimeType: valueOf(headers, 'content-type') ?? 'application/octet-stream', text: posted },
    }),
    headersSize: -1,
    bodySize: lengthIn(headers) ?? (posted === undefined ? 0 : Buffer.byteLength(posted)),
  };
}

function responseOf(outcome: Exchange['outcome']): Omit<HarEntry['response'], 'httpVersion'> {
  const nothing = { cookies: [] as [], headers: [] as NameAndValue[], redirectURL: '', headersSize: -1, bodySize: -1 };
  const noContent = { size: 0, mimeType: 'x-unknown' };
  switch (outcome.kind) {
    case 'answered':
      return answerOf(outcome.data, outcome.metadata);
    case 'redirected':
      return {
        ...nothing,
        status: 302,
        statusText: '',
        headers: [{ name: 'location', value: outcome.to }],
        content: noContent,
        redirectURL: outcome.to,
        bodySize: 0,
      };
    case 'failed':
      return {
        ...nothing,
        status: 0,
        statusText: '',
        content: noContent,
        _error: textIn(outcome.data, 'error_text') ?? 'failed',
      };
    case 'open':
      return { ...nothing, status: 0, statusText: '', content: noContent };
  }
}

function answerOf(data: Data, metadata: NetworkMetadata): Omit<HarEntry['response'], 'httpVersion'> {
  const headers = headersOf(data);
  const status = Number(data?.['status'] ?? 0);
  const body = textIn(data, 'body');
  const kept = body === undefined ? undefined : Buffer.byteLength(body);
  const onTheWire = lengthIn(headers);
  // The length of the answer is that of the body unless the body was compressed on its way.
  const size = Math.max((valueOf(headers, 'content-encoding') ? undefined : onTheWire) ?? -1, kept ?? -1);
  const transferred = numberOf(metadata.encoded_data_length);
  const empty = status === 304 || metadata.from_cache !== undefined;
  return {
    status,
    statusText: textIn(data, 'status_text') ?? '',
    cookies: [],
    headers,
    content: {
      size,
      mimeType: textIn(data, 'mime_type') || valueOf(headers, 'content-type') || 'x-unknown',
      ...(body !== undefined && { text: body }),
      ...(kept !== undefined && kept < size && { comment: 'The body is shortened.' }),
    },
    redirectURL: status >= 300 && status < 400 ? (valueOf(headers, 'location') ?? '') : '',
    headersSize: -1,
    bodySize: empty ? 0 : (onTheWire ?? -1),
    ...(transferred !== undefined && { _transferSize: transferred }),
    ...(metadata.from_cache === 'service_worker' && { _fetchedViaServiceWorker: true as const }),
  };
}

/** No header is repeated more often. A page can make a value of nothing but newlines, and each line repeats the name. */
const mostLines = 100;

/** Chromium joins the values of a repeated header by newlines. */
function headersOf(data: Data): NameAndValue[] {
  const headers = data?.['headers'];
  if (typeof headers !== 'object' || headers === null) return [];
  return Object.entries(headers).flatMap(([name, value]) => {
    const lines = String(value).split('\n');
    return (lines.length > mostLines ? [String(value)] : lines).map((line) => ({ name, value: line }));
  });
}

function valueOf(headers: NameAndValue[], wanted: string): string | undefined {
  return headers.find(({ name }) => name.toLowerCase() === wanted)?.value;
}

function lengthIn(headers: NameAndValue[]): number | undefined {
  return numberOf(valueOf(headers, 'content-length'));
}

function queryOf(url: string): NameAndValue[] {
  return [...(urlOf(url)?.searchParams ?? [])].map(([name, value]) => ({ name, value }));
}

/** The parts add up to the whole, as HAR asks. */
function timingsOf(time: number, waited: number | undefined): HarEntry['timings'] {
  const wait = Math.min(waited ?? time, time);
  return { blocked: -1, dns: -1, connect: -1, send: 0, wait, receive: time - wait, ssl: -1 };
}

function commentOn({ request, outcome }: Exchange): { comment?: string } {
  if (!request) return { comment: 'Capturing began after the request was sent.' };
  if (outcome.kind === 'open') return { comment: 'The record has no answer to this request.' };
  if (outcome.kind === 'redirected')
    return { comment: 'It was redirected; the status was not captured and stands for 301 to 308.' };
  if (outcome.kind === 'failed' && outcome.data['canceled'] === true)
    return { comment: 'The page canceled the request.' };
  return {};
}
