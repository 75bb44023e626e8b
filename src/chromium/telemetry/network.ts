import { pacedTasks } from '../../lib/turns.ts';
import type { Endpoint } from '../cdp/network-facts.ts';
import { bodies } from './bodies.ts';
import {
  answerOf,
  failureRecord,
  requestRecord,
  responseRecord,
  weightOf,
  withBody,
  type Request,
} from './network-records.ts';
import { openRequests } from './open-requests.ts';
import { bodyLimit, cleanUrl } from './redact.ts';
import { isFailed, isFinished, isRequestSent, isResponseReceived } from './shapes.ts';
import { contextOf, loadingFor, rootOf, type Target } from './target.ts';
import type { Watch } from './watch.ts';

const IDLE_MS = 500;
/** How long bodies wait for other requests of a page that has loaded. */
const BUSY_MS = 1000;

/** network_request, network_response, network_loading_failed and network_idle. */
export function networkEvents(watch: Watch, proxy: Endpoint | undefined) {
  const { client, targets, emit } = watch;
  /**
   * By page, and not by target: Chromium reports the request for a frame's document in the page's process, and its end in the frame's. The
   * script of a shared worker ends outside of the page; such a request's id is unique in the browser.
   */
  const requests = openRequests();
  const idle = idlePages(watch);
  const inTurns = pacedTasks();
  const readBody = bodies(
    client,
    (target) => loadingFor(rootOf(target)) || (requests.isBusy(rootOf(target)) ? BUSY_MS : 0),
  );
  const keyOf = (target: Target, requestId: string) =>
    requestId.length === 32 ? requestId : `${rootOf(target).sessionId} ${requestId}`;

  client.on('Network.requestWillBeSent', isRequestSent, (sent, sessionId) => {
    const target = targets.get(sessionId);
    if (!target || !watch.captures('network')) return;
    const { requestId, request, redirectResponse, timestamp } = sent;
    const key = keyOf(target, requestId);
    const before = requests.get(key);
    if (redirectResponse && before) answered({ ...before, response: answerOf(redirectResponse, proxy) }, timestamp);
    const url = request.url + (request.urlFragment ?? '');
    const { method } = request;
    const entry: Request = {
      requestId,
      target,
      url: cleanUrl(url),
      method,
      type: sent.type,
      frameId: sent.frameId,
      loaderId: sent.loaderId,
      response: undefined,
      counts: sent.type !== 'EventSource' && !(sent.type === 'Script' && url === sent.documentURL),
    };
    requests.add(key, entry);
    idle.busy(rootOf(target));
    emit(requestRecord(entry, sent, before?.url));
  });

  client.on('Network.responseReceived', isResponseReceived, ({ requestId, type, response, timestamp }, sessionId) => {
    const target = targets.get(sessionId);
    if (!target) return;
    const key = keyOf(target, requestId);
    const entry = requests.get(key);
    if (!entry) return;
    requests.change(key, entry, { target, type, response: answerOf(response, proxy), headTimestamp: timestamp });
    if (response.mimeType === 'text/event-stream') requests.idle(entry);
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
    if (watch.captures('network'))
      emit(failureRecord(entry ?? { requestId, target }, { type, errorText, canceled, timestamp }));
    settleIdle(target);
  });

  function take(sessionId: string | undefined, requestId: string): Request | undefined {
    const target = targets.get(sessionId);
    const entry = target && requests.remove(keyOf(target, requestId));
    if (entry) entry.target = target;
    return entry;
  }

  /** The response is complete. Its event follows when its body has been read, or at once if it has none to capture. */
  function answered(entry: Request, timestamp: number, bytes = 0): void {
    const { target, response, method, requestId } = entry;
    if (!response || !watch.captures('network')) return;
    const record = responseRecord(entry, response, timestamp, bytes);
    const limit = bodyLimit(response.mimeType);
    const { status } = response;
    const hasBody = method !== 'HEAD' && status !== 204 && status !== 304 && !(status >= 300 && status < 400);
    if (limit === undefined || !hasBody || target.gone) return emit(record);
    const finish = watch.draft(record);
    readBody({ target, requestId, bytes, limit, weight: weightOf(entry) }, (body) => finish(withBody(record, body)));
  }

  function tellAborted(entry: Request): void {
    if (watch.captures('network'))
      emit(failureRecord(entry, { type: entry.type, errorText: 'net::ERR_ABORTED', canceled: true }));
  }

  function settleIdle(target: Target): void {
    const root = rootOf(target);
    if (root.gone || !watch.captures('network') || requests.isBusy(root)) return;
    if (loadingFor(root) === 0) readBody.now(root);
    idle.later(root);
  }

  return {
    /** The page goes to another document, and takes the bodies of this one with it. */
    leaving: (page: Target) => readBody.now(page),

    /** The page has loaded its document. */
    loaded: (page: Target) => readBody.now(page),

    /** The main frame shows another document: Chromium may never report the end of requests of the previous one. */
    navigated(page: Target, loaderId: string): void {
      for (const entry of requests.counted(page)) if (entry.loaderId !== loaderId) requests.idle(entry);
      settleIdle(page);
    },

    /** A target was closed: its requests ended with it. */
    gone(target: Target): void {
      idle.busy(target);
      // A page may close with thousands of requests.
      void inTurns(requests.takeAll(target).map((entry) => () => tellAborted(entry)));
      readBody.gone(target);
      if (!target.gone || target.parent) settleIdle(target);
    },

    /** The category was switched off. */
    forget(): void {
      requests.clear();
      readBody.close();
      idle.close();
    },

    close(): void {
      readBody.close();
      idle.close();
    },
  };
}

/** network_idle: a page without a request in flight for half a second. */
function idlePages({ captures, emit }: Watch) {
  const timers = new Map<Target, NodeJS.Timeout>();
  return {
    busy(page: Target): void {
      clearTimeout(timers.get(page));
      timers.delete(page);
    },

    /** The page has nothing in flight. */
    later(page: Target): void {
      if (page.type !== 'page' || timers.has(page)) return;
      const timer = setTimeout(() => {
        timers.delete(page);
        if (page.gone || !captures('network')) return;
        emit({ type: 'network_idle', target: page, data: contextOf(page) });
      }, IDLE_MS);
      timers.set(page, timer);
    },

    close(): void {
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
    },
  };
}
