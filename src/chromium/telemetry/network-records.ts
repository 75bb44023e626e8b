import { isIP } from 'node:net';
import type { NetworkMetadata } from '../../lib/telemetry.ts';
import type { Endpoint } from '../cdp/network-facts.ts';
import { bodyLimit, cleanBody, cleanHeaders, cleanUrl, cutText } from './redact.ts';
import type { RequestSent, Response } from './shapes.ts';
import { contextOf, type Target, type Told } from './target.ts';

/** A request that has not ended. */
export interface Request {
  requestId: string;
  /** Where its latest event came from: a document that moves to another process ends its requests there. */
  target: Target;
  url: string;
  method: string;
  type: string | undefined;
  frameId: string | undefined;
  loaderId: string;
  response: Response | undefined;
  /** When the head of the response arrived. */
  headTimestamp?: number;
  /** False for what a page can be idle with: streams that stay open, and scripts of workers, whose end Chromium does not always tell. */
  counts: boolean;
}

export function requestRecord(entry: Request, sent: RequestSent, urlBefore: string | undefined): Told {
  const { target, requestId, method } = entry;
  const { request, redirectResponse } = sent;
  return {
    category: 'network',
    type: 'network_request',
    from: 'Network.requestWillBeSent',
    target,
    metadata: { cdp_timestamp: String(sent.timestamp) },
    data: {
      ...contextOf(target, entry),
      request_id: requestId,
      method,
      document_url: cleanUrl(sent.documentURL),
      headers: cleanHeaders(request.headers),
      resource_type: sent.type,
      initiator_type: sent.initiator.type,
      post_data: request.postData === undefined ? undefined : postData(request.postData, request.headers),
      is_redirect: redirectResponse !== undefined,
      redirect_url: redirectResponse && cleanUrl(urlBefore ?? redirectResponse.url),
    },
  };
}

function postData(data: string, headers: Record<string, unknown>): string | undefined {
  const name = Object.keys(headers).find((header) => header.toLowerCase() === 'content-type');
  const limit = bodyLimit(name === undefined ? 'text/plain' : String(headers[name]));
  return limit === undefined ? undefined : cleanBody(data, limit);
}

interface Outcome {
  timestamp: number;
  bytes: number;
  body: string | undefined;
  /** Where Chromium's proxy listens. */
  proxy: Endpoint | undefined;
}

export function responseRecord(entry: Request, response: Response, { timestamp, bytes, body, proxy }: Outcome): Told {
  const { target, method, requestId } = entry;
  return {
    category: 'network',
    type: 'network_response',
    from: 'Network.loadingFinished',
    target,
    metadata: {
      cdp_timestamp: String(timestamp),
      head_timestamp: entry.headTimestamp === undefined ? undefined : String(entry.headTimestamp),
      encoded_data_length: String(bytes),
      protocol: response.protocol,
      server_ip: serverOf(response, proxy),
      from_cache: response.fromDiskCache ? 'disk' : response.fromServiceWorker ? 'service_worker' : undefined,
    } satisfies NetworkMetadata,
    data: {
      ...contextOf(target, entry),
      url: cleanUrl(response.url),
      request_id: requestId,
      method,
      status: Math.trunc(response.status),
      status_text: cutText(response.statusText, 256),
      headers: cleanHeaders(response.headers),
      mime_type: cutText(response.mimeType, 256),
      resource_type: entry.type,
      body,
    },
  };
}

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
): Told {
  const { target, requestId, url } = entry;
  const { session_id, target_id, target_type, nav_seq } = contextOf(target);
  return {
    category: 'network',
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
