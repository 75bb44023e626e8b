import type { NetworkMetadata, TelemetryEvent } from '../../lib/telemetry.ts';
import { pageLoads, type PageLoad } from './pages.ts';
import { textIn, type StoredEvent } from './source.ts';

type Data = NonNullable<TelemetryEvent['data']>;

/** A request and what came of it. */
export interface Exchange {
  /** Of the event that ended it, or of the request if none did. */
  seq: number;
  page: PageLoad | undefined;
  /** Unix microseconds. */
  startedAt: number;
  endedAt: number;
  /** Undefined when capturing began after the request. */
  request: Data | undefined;
  outcome:
    | { kind: 'answered'; data: Data; metadata: NetworkMetadata }
    | { kind: 'redirected'; to: string; metadata: NetworkMetadata }
    | { kind: 'failed'; data: Data }
    /** Still running when the record ends, or its end is missing from the record. */
    | { kind: 'open' };
}

/** Requests that wait for their end: more than a browser has connections for, so only requests whose end is lost are given up. */
const mostOpen = 5000;

/** Pairs the network events of a session. `take` returns what an event completes; `rest`, at the end, what has no end. */
export function exchanges() {
  const pages = pageLoads();
  /** By request id, in the order of the requests. */
  const open = new Map<string, Omit<Exchange, 'outcome'> & { request: Data }>();
  const count = { websockets: 0, withoutData: 0 };

  function requested(stored: StoredEvent, id: string, data: Data): Exchange[] {
    const done: Exchange[] = [];
    const { seq, event } = stored;
    const earlier = open.get(id);
    if (earlier) {
      // A redirect keeps the request's id. Its answer has no event of its own.
      const outcome: Exchange['outcome'] =
        data['is_redirect'] === true
          ? { kind: 'redirected', to: textIn(data, 'url') ?? '', metadata: metadataOf(event) }
          : { kind: 'open' };
      done.push(end(earlier, seq, event.ts, outcome));
      open.delete(id);
    } else if (open.size >= mostOpen) done.push(...giveUp(mostOpen / 10));
    open.set(id, { seq, page: pages.of(stored), startedAt: event.ts, endedAt: event.ts, request: data });
    return done;
  }

  /** The oldest ones, many at a time: the first of a Map is slow to find after others before it were deleted. */
  function giveUp(howMany: number): Exchange[] {
    const lost = [...open].slice(0, howMany);
    for (const [id] of lost) open.delete(id);
    return lost.map(([, begun]) => end(begun, begun.seq, begun.startedAt, { kind: 'open' }));
  }

  function ended(stored: StoredEvent, id: string, outcome: Exchange['outcome']): Exchange[] {
    const { seq, event } = stored;
    const begun = open.get(id);
    open.delete(id);
    if (begun) return [end(begun, seq, event.ts, outcome)];
    // A failure names no address, so it tells nothing without its request.
    if (outcome.kind !== 'answered') return [];
    return [{ seq, page: pages.of(stored), startedAt: event.ts, endedAt: event.ts, request: undefined, outcome }];
  }

  return {
    pages: pages.all,
    count: count as Readonly<typeof count>,

    take(stored: StoredEvent): Exchange[] {
      const { type, category, data } = stored.event;
      // The browser was started again: its requests are gone, and their numbers may be given a second time.
      if (type === 'monitor_disconnected') return this.rest();
      pages.take(stored);
      if (category !== 'network') return [];
      const id = textIn(data, 'request_id');
      if (data === undefined) count.withoutData++;
      if (data === undefined || id === undefined) return [];
      if (type === 'network_request') {
        if (textIn(data, 'resource_type') === 'WebSocket') {
          count.websockets++;
          return [];
        }
        return requested(stored, id, data);
      }
      if (type === 'network_response')
        return textIn(data, 'resource_type') === 'WebSocket'
          ? []
          : ended(stored, id, { kind: 'answered', data, metadata: metadataOf(stored.event) });
      if (type === 'network_loading_failed') return ended(stored, id, { kind: 'failed', data });
      return [];
    },

    rest(): Exchange[] {
      return giveUp(open.size);
    },
  };
}

function end(begun: Omit<Exchange, 'outcome'>, seq: number, endedAt: number, outcome: Exchange['outcome']): Exchange {
  // The clock of the machine may be set back in between.
  return { ...begun, seq, endedAt: Math.max(endedAt, begun.startedAt), outcome };
}

function metadataOf({ source }: TelemetryEvent): NetworkMetadata {
  return source.metadata ?? {};
}
