import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../lib/log.ts';
import { oneAtATime } from '../lib/one-at-a-time.ts';
import { withoutOwner } from '../lib/scope.ts';
import { wakeUps } from '../lib/wake-ups.ts';
import type { PlacedEvent, ProjectEventStore } from './store.ts';

/** Notifications come one for each transaction. Those of this time are read at once. */
const gatherMs = 25;
/** Notifications may be missed, so it looks this often anyway. */
const lookEveryMs = 1000;
/** Notifications are asked for, for a minute each time. */
const wantEveryMs = 20_000;
const pageSize = 500;
/** A page takes some 4 ms of the event loop. A project has 500 readers, and each may begin an hour ago. */
const betweenPagesMs = 20;

export interface TailOptions {
  store: Pick<ProjectEventStore, 'place' | 'after' | 'want'>;
  log: Log;
  /** How many events are kept in memory for all readers. Readers that are further behind read from the database. */
  ringSize?: number;
}

/** An event, or `gap`: what came before this position is lost. */
export type TailItem = { event: PlacedEvent } | { gap: number };

/**
 * The end of the stream, followed for all readers of this node at once, and only while there are any. A reader is a position: nothing
 * is queued for it, so a slow one costs no memory and holds up no other.
 */
export function eventTail({ store, log, ringSize = 2000 }: TailOptions) {
  let ring: PlacedEvent[] = [];
  /** The newest position, which the ring ends with. */
  let last = 0;
  let following = false;
  let readers = 0;
  let wantedAt = -Infinity;
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  let gathering: NodeJS.Timeout | undefined;
  let looks: NodeJS.Timeout | undefined;
  const looked = wakeUps();
  const ofProject = oneAtATime();

  /** Resolves when everything that was committed before the call is in the ring. */
  function look(): Promise<void> {
    if (!running) return (running = lookOnce().finally(() => (running = undefined)));
    next ??= running
      .catch(() => {}) // reported to its own callers
      .then(() => {
        next = undefined;
        return look();
      });
    return next;
  }

  async function lookOnce(): Promise<void> {
    if (readers === 0) return; // the last one left while this look waited for the one before
    if (performance.now() - wantedAt > wantEveryMs) {
      await store.want();
      wantedAt = performance.now();
    }
    const newest = await store.place();
    if (!following || newest < last) {
      [ring, last, following] = [[], newest, true];
    }
    while (last < newest) {
      const page = await store.after(last, pageSize);
      // The ring has no gaps. Events removed before this node read them are a gap for its readers.
      if (page[0]?.position !== last + 1) ring = [];
      ring.push(...page);
      last = page.at(-1)?.position ?? newest;
      if (ring.length > ringSize) ring.splice(0, ring.length - ringSize);
    }
    looked.wakeAll();
  }

  const lookSafely = () =>
    look().catch((error: Error) => log.debug({ error: error.message }, 'project_events.not_read')); // tried again at the next look

  function enter() {
    readers++;
    looks ??= withoutOwner(() => setInterval(() => void lookSafely(), lookEveryMs).unref());
  }

  function leave() {
    if (--readers > 0) return;
    clearInterval(looks);
    clearTimeout(gathering);
    [looks, gathering, ring, following, wantedAt] = [undefined, undefined, [], false, -Infinity];
  }

  /** What follows a position, at most a page: from memory if it is there. A project reads one page at a time from the database. */
  async function after(position: number, project: string, signal: AbortSignal): Promise<PlacedEvent[]> {
    const first = ring[0]?.position ?? Infinity;
    const start = position + 1 - first;
    if (start >= 0) return ring.slice(start, start + pageSize);
    return ofProject(project, async () => {
      if (signal.aborted) return [];
      await sleep(betweenPagesMs);
      return store.after(position, pageSize);
    });
  }

  async function* follow(from: number, project: string, signal: AbortSignal): AsyncGenerator<TailItem> {
    let at = from;
    if (at > last) {
      // The id is of another database, or of a time before this one was restored.
      at = last;
      yield { gap: at };
    }
    while (!signal.aborted) {
      if (at >= last) {
        await looked.wait('', { signal });
        continue;
      }
      const page = await after(at, project, signal);
      if (signal.aborted) return;
      const first = page[0]?.position ?? last + 1;
      if (first !== at + 1) yield { gap: (at = first - 1) };
      for (const event of page) {
        yield { event };
        at = event.position;
        if (signal.aborted) return;
      }
    }
  }

  return {
    /** There are new events: a notification of the database. */
    hear(): void {
      if (readers === 0) return;
      gathering ??= withoutOwner(() => setTimeout(() => ((gathering = undefined), void lookSafely()), gatherMs));
    },

    /** The events after a position, or from now on, for a reader of a project, until the signal aborts. Rejects when the database does not answer. */
    async read(
      from: number | undefined,
      project: string,
      signal: AbortSignal,
    ): Promise<{ from: number; events: AsyncGenerator<TailItem> }> {
      enter();
      if (signal.aborted) leave();
      else signal.addEventListener('abort', leave, { once: true });
      await look();
      const start = from ?? last;
      return { from: start, events: follow(start, project, signal) };
    },

    readers: () => readers,
  };
}
