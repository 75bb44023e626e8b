import type { NetworkMetadata, TelemetryEvent } from '../../lib/telemetry.ts';
import { pageLoads, type PageLoad } from './pages.ts';
import { numberOf, textIn, weightOf, type StoredEvent } from './source.ts';

type Data = NonNullable<TelemetryEvent['data']>;

/** A request and what came of it. */
export interface Exchange {
  /** Of the event that ended it, or of the request if none did. */
  seq: number;
  page: PageLoad | undefined;
  /** Unix microseconds. */
  startedAt: number;
  endedAt: number;
  /** Milliseconds from the request to the head of its answer. */
  headAfterMs?: number;
  /** Undefined when capturing began after the request. */
  request: Data | undefined;
  outcome:
    | { kind: 'answered'; data: Data; metadata: NetworkMetadata }
    /** Its answer is missing from the record; the next request of the chain has its target. */
    | { kind: 'redirected'; to: string }
    | { kind: 'failed'; data: Data }
    /** Still running when the record ends, or its end is missing from the record. */
    | { kind: 'open' };
}

/** `clock`: when it began, in seconds on the clock of Chromium. */
type Begun = Omit<Exchange, 'outcome'> & { request: Data; clock: number | undefined; weight: number };

/** Requests that wait for their end: more than a browser has connections for, so only requests with a lost end are dropped. */
const mostOpen = 5000;
/** A request may have a megabyte. */
const mostOpenBytes = 16 * 2 ** 20;

/**
 * Pairs the network events of a session. `take` yields what an event completes; `rest`, at the end, what has no end. One by one, because
 * there may be thousands: the caller lets others have the event loop in between.
 */
export function exchanges() {
  const pages = pageLoads();
  /** By request id, in the order of the requests. */
  const open = new Map<string, Begun>();
  let openBytes = 0;
  const count = { websockets: 0, withoutData: 0 };

  function take(id: string): Begun | undefined {
    const begun = open.get(id);
    if (!begun) return undefined;
    open.delete(id);
    openBytes -= begun.weight;
    return begun;
  }

  function* requested(stored: StoredEvent, id: string, data: Data): Generator<Exchange> {
    const { seq, event } = stored;
    const weight = weightOf(data);
    const earlier = take(id);
    if (earlier) {
      // A redirect keeps the request's id. Its answer, which comes first, was lost.
      const outcome: Exchange['outcome'] =
        data['is_redirect'] === true ? { kind: 'redirected', to: textIn(data, 'url') ?? '' } : { kind: 'open' };
      yield end(earlier, seq, event, outcome);
    }
    if (open.size >= mostOpen || openBytes + weight > mostOpenBytes) yield* giveUp(mostOpen * 0.9, mostOpenBytes * 0.9);
    const clock = clockOf(event);
    open.set(id, { seq, page: pages.of(stored), startedAt: event.ts, endedAt: event.ts, request: data, clock, weight });
    openBytes += weight;
  }

  /** The oldest ones until these are left, many at a time: the first of a Map is slow to find after others before it were deleted. */
  function* giveUp(left: number, leftBytes: number): Generator<Exchange> {
    for (const [id, begun] of open) {
      if (open.size <= left && openBytes <= leftBytes) return;
      take(id);
      yield end(begun, begun.seq, undefined, { kind: 'open' });
    }
  }

  function* ended(stored: StoredEvent, id: string, outcome: Exchange['outcome']): Generator<Exchange> {
    const { seq, event } = stored;
    const begun = take(id);
    if (begun) yield end(begun, seq, event, outcome);
    // A failure names no address, so it is useless without its request.
    else if (outcome.kind === 'answered')
      yield { seq, page: pages.of(stored), startedAt: event.ts, endedAt: event.ts, request: undefined, outcome };
  }

  return {
    pages: pages.all,
    /** What is kept in memory. */
    bytes: () => openBytes + pages.bytes(),
    count: count as Readonly<typeof count>,

    *take(stored: StoredEvent): Generator<Exchange> {
      const { type, category, data } = stored.event;
      // The browser was started again: its requests have ended, and their numbers may be given a second time.
      if (type === 'monitor_disconnected') return yield* this.rest();
      pages.take(stored);
      if (category !== 'network') return;
      const id = textIn(data, 'request_id');
      if (data === undefined) count.withoutData++;
      if (data === undefined || id === undefined) return;
      const isWebSocket = textIn(data, 'resource_type') === 'WebSocket';
      if (type === 'network_request') {
        if (isWebSocket) count.websockets++;
        else yield* requested(stored, id, data);
      } else if (type === 'network_response') {
        if (!isWebSocket) yield* ended(stored, id, { kind: 'answered', data, metadata: metadataOf(stored.event) });
      } else if (type === 'network_loading_failed') yield* ended(stored, id, { kind: 'failed', data });
    },

    rest: () => giveUp(0, 0),
  };
}

function end(
  { clock, weight: _weight, ...begun }: Begun,
  seq: number,
  event: TelemetryEvent | undefined,
  outcome: Exchange['outcome'],
): Exchange {
  const clockAtEnd = event && clockOf(event);
  // The clock of Chromium is the better one: an answer is reported after its body was read, and the time of day may be set back.
  const took =
    clock !== undefined && clockAtEnd !== undefined ? (clockAtEnd - clock) * 1e6 : (event?.ts ?? 0) - begun.startedAt;
  const head = outcome.kind === 'answered' ? numberOf(outcome.metadata.head_timestamp) : undefined;
  return {
    ...begun,
    seq,
    endedAt: begun.startedAt + Math.max(0, Math.round(took)),
    ...(head !== undefined && clock !== undefined && { headAfterMs: Math.max(0, (head - clock) * 1000) }),
    outcome,
  };
}

function metadataOf({ source }: TelemetryEvent): NetworkMetadata {
  return source.metadata ?? {};
}

function clockOf(event: TelemetryEvent): number | undefined {
  return numberOf(metadataOf(event).cdp_timestamp);
}
