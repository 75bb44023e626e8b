import { isIP } from 'node:net';
import type { NetworkMetadata } from '../../lib/telemetry.ts';
import type { Endpoint } from '../cdp/network-facts.ts';
import { bodyLimit, cleanBody, cleanHeaders, cleanUrl, cutText } from './redact.ts';
import type { RequestSent, Response } from './shapes.ts';
import { contextOf, type Target, type NewEvent } from './target.ts';

/** A request that has not ended. */
export interface Request {
  requestId: string;
  /** Where its latest event came from: a document that moves to another process ends its requests there. */
  target: Target;
  /** Redacted. */
  url: string;
  method: string;
  type: string | undefined;
  frameId: string | undefined;
  loaderId: string;
  response: Answer | undefined;
  /** When the head of the response arrived. */
  headTimestamp?: number;
  /** False for what a page can be idle with: streams that stay open, and scripts of workers: Chromium does not always report their end. */
  counts: boolean;
}

/** The redacted part of a response that is kept until its event. */
interface Answer {
  url: string;
  status: number;
  statusText: string;
  headers: Record<string, string>;
  mimeType: string;
  protocol: string | undefined;
  fromCache: 'disk' | 'service_worker' | undefined;
  serverIp: string | undefined;
  /** About how many bytes of memory it takes. */
  weight: number;
}

/** `proxy`: where Chromium's proxy listens. */
export function answerOf(response: Response, proxy: Endpoint | undefined): Answer {
  const [url, headers] = [cleanUrl(response.url), cleanHeaders(response.headers)];
  const lines = Object.entries(headers);
  return {
    url,
    status: Math.trunc(response.status),
    statusText: cutText(response.statusText, 256),
    headers,
    mimeType: cutText(response.mimeType, 256),
    protocol: response.protocol === undefined ? undefined : cutText(response.protocol, 64),
    fromCache: response.fromDiskCache ? 'disk' : response.fromServiceWorker ? 'service_worker' : undefined,
    serverIp: serverOf(response, proxy),
    weight: lines.reduce((sum, [name, value]) => sum + 64 + name.length + value.length, 1024 + url.length),
  };
}

/** About how many bytes of memory a request takes. */
export const weightOf = ({ url, response }: Request): number => 512 + url.length + (response?.weight ?? 0);

export function requestRecord(entry: Request, sent: RequestSent, urlBefore: string | undefined): NewEvent {
  const { target, requestId, method } = entry;
  const { request, redirectResponse } = sent;
  const headers = cleanHeaders(request.headers);
  return {
    type: 'network_request',
    from: 'Network.requestWillBeSent',
    target,
    metadata: { cdp_timestamp: String(sent.timestamp) },
    data: {
      ...contextOf(target, entry),
      request_id: requestId,
      method,
      document_url: cleanUrl(sent.documentURL),
      headers,
      resource_type: sent.type,
      initiator_type: sent.initiator.type,
      post_data: request.postData === undefined ? undefined : postData(request.postData, headers),
      is_redirect: redirectResponse !== undefined,
      redirect_url: redirectResponse && (urlBefore ?? cleanUrl(redirectResponse.url)),
    },
  };
}

function postData(data: string, headers: Record<string, string>): string | undefined {
  const [, type = 'text/plain'] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type') ?? [];
  const limit = bodyLimit(type);
  return limit === undefined ? undefined : cleanBody(data, limit);
}

/** `timestamp`: when the response was complete; `bytes`: on the wire. */
export function responseRecord(
  entry: Request,
  answer: Answer,
  timestamp: number,
  bytes: number,
): NewEvent<'network_response'> {
  const { target, method, requestId } = entry;
  return {
    type: 'network_response',
    from: 'Network.loadingFinished',
    target,
    metadata: {
      cdp_timestamp: String(timestamp),
      head_timestamp: entry.headTimestamp === undefined ? undefined : String(entry.headTimestamp),
      encoded_data_length: String(bytes),
      protocol: answer.protocol,
      server_ip: answer.serverIp,
      from_cache: answer.fromCache,
    } satisfies NetworkMetadata,
    data: {
      ...contextOf(target, entry),
      url: answer.url,
      request_id: requestId,
      method,
      status: answer.status,
      status_text: answer.statusText,
      headers: answer.headers,
      mime_type: answer.mimeType,
      resource_type: entry.type,
    },
  };
}

export const withBody = (response: NewEvent<'network_response'>, body: string | undefined) => ({
  ...response,
  data: { ...response.data, body },
});

/** The multiplexer has put the server's address in the place of the proxy's, if it is known. */
export function serverOf(
  { remoteIPAddress: address, remotePort }: Response,
  proxy: Endpoint | undefined,
): string | undefined {
  if (address === undefined || (address === proxy?.address && remotePort === proxy.port)) return undefined;
  const bare = address.replace(/^\[(.*)\]$/, '$1'); // Chromium writes IPv6 in brackets
  return isIP(bare) === 0 ? undefined : bare;
}

export function failureRecord(
  entry: Pick<Request, 'requestId' | 'target'> & Partial<Request>,
  why: { type: string | undefined; errorText: string; canceled: boolean | undefined; timestamp?: number },
): NewEvent {
  const { target, requestId, url } = entry;
  const { session_id, target_id, target_type, nav_seq } = contextOf(target);
  return {
    type: 'network_loading_failed',
    from: why.timestamp === undefined ? 'Target.detachedFromTarget' : 'Network.loadingFailed',
    target,
    metadata: { cdp_timestamp: why.timestamp === undefined ? undefined : String(why.timestamp) },
    data: {
      // The context of a request that was under way before the capture began is not known.
      ...(url === undefined ? { session_id, target_id, target_type, nav_seq } : contextOf(target, entry)),
      request_id: requestId,
      error_text: cutText(why.errorText, 256),
      canceled: why.canceled ?? false,
      resource_type: url === undefined ? undefined : (entry.type ?? why.type),
    },
  };
}
