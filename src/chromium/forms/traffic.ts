import { beginningOf } from '../../lib/text.ts';

/** The requests of one page that an act may be waiting for, and its navigations. */
export interface Traffic {
  /** An act or a navigation begins: requests in flight now do not belong to it. */
  mark(): void;
  sent(request: Sent): void;
  response(request: { requestId: string; type: string; frameId?: string | undefined; status: number }): void;
  over(requestId: string): void;
  sessionGone(sessionId: string): void;
  /** A frame has another document. */
  committed(frameId: string, loaderId: string): void;
  /** A navigation within the document. */
  stirred(): void;
  /** The main frame's next document is on its way. */
  readonly navigating: boolean;
  /** Requests since the last mark that are not known to be background. */
  readonly waiting: number;
  /** Those among them that send something: the outcome of the act is likely among them. */
  readonly posting: number;
  /** A request of a script, or for one, is in flight. It may be background. */
  readonly asking: boolean;
  /** When something last happened, in milliseconds of the process's clock. */
  readonly lastAt: number;
  /** When the present document of the main frame was committed. */
  readonly committedAt: number;
  /** Counts the documents of all frames. */
  readonly documents: number;
  /** The status of the main frame's document. */
  readonly status: number | undefined;
  statusOf(loaderId: string): number | undefined;
  /** The page is at rest, so requests in flight now are polls. */
  takeForBackground(): void;
  /** Calls back when something changes, until the returned function is called. */
  listen(listener: () => void): () => void;
}

interface Sent {
  sessionId: string;
  requestId: string;
  loaderId: string;
  url: string;
  method: string;
  type: string | undefined;
  frameId: string | undefined;
}

interface InFlight {
  sessionId: string;
  /** The address without its query, which differs from poll to poll. Empty for documents. */
  key: string;
  marked: number;
  main: boolean;
  posts: boolean;
}

/** What a page waits for before it shows the outcome of an act. Pictures, fonts, beacons and sockets are not part of that. */
const awaited = new Set(['Document', 'XHR', 'Fetch', 'Script', 'Stylesheet']);
/** With their addresses they take 3 MiB at most. */
const MOST_REQUESTS = 2000;
const MOST_STATUSES = 50;
const MOST_BACKGROUND = 200;

export function pageTraffic(mainFrameId: string): Traffic {
  const inFlight = new Map<string, InFlight>();
  const statuses = new Map<string, number>();
  const background = new Set<string>();
  const listeners = new Set<() => void>();
  let marks = 0;
  let documents = 0;
  let waiting = 0;
  let posting = 0;
  /** Documents of the main frame that are in flight. */
  let navigations = 0;
  let current: string | undefined;
  let lastAt = performance.now();
  let committedAt = lastAt;

  function changed(): void {
    lastAt = performance.now();
    for (const listener of listeners) listener();
  }
  /** Chromium may not report the end of the last document's requests. Navigations that began later are kept. */
  function forget(loaderId: string): void {
    const requests = [...inFlight];
    const own = requests.findIndex(([requestId]) => requestId === loaderId);
    for (const [at, [requestId, { main }]] of requests.entries()) if (at <= own || !main) inFlight.delete(requestId);
    countAll();
  }
  const isBackground = ({ key }: InFlight) => key !== '' && background.has(key);
  const isAwaited = (request: InFlight) => request.marked === marks && !isBackground(request);
  /** The counts change with each request, because waiting for a page reads them at each event. `by` is 1 or -1. */
  function count(request: InFlight, by: number): void {
    if (request.main) navigations += by;
    if (!isAwaited(request)) return;
    waiting += by;
    if (request.posts) posting += by;
  }
  function remove(requestId: string): InFlight | undefined {
    const request = inFlight.get(requestId);
    if (request) count(request, -1);
    inFlight.delete(requestId);
    return request;
  }
  function countAll(): void {
    waiting = posting = navigations = 0;
    for (const request of inFlight.values()) count(request, 1);
  }

  return {
    mark() {
      marks += 1;
      waiting = posting = 0;
      lastAt = performance.now();
    },
    sent({ sessionId, requestId, loaderId, url, method, type, frameId }) {
      if (type === undefined || !awaited.has(type) || !/^https?:/.test(url)) return;
      if (inFlight.size >= MOST_REQUESTS && !inFlight.has(requestId)) return;
      const main = type === 'Document' && requestId === loaderId && frameId === mainFrameId;
      const key = type === 'Document' ? '' : beginningOf(url, 300).split(/[?#]/, 1)[0]!;
      const request = { sessionId, key, marked: marks, main, posts: method !== 'GET' };
      const before = inFlight.get(requestId); // it was redirected
      if (before) count(before, -1);
      inFlight.set(requestId, request);
      count(request, 1);
      if (!isBackground(request)) changed();
    },
    response({ requestId, type, frameId, status }) {
      if (type !== 'Document' || frameId !== mainFrameId) return;
      statuses.set(requestId, status);
      if (statuses.size > MOST_STATUSES) statuses.delete(statuses.keys().next().value!);
    },
    over(requestId) {
      const request = remove(requestId);
      if (request && !isBackground(request)) changed();
    },
    sessionGone(sessionId) {
      for (const [requestId, known] of inFlight) if (known.sessionId === sessionId) remove(requestId);
      changed();
    },
    committed(frameId, loaderId) {
      documents += 1;
      if (frameId === mainFrameId) {
        current = loaderId;
        background.clear();
        forget(loaderId);
        committedAt = performance.now();
      }
      changed();
    },
    stirred: changed,
    get navigating() {
      return navigations > (current !== undefined && inFlight.get(current)?.main ? 1 : 0);
    },
    get waiting() {
      return waiting;
    },
    get asking() {
      return [...inFlight.values()].some(({ key }) => key !== '');
    },
    get posting() {
      return posting;
    },
    get lastAt() {
      return lastAt;
    },
    get committedAt() {
      return committedAt;
    },
    get documents() {
      return documents;
    },
    get status() {
      return current === undefined ? undefined : statuses.get(current);
    },
    statusOf: (loaderId) => statuses.get(loaderId),
    takeForBackground() {
      for (const { key, posts } of inFlight.values())
        if (key !== '' && !posts && background.size < MOST_BACKGROUND) background.add(key);
      countAll();
    },
    listen(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
