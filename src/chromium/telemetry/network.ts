import type { NetworkMetadata } from '../../lib/telemetry.ts';
import { bodies } from './bodies.ts';
import { bodyLimit, cleanBody, cleanHeaders, cleanUrl, cutText } from './redact.ts';
import { isFailed, isFinished, isRequestSent, isResponseReceived, type Response } from './shapes.ts';
import { contextOf, rootOf, type Target } from './target.ts';
import type { Watch } from './watch.ts';

/** A request that has not ended. */
interface Request {
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

/** More unended requests than any page has. The oldest are forgotten. */
const MOST_REQUESTS = 10_000;
const IDLE_MS = 500;

/** network_request, network_response, network_loading_failed and network_idle. */
export function networkEvents(watch: Watch) {
  const { client, targets, tell } = watch;
  /**
   * By page, and not by target: Chromium tells the request for a frame's document in the page's process, and its end in the frame's. The
   * script of a shared worker ends outside of the page; such a request's id is unique in the browser.
   */
  const requests = new Map<string, Request>();
  const idleTimers = new Map<Target, NodeJS.Timeout>();
  const readBody = bodies(client, isLoading);
  const keyOf = (target: Target, requestId: string) =>
    requestId.length === 32 ? requestId : `${rootOf(target).sessionId} ${requestId}`;

  client.on('Network.requestWillBeSent', isRequestSent, (sent, sessionId) => {
    const target = targets.get(sessionId);
    if (!target || !watch.captures('network')) return;
    const { requestId, request, redirectResponse, timestamp } = sent;
    const key = keyOf(target, requestId);
    const before = requests.get(key);
    if (redirectResponse && before) answered({ ...before, response: redirectResponse }, timestamp);
    const url = request.url + (request.urlFragment ?? '');
    const { method } = request;
    const entry: Request = {
      requestId,
      target,
      url,
      method,
      type: sent.type,
      frameId: sent.frameId,
      loaderId: sent.loaderId,
      response: undefined,
      counts: sent.type !== 'EventSource' && !(sent.type === 'Script' && url === sent.documentURL),
    };
    requests.delete(key);
    requests.set(key, entry);
    if (requests.size > MOST_REQUESTS) requests.delete(requests.keys().next().value!);
    busy(target);
    tell({
      category: 'network',
      type: 'network_request',
      from: 'Network.requestWillBeSent',
      target,
      metadata: { cdp_timestamp: String(timestamp) },
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
        redirect_url: redirectResponse && cleanUrl(before?.url ?? redirectResponse.url),
      },
    });
  });

  client.on('Network.responseReceived', isResponseReceived, ({ requestId, type, response, timestamp }, sessionId) => {
    const target = targets.get(sessionId);
    const entry = target && requests.get(keyOf(target, requestId));
    if (!entry) return;
    entry.target = target;
    entry.type = type;
    entry.response = response;
    entry.headTimestamp = timestamp;
    if (response.mimeType === 'text/event-stream') entry.counts = false;
    settleIdle(target);
  });

  client.on('Network.loadingFinished', isFinished, ({ requestId, timestamp, encodedDataLength }, sessionId) => {
    const entry = take(sessionId, requestId);
    if (!entry) return;
    answered(entry, timestamp, encodedDataLength);
    settleIdle(entry.target);
  });

  client.on('Network.loadingFailed', isFailed, ({ requestId, timestamp, type, errorText, canceled }, sessionId) => {
    const target = targets.get(sessionId);
    if (!target) return;
    const entry = take(sessionId, requestId);
    // A redirect or an error page was answered, although nothing of it was loaded.
    if (watch.captures('network')) failed(entry ?? { requestId, target }, { type, errorText, canceled, timestamp });
    settleIdle(target);
  });

  function take(sessionId: string | undefined, requestId: string): Request | undefined {
    const target = targets.get(sessionId);
    const key = target && keyOf(target, requestId);
    const entry = key === undefined ? undefined : requests.get(key);
    if (!entry) return undefined;
    requests.delete(key!);
    entry.target = target!;
    return entry;
  }

  /** The response is complete. It is told when its body has been read, or without a body if there is none to tell. */
  function answered(entry: Request, timestamp: number, bytes = 0): void {
    const { target, response, method, requestId } = entry;
    if (!response) return;
    const told = (body?: string) => {
      if (!watch.captures('network')) return;
      tell({
        category: 'network',
        type: 'network_response',
        from: 'Network.loadingFinished',
        target,
        metadata: {
          cdp_timestamp: String(timestamp),
          head_timestamp: entry.headTimestamp === undefined ? undefined : String(entry.headTimestamp),
          encoded_data_length: String(bytes),
          protocol: response.protocol,
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
      });
    };
    const limit = bodyLimit(response.mimeType);
    const { status } = response;
    const hasBody = method !== 'HEAD' && status !== 204 && status !== 304 && !(status >= 300 && status < 400);
    if (limit === undefined || !hasBody || target.gone) told();
    else readBody({ target, requestId, bytes, limit }, told);
  }

  function failed(
    entry: Pick<Request, 'requestId' | 'target'> & Partial<Request>,
    why: { type: string | undefined; errorText: string; canceled: boolean | undefined; timestamp?: number },
  ): void {
    const { target, requestId, url } = entry;
    const { session_id, target_id, target_type, nav_seq } = contextOf(target);
    tell({
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
    });
  }

  // ---- idle pages

  function busy(target: Target): void {
    const root = rootOf(target);
    clearTimeout(idleTimers.get(root));
    idleTimers.delete(root);
  }

  function isLoading(target: Target): boolean {
    const root = rootOf(target);
    for (const entry of requests.values()) if (entry.counts && rootOf(entry.target) === root) return true;
    return false;
  }

  function settleIdle(target: Target): void {
    const root = rootOf(target);
    if (root.gone || !watch.captures('network') || isLoading(root)) return;
    readBody.quiet(root);
    if (root.type !== 'page' || idleTimers.has(root)) return;
    const timer = setTimeout(() => {
      idleTimers.delete(root);
      if (root.gone || !watch.captures('network')) return;
      tell({ category: 'network', type: 'network_idle', target: root, data: contextOf(root) });
    }, IDLE_MS);
    idleTimers.set(root, timer);
  }

  return {
    /** The main frame shows another document: requests of the previous one may never be told to have ended. */
    navigated(page: Target, loaderId: string): void {
      for (const entry of requests.values()) {
        if (rootOf(entry.target) === page && entry.loaderId !== loaderId) entry.counts = false;
      }
      settleIdle(page);
    },

    /** A target is gone: its requests ended with it. */
    gone(target: Target): void {
      if (idleTimers.has(target)) busy(target);
      for (const [key, entry] of requests) {
        if (entry.target !== target) continue;
        requests.delete(key);
        if (watch.captures('network'))
          failed(entry, { type: entry.type, errorText: 'net::ERR_ABORTED', canceled: true });
      }
      readBody.gone(target);
      if (!target.gone || target.parent) settleIdle(target);
    },

    /** The category was switched off. */
    forget(): void {
      requests.clear();
      this.close();
    },

    close(): void {
      for (const timer of idleTimers.values()) clearTimeout(timer);
      idleTimers.clear();
    },
  };
}

function postData(data: string, headers: Record<string, unknown>): string | undefined {
  const name = Object.keys(headers).find((header) => header.toLowerCase() === 'content-type');
  const limit = bodyLimit(name === undefined ? 'text/plain' : String(headers[name]));
  return limit === undefined ? undefined : cleanBody(data, limit);
}
